import { MISPLACED } from './assets.js';
import { describe, reasonOf } from './describe.js';
import type { Variant } from './detect.js';
import { KilimError } from './errors.js';
import { OFFLINE, fetchBytes, isOffline } from './fetch.js';
import type { Binary, WasmSource } from './protocol.js';

// Bundlers find the binaries by exactly this form.
const addresses: Record<Variant, () => URL> = {
  simd: () => new URL('./kilim.simd.wasm', import.meta.url),
  relaxed: () => new URL('./kilim.relaxed.wasm', import.meta.url),
  threads: () => new URL('./kilim.threads.wasm', import.meta.url),
};

const own = new Map<string, Promise<WebAssembly.Module>>();

/**
 * The package's own binary, in the folder `assets` where that is given, fetched and compiled once for all sessions of the page: code is
 * shared between threads, and what the engine has optimised for one session is fast in the next.
 */
export async function ownBinary(variant: Variant, assets: string | undefined): Promise<Binary> {
  const beside = assets && `${assets}kilim.${variant}.wasm`;
  const key = beside ?? variant;
  let module = own.get(key);
  if (module === undefined) {
    module = compileBinary(beside === undefined ? addresses[variant] : () => beside);
    own.set(key, module);
    // The next session tries again.
    module.catch(() => own.delete(key));
  }
  return { module: await module, beside };
}

/** @throws KilimError `IO` where it cannot be read or is no WebAssembly. */
export async function compileBinary(from: () => WasmSource): Promise<WebAssembly.Module> {
  try {
    const source = from();
    if (source instanceof WebAssembly.Module) return source;
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return await WebAssembly.compile(source as BufferSource);
    if (!(source instanceof Response || source instanceof URL || typeof source === 'string'))
      throw new TypeError(`${describe(source)} is no binary`);
    const response = source instanceof Response ? source : await fetchBytes(source);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    // A response of another type cannot be compiled while it comes.
    const streams = response.headers.get('content-type')?.startsWith('application/wasm');
    return streams ? await WebAssembly.compileStreaming(response) : await WebAssembly.compile(await response.arrayBuffer());
  } catch (error) {
    throw cannotStart(error);
  }
}

/** Why there is no runtime. */
export function cannotStart(error: unknown): KilimError {
  // What says itself what to do needs no other hint.
  if (error instanceof KilimError && (error.code !== 'IO' || error.hint !== undefined)) return error;
  return new KilimError(
    'IO',
    `cannot start the WASM runtime: ${reasonOf(error)}`,
    {
      hint: isOffline() ? OFFLINE : `${MISPLACED}. A content security policy must allow 'wasm-unsafe-eval'`,
    },
    error,
  );
}
