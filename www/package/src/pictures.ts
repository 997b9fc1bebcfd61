import { compileBinary } from './binary.js';
import init, { decode, size } from './kilim.pictures.js';

/** What reads the pictures of ImageDecoder (`crates/web-pictures`). Both throw objects like a `PlainError`. */
export interface Decoders {
  /** Height and width. */
  size(file: Uint8Array): Uint32Array;
  /** Bytes of the dims height, width, channels; `pixels` is ONNX's `pixel_format`. */
  decode(file: Uint8Array, pixels: string): Uint8Array;
}

let opened: Promise<Decoders> | undefined;
/** Set once the decoders have trapped: their memory can no longer be trusted. */
let broken = false;

/** Fetches the decoders' binary, once for a thread. */
export function openDecoders(): Promise<Decoders> {
  opened ??= start().catch((error: unknown) => {
    // The next session tries again.
    opened = undefined;
    throw error;
  });
  return opened;
}

async function start(): Promise<Decoders> {
  await init({ module_or_path: await compileBinary(new URL('./kilim.pictures.wasm', import.meta.url)) });
  return { size: (file) => guarded(() => size(file)), decode: (file, pixels) => guarded(() => decode(file, pixels)) };
}

function guarded<T>(call: () => T): T {
  if (broken) throw new Error('the decoder failed at a picture before; load the model again');
  try {
    return call();
  } catch (error) {
    broken = error instanceof WebAssembly.RuntimeError;
    throw error;
  }
}
