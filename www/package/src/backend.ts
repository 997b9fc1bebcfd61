// Backends of a page in the runtime's thread. A file of its own, which sessions with such backends import.
import { toWireBackend } from './backend/wire.js';
import type { WireBackend } from './backend/wire.js';
import type { PageBackend } from './backend/types.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import { backendOfWasm } from './exports.js';
import { malformed } from './stage.js';

/** The backends of this thread by the addresses of their modules. A device is opened once. */
const opened = new Map<string, Promise<WireBackend>>();

/** The default export of a module of JavaScript. */
async function backendOf(id: string, url: string): Promise<PageBackend> {
  let module: { default?: unknown };
  try {
    module = await import(/* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ url);
  } catch (error) {
    throw new KilimError('IO', `cannot import the backend \`${id}\` of ${url}: ${reasonOf(error)}`, {}, error);
  }
  const backend = module.default;
  if (typeof backend === 'object' && backend !== null) return backend as PageBackend;
  throw malformed(id, 'the default export', 'an object with `supports` and `prepare`', backend);
}

async function open(id: string, url: string): Promise<WireBackend> {
  const backend = await (/\.wasm$/.test(new URL(url).pathname) ? backendOfWasm(id, url) : backendOf(id, url));
  try {
    await backend.open?.();
  } catch (error) {
    throw new KilimError('DEVICE', `the backend \`${id}\` cannot be used: ${reasonOf(error)}`, {}, error);
  }
  // What it says of itself may be known only now.
  return toWireBackend(id, backend);
}

/** Imports and opens backends, given by their names with the addresses of their modules. */
export function importBackends(modules: Record<string, string>): Promise<WireBackend[]> {
  const found = Object.entries(modules).map(([id, url]) => {
    const key = `${id} ${url}`;
    const kept = opened.get(key) ?? open(id, url);
    opened.set(key, kept);
    // The next session tries again.
    kept.catch(() => opened.delete(key));
    return kept;
  });
  return Promise.all(found);
}
