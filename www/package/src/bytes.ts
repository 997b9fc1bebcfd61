import { KilimError } from './errors.js';
import type { ErrorCode } from './errors.js';

/**
 * The bytes of some memory, in place.
 * @throws KilimError with `code` where it was handed to another thread, or has shrunk.
 */
export function bytesOf(memory: ArrayBufferLike | ArrayBufferView, code: ErrorCode): Uint8Array {
  try {
    return ArrayBuffer.isView(memory) ? new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength) : new Uint8Array(memory);
  } catch (error) {
    throw new KilimError(code, 'the memory of the bytes is gone: it was handed to another thread', {}, error);
  }
}

/**
 * A copy of bytes.
 * @throws KilimError `LIMIT` where there is no memory for it.
 */
export function copyOf(bytes: Uint8Array): Uint8Array {
  try {
    return bytes.slice();
  } catch (error) {
    throw new KilimError('LIMIT', 'there is no memory for a copy', { got: `${bytes.byteLength} bytes` }, error);
  }
}
