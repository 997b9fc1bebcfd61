import { describe, reasonOf } from './describe.js';
import type { Variant } from './detect.js';
import { KilimError } from './errors.js';
import { OFFLINE, fetchBytes, isOffline } from './fetch.js';
import type { WasmSource } from './protocol.js';

// Bundlers find the binaries by exactly this form.
const addresses: Record<Variant, () => URL> = {
  simd: () => new URL('./kilim.simd.wasm', import.meta.url),
  relaxed: () => new URL('./kilim.relaxed.wasm', import.meta.url),
  threads: () => new URL('./kilim.threads.wasm', import.meta.url),
};

const own = new Map<Variant, Promise<WebAssembly.Module>>();

/**
 * The package's own binary, fetched and compiled once for all sessions of the page: code is shared between threads, and what
 * the engine has optimised for one session is fast in the next.
 */
export function ownBinary(variant: Variant): Promise<WebAssembly.Module> {
  let module = own.get(variant);
  if (module === undefined) {
    module = compileBinary(addresses[variant]);
    own.set(variant, module);
    // The next session tries again.
    module.catch(() => own.delete(variant));
  }
  return module;
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
  if (error instanceof KilimError) return error;
  return new KilimError(
    'IO',
    `cannot start the WASM runtime: ${reasonOf(error)}`,
    {
      hint: isOffline()
        ? OFFLINE
        : "the kilim.*.wasm files must be served beside the package's modules, and a content security policy must allow 'wasm-unsafe-eval'",
    },
    error,
  );
}
