import { KilimError } from './errors.js';
import { mapTensors, tensorsOf } from './values.js';
import type { WireValue } from './values.js';

/** Bytes of an input from which on it has a carrier; smaller ones are cloned with their message. */
const LARGE = 16 << 10;

/** What the worker gives back of the inputs of a run. */
export function carriersOf(values: readonly WireValue[]): ArrayBuffer[] {
  const buffers = values.flatMap(tensorsOf).flatMap(({ bytes }) => (bytes && bytes.byteLength >= LARGE ? [bytes.buffer] : []));
  return buffers.filter((buffer) => buffer instanceof ArrayBuffer);
}

/** Memory in which large inputs travel to a worker and back. Memory that is new in every run would cost more than the copy itself. */
export class Carriers {
  #idle: ArrayBuffer[] = [];

  /**
   * The values with copies of what is large, and what is to be transferred with them.
   * @throws KilimError `LIMIT` where there is no memory for a copy.
   */
  load(values: readonly WireValue[]): { values: WireValue[]; transfer: ArrayBuffer[] } {
    const transfer: ArrayBuffer[] = [];
    const loaded = values.map((value) =>
      mapTensors(value, (tensor) => {
        const { bytes } = tensor;
        if (!bytes) return tensor;
        // A clone of a part would be one of all that it is a part of.
        if (bytes.byteLength < LARGE) return bytes.byteLength < bytes.buffer.byteLength ? { ...tensor, bytes: bytes.slice() } : tensor;
        const buffer = this.#take(bytes.byteLength);
        transfer.push(buffer);
        const copy = new Uint8Array(buffer);
        copy.set(bytes);
        return { ...tensor, bytes: copy };
      }),
    );
    return { values: loaded, transfer };
  }

  /** Keeps what came back, in place of what was kept before. */
  unload(buffers: ArrayBuffer[]): void {
    this.#idle = buffers;
  }

  #take(size: number): ArrayBuffer {
    const at = this.#idle.findIndex((buffer) => buffer.byteLength === size);
    const [idle] = at < 0 ? [] : this.#idle.splice(at, 1);
    if (idle) return idle;
    try {
      return new ArrayBuffer(size);
    } catch (error) {
      throw new KilimError('LIMIT', 'there is no memory for a copy of an input', { got: `${size} bytes` }, error);
    }
  }
}
