// Messages of Protocol Buffers, as files of ONNX are made of.
import { KilimError } from 'kilim';

/** A field of a message: whole numbers as they are written, everything else as bytes. */
export type Field = [number: number, value: bigint | Uint8Array];

const damaged = () => new KilimError('INVALID_MODEL', 'the file is no message of ONNX, or is cut off');

/** Reads whole numbers of one to ten bytes. */
class Reader {
  at = 0;

  constructor(readonly bytes: Uint8Array) {}

  get more(): boolean {
    return this.at < this.bytes.length;
  }

  number(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw damaged();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw damaged();
  }

  take(length: number): Uint8Array {
    const end = this.at + length;
    if (!(end <= this.bytes.length)) throw damaged();
    return this.bytes.subarray(this.at, (this.at = end));
  }
}

/**
 * The fields of a message in their order.
 * @throws KilimError `INVALID_MODEL` where the bytes are none.
 */
export function* fields(bytes: Uint8Array): Generator<Field> {
  const reader = new Reader(bytes);
  while (reader.more) {
    const tag = Number(reader.number());
    const kind = tag & 7;
    if (kind === 0) yield [tag >>> 3, reader.number()];
    else if (kind === 1) yield [tag >>> 3, reader.take(8)];
    else if (kind === 2) yield [tag >>> 3, reader.take(Number(reader.number()))];
    else if (kind === 5) yield [tag >>> 3, reader.take(4)];
    else throw damaged();
  }
}

/** Whole numbers of a repeated field, each by itself or several packed into bytes; negative ones have their sign. */
export function numbers(value: bigint | Uint8Array): bigint[] {
  if (typeof value === 'bigint') return [BigInt.asIntN(64, value)];
  const reader = new Reader(value);
  const read: bigint[] = [];
  while (reader.more) read.push(BigInt.asIntN(64, reader.number()));
  return read;
}

/** Numbers in single precision of a repeated field, each by itself or packed. */
export function floats(value: bigint | Uint8Array): number[] {
  if (typeof value === 'bigint') throw damaged();
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  return Array.from({ length: value.length >> 2 }, (_, i) => view.getFloat32(4 * i, true));
}

/** A text or a message, which must be bytes. */
export function asBytes(value: bigint | Uint8Array): Uint8Array {
  if (typeof value === 'bigint') throw damaged();
  return value;
}

export const asText = (value: bigint | Uint8Array) => new TextDecoder().decode(asBytes(value));
