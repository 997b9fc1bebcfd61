import { addressOf } from './assets.js';
import { describe } from './describe.js';
import { KilimError } from './errors.js';
import { importable } from './importable.js';
import type { Importable } from './importable.js';
import type { Backend, Brought } from './protocol.js';

/** The modules of backends that were registered, by their names. */
const registered = new Map<string, string | URL | Blob>();

/** The names of the backends that are registered. */
export const registeredBackends = (): string[] => [...registered.keys()];

/**
 * Makes a backend of the page's known to the sessions that are loaded from now on: `load` takes its name among `backends`. `module` is the
 * address of a module whose default export is a `PageBackend`, or a `Blob` of its text, or the address of a WebAssembly module (`.wasm`). It is
 * imported where the runtime is, in the worker.
 * One that was registered under the name before is replaced.
 *
 *     registerBackend('mine', new URL('./mine.js', import.meta.url));
 *     const session = await load('model.onnx', { backends: ['mine', 'cpu'] });
 *
 * @throws KilimError `INVALID_VALUE` for a name that is one of Kilim's own or no name, and for what is no address.
 */
export function registerBackend(id: string, module: string | URL | Blob): void {
  if (!/^[a-z]\w*$/i.test(id) || /^(wgpu|webgpu|cpu|wasm|webnn|builtin|plan|host)$/.test(id))
    throw new KilimError('INVALID_VALUE', 'a backend of the page needs a name of its own', {
      expected: 'letters, digits and `_`, and none of the names that Kilim has',
      got: describe(id),
    });
  if (typeof module !== 'string' && !(module instanceof URL) && !(module instanceof Blob))
    throw new KilimError('INVALID_VALUE', `the module of the backend \`${id}\` is none`, {
      expected: 'an address or a Blob',
      got: describe(module),
    });
  registered.set(id, module);
}

/** What a thread imports for those of `backends` that are registered, until `release` is called; nothing where none is. */
export async function broughtBy(
  backends: readonly Backend[] = [],
  assets: string | URL | undefined,
): Promise<(Brought & { release(): void }) | undefined> {
  const own = backends.filter((id) => id === 'webnn' || registered.has(id));
  if (own.length === 0) return undefined;
  const found = await Promise.all(
    own.map(async (id): Promise<[string, Importable]> => {
      const module = registered.get(id);
      return [
        id,
        module === undefined
          ? keptAt(addressOf('webnn.js', () => new URL('./webnn.js', import.meta.url), assets))
          : await importable(module),
      ];
    }),
  );
  return {
    by: addressOf('backend.js', () => new URL('./backend.js', import.meta.url), assets),
    modules: Object.fromEntries(found.map(([id, { href }]) => [id, href])),
    release: () => {
      for (const [, module] of found) module.release();
    },
  };
}

const keptAt = (href: string): Importable => ({ href, release: () => undefined });
