import { compileBinary } from './binary.js';
import type { Instance } from './glue.js';
import { createGlue } from './kilim.pictures.js';
import { Runtime } from './runtime.js';

/** What reads the pictures of ImageDecoder (`crates/web-pictures`). Both throw objects like a `PlainError`. */
export interface Decoders {
  /** Height and width. */
  size(file: Uint8Array): Uint32Array;
  /** Bytes of the dims height, width, channels; `pixels` is ONNX's `pixel_format`. */
  decode(file: Uint8Array, pixels: string): Uint8Array;
}

export interface PictureGlue extends Decoders, Instance {}

let opened: Promise<Decoders> | undefined;

/** Fetches the decoders' binary, once for a thread, from beside the runtime's, whose address may be given, or from beside this module. */
export function openDecoders(beside: string | undefined): Promise<Decoders> {
  opened ??= start(beside).catch((error: unknown) => {
    // The next session tries again.
    opened = undefined;
    throw error;
  });
  return opened;
}

async function start(beside: string | undefined): Promise<Decoders> {
  const file = 'kilim.pictures.wasm'; // bundlers look for the other form
  const module = await compileBinary(() =>
    beside === undefined ? new URL('./kilim.pictures.wasm', import.meta.url) : new URL(/* webpackIgnore: true */ file, beside),
  );
  // After a trap the next session gets another instance.
  const runtime = await Runtime.start(createGlue, module, {
    ended: () => {
      opened = undefined;
    },
  });
  const guarded = <T>(call: () => T): T => {
    try {
      return call();
    } catch (error) {
      throw runtime.fault ?? error;
    }
  };
  const { size, decode } = runtime.glue;
  return { size: (file) => guarded(() => size(file)), decode: (file, pixels) => guarded(() => decode(file, pixels)) };
}
