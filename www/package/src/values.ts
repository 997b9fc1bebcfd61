import { copyOf } from './bytes.js';
import type { DeviceTensor } from './device.js';
import { KilimError } from './errors.js';
import { asTensor } from './feeds.js';
import type { Feed, HostFeed, Port } from './feeds.js';
import { fromWire, toWire } from './tensor.js';
import type { DType, Tensor, TensorLike, WireTensor } from './tensor.js';

/** A map of a model, as ZipMap gives them: what each key stands for. */
export type ModelMap = Map<string | bigint, number | bigint | string>;

/** What an output gives: a tensor, which a run with `keep` leaves where it is; for a sequence an array of tensors; a map or an array of maps; `null` for an optional value that is not there. */
export type Value = Tensor | DeviceTensor | Tensor[] | ModelMap | ModelMap[] | null;

/** The types of a model's inputs and outputs, by their names. */
export interface ModelTypes {
  inputs: Record<string, Feed>;
  outputs: Record<string, Value>;
}

/** A tensor that stays in the runtime, under a number of its own there. */
export interface WireKept {
  name: string;
  kept: number;
  /** Whether the run that is given it uses it up. */
  spent?: boolean;
  type: DType;
  dims: readonly number[];
}

/** A value in the form that crosses into the runtime. */
export type WireValue =
  | WireTensor
  | WireKept
  | { name: string; sequence: WireTensor[] }
  | { name: string; maps: [keys: WireTensor, values: WireTensor][]; single: boolean }
  | { name: string; absent: true };

/** Brings what was given for an input of any kind into that form. */
export function toWireValue(port: Port, feed: HostFeed): WireValue {
  const { name } = port;
  if (feed === null) {
    if (port.optional) return { name, absent: true };
    throw new KilimError('DTYPE', `input \`${name}\` may not be left out`, { input: name, got: 'null' });
  }
  if (port.kind === 'sequence') {
    if (Array.isArray(feed)) return { name, sequence: feed.map((item) => toWire(name, asTensor(port, item as TensorLike))) };
    throw new KilimError('DTYPE', `input \`${name}\` is a sequence`, { input: name, expected: 'an array of tensors' });
  }
  if (port.kind === 'map' || port.kind === 'sequence of maps')
    throw new KilimError('UNSUPPORTED', `input \`${name}\` is a ${port.kind}`, { input: name });
  return toWire(name, asTensor(port, feed));
}

/** The inverse, for outputs that are not kept. */
export function fromWireValue(wire: Exclude<WireValue, WireKept>): Value {
  if ('absent' in wire) return null;
  if ('sequence' in wire) return wire.sequence.map(fromWire);
  if (!('maps' in wire)) return fromWire(wire);
  const maps = wire.maps.map(([keys, values]) => {
    const elements = fromWire(values).data;
    return new Map(
      Array.from(fromWire(keys).data as ArrayLike<string | bigint>, (key, i) => [key, elements[i] as number | bigint | string]),
    );
  });
  return wire.single ? (maps[0] as ModelMap) : maps;
}

/** The tensors that a value is made of. */
export function tensorsOf(wire: WireValue): WireTensor[] {
  if ('absent' in wire || 'kept' in wire) return [];
  if ('sequence' in wire) return wire.sequence;
  return 'maps' in wire ? wire.maps.flat() : [wire];
}

/** The value with `map` of each of its tensors. */
export function mapTensors(wire: WireValue, map: (tensor: WireTensor) => WireTensor): WireValue {
  if ('absent' in wire || 'kept' in wire) return wire;
  if ('sequence' in wire) return { ...wire, sequence: wire.sequence.map(map) };
  return 'maps' in wire ? { ...wire, maps: wire.maps.map(([keys, values]) => [map(keys), map(values)]) } : map(wire);
}

/**
 * The values with elements of their own.
 * @throws KilimError `LIMIT` where there is no memory for them.
 */
export function copyValues(values: readonly WireValue[]): WireValue[] {
  return values.map((value) =>
    mapTensors(value, (tensor) => ({
      ...tensor,
      ...(tensor.bytes && { bytes: copyOf(tensor.bytes) }),
      ...(tensor.texts && { texts: [...tensor.texts] }),
    })),
  );
}
