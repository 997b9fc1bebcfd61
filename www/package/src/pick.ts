import { KilimError } from './errors.js';
import type { Backend, Picked } from './protocol.js';

/** The parts of WebGPU's types that are read here. */
interface Gpu {
  requestAdapter(): Promise<{ info?: { isFallbackAdapter?: boolean } } | null>;
}

function gpu(): Gpu | undefined {
  return (globalThis.navigator as { gpu?: Gpu } | undefined)?.gpu;
}

/**
 * WebGPU where the browser has it on a real GPU, and the CPU. Outside of browsers the CPU alone: programs of Deno crash as they end when
 * several of their threads asked for an adapter.
 *
 *     const { backends, skipped } = await pickBackends();
 */
export async function pickBackends(): Promise<Picked> {
  const reason = await whyNoGpu();
  return reason === null ? { backends: ['wgpu', 'cpu'], skipped: [] } : { backends: ['cpu'], skipped: [{ backend: 'wgpu', reason }] };
}

/** @throws KilimError `NO_BACKEND` where none is named, `DEVICE` where one of them is WebGPU and there is none. */
export function requireBackends(backends: readonly Backend[]): void {
  if (backends.length === 0)
    throw new KilimError('NO_BACKEND', 'no backend is named', { hint: 'leave out `backends` for those of this machine' });
  if (backends.includes('wgpu') && !gpu()) throw new KilimError('DEVICE', `the backend wgpu cannot be used: ${whyNoWebGpu()}`);
}

async function whyNoGpu(): Promise<string | null> {
  const found = gpu();
  if (!found) return whyNoWebGpu();
  if (!inBrowser()) return 'outside of browsers WebGPU is used only where `backends` names it';
  const adapter = await found.requestAdapter().catch(() => null);
  if (!adapter) return 'the browser offers no WebGPU adapter';
  return adapter.info?.isFallbackAdapter ? 'the only WebGPU adapter is a software one, slower than the CPU backend' : null;
}

/** Engines outside of browsers know no secure contexts. */
const secure = () => (globalThis as { isSecureContext?: boolean }).isSecureContext;

const inBrowser = () => secure() !== undefined;

function whyNoWebGpu(): string {
  if (!inBrowser()) return 'this JavaScript engine has no WebGPU';
  return secure() ? 'this browser has no WebGPU' : 'WebGPU needs a page served over https';
}
