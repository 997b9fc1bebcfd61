import { describe } from './describe.js';
import { DeviceTensor, wireKept } from './device.js';
import { KilimError, reading, toPlain } from './errors.js';
import { isNarrow } from './narrow.js';
import type { Engine } from './protocol.js';
import { canHold, check, elementCount, fromNumbers, isStrings, isTypedArray, typeOfArray } from './tensor.js';
import type { DType, GivenArrayOf, TensorLike, TypedArray } from './tensor.js';
import { toWireValue } from './values.js';
import type { WireValue } from './values.js';

/** An input or output of a model. */
export interface Port {
  name: string;
  /** `null` where the model does not say. */
  type: DType | null;
  /** A number, the model's own name for a free dimension, a sum of such names (`past + seq`), or `null` where nothing is known; `null` for an unknown rank. */
  dims: (number | string | null)[] | null;
  /** What the value is. For sequences, `type` and `dims` are those of each tensor inside; for maps, `type` is that of the values. */
  kind: 'tensor' | 'sequence' | 'map' | 'sequence of maps';
  /** True where `null` may be given, or may come. */
  optional: boolean;
}

/** What may be given for an input: a tensor, or its elements alone where the model's dimensions say the rest; an array of tensors for a sequence; `null` for an optional value that is not there; a tensor that a run has kept. */
export type Feed = HostFeed | DeviceTensor;

/** What may be given for an input whose elements are of one type. */
export type FeedOf<T extends DType> =
  | DeviceTensor
  | { type: T; dims: readonly number[]; data: GivenArrayOf<T> }
  | GivenArrayOf<T>
  | (T extends 'string' ? never : readonly number[])
  | (T extends 'int64' | 'uint64' ? readonly bigint[] : never);

/** What may be given from the caller's memory. */
export type HostFeed = TensorLike | TypedArray | readonly number[] | readonly bigint[] | readonly string[] | readonly TensorLike[] | null;

/**
 * Brings what the caller gave into the form that the runtime of `engine` takes, checked against the model's inputs. What another one has
 * kept is read there.
 */
export function prepareFeeds(inputs: readonly Port[], feeds: Record<string, Feed>, engine: Engine): (WireValue | Promise<WireValue>)[] {
  if (typeof feeds !== 'object' || feeds === null || Array.isArray(feeds) || isTypedArray(feeds) || feeds instanceof Map) {
    throw new KilimError('INPUT', 'inputs are given as an object, by their names', {
      expected: `{ ${inputs.map(({ name }) => name).join(', ')} }`,
      got: describe(feeds),
    });
  }
  const known = new Map(inputs.map((port) => [port.name, port]));
  for (const name of Object.keys(feeds)) {
    if (!known.has(name)) {
      throw new KilimError('INPUT', `the model has no input \`${name}\``, {
        input: name,
        expected: [...known.keys()].join(', '),
        got: name,
      });
    }
  }
  return Object.entries(feeds).map(([name, feed]) => reading(`input \`${name}\``, () => wireFor(known.get(name) as Port, feed, engine)));
}

function wireFor(port: Port, feed: Feed, engine: Engine): WireValue | Promise<WireValue> {
  if (!(feed instanceof DeviceTensor)) return toWireValue(port, feed);
  return wireKept(engine, port.name, feed) ?? feed.read().then((tensor) => toWireValue(port, tensor));
}

/** One tensor of an input. */
export function asTensor(port: Port, feed: HostFeed): TensorLike {
  try {
    if (isStrings(feed) && (feed.length > 0 || port.type === 'string')) {
      return checked(port, { type: 'string', dims: inferDims(port, feed.length), data: feed });
    }
    if (Array.isArray(feed)) return fromNumbers(port.type ?? 'float32', inferDims(port, feed.length), feed as number[]);
    if (isTypedArray(feed)) {
      if (port.type !== null && isNarrow(port.type)) {
        throw new KilimError('DTYPE', `packed ${port.type} does not say how many elements there are`, {
          hint: 'give a tensor with dims, or numbers',
        });
      }
      const type = port.type !== null && canHold(port.type, feed) ? port.type : typeOfArray(feed);
      return checked(port, { type, dims: inferDims(port, feed.length), data: feed });
    }
    if (typeof feed !== 'object' || feed === null) {
      throw new KilimError('DTYPE', 'an input must be a tensor or an array of elements', { got: describe(feed) });
    }
    if (isPicture(feed))
      throw new KilimError('DTYPE', 'a picture is no tensor', {
        got: 'ImageData',
        hint: "`await Tensor.from(picture, options)` makes one, in the model's size, layout and range",
      });
    return checked(port, feed as TensorLike);
  } catch (error) {
    if (!(error instanceof KilimError)) throw error;
    const { code, message: summary, ...parts } = toPlain(error);
    throw new KilimError(code, `input \`${port.name}\`: ${summary}`, { ...parts, input: port.name }, error.cause);
  }
}

function isPicture(feed: object): boolean {
  return typeof ImageData !== 'undefined' && feed instanceof ImageData;
}

function checked(port: Port, tensor: TensorLike): TensorLike {
  const { type, dims, data } = tensor;
  if (port.type !== null && type !== port.type) {
    const hint =
      isPixels(data) && port.type.includes('float')
        ? { hint: 'bytes from 0 to 255 must be scaled as the model was trained: `Float32Array.from(pixels, (v) => v / 255)`, for instance' }
        : {};
    throw new KilimError('DTYPE', "the element type is not the model's", {
      expected: port.type,
      got: typeof type === 'string' ? type : describe(type),
      ...hint,
    });
  }
  check(tensor);
  if (!fits(port.dims, dims)) {
    const hint = hintFor(port.dims, dims);
    throw new KilimError('SHAPE', "the dimensions are not the model's", {
      expected: show(port.dims),
      got: show(dims),
      ...(hint !== undefined && { hint }),
    });
  }
  return tensor;
}

function isPixels(data: unknown): boolean {
  return data instanceof Uint8Array || data instanceof Uint8ClampedArray;
}

function fits(wanted: Port['dims'], dims: readonly number[]): boolean {
  return wanted === null || (wanted.length === dims.length && wanted.every((d, i) => typeof d !== 'number' || d === dims[i]));
}

/** How a picture's dimensions change their places: `[height, width, channels]` and the channels first, with a batch before them or without. */
const LAYOUTS = [
  { name: 'channels-last data (NHWC)', order: [0, 3, 1, 2] },
  { name: 'channels-first data (NCHW)', order: [0, 2, 3, 1] },
  { name: 'channels-last data (HWC)', order: [2, 0, 1] },
  { name: 'channels-first data (CHW)', order: [1, 2, 0] },
];

/** What would make dimensions fit that do not. */
function hintFor(wanted: Port['dims'], dims: readonly number[]): string | undefined {
  if (fits(wanted, [1, ...dims])) return `a dimension for the batch is missing: give dims ${show([1, ...dims])}`;
  for (const { name, order } of LAYOUTS) {
    const moved = order.map((axis) => dims[axis] ?? -1);
    if (order.length === dims.length && fits(wanted, moved))
      return `this is the shape of ${name}: transposed to ${show(moved)} it would fit`;
  }
  return undefined;
}

/** The dimensions of a bare array: the model's own, with at most one free dimension worked out from the length. */
function inferDims(port: Port, length: number): number[] {
  const { dims } = port;
  const hint = 'give a tensor with dims';
  if (dims === null) throw new KilimError('SHAPE', 'the model does not fix the dimensions', { hint });
  const free = dims.filter((d) => typeof d !== 'number');
  if (free.length > 1)
    throw new KilimError('SHAPE', 'more than one dimension is free', { expected: show(dims), got: `${length} elements`, hint });
  const fixed = elementCount(dims.filter((d) => typeof d === 'number'));
  const rest = free.length === 0 ? 1 : length / fixed;
  if (fixed * rest !== length || !Number.isInteger(rest)) {
    throw new KilimError('SHAPE', 'the number of elements does not fit', { expected: show(dims), got: `${length} elements` });
  }
  return dims.map((d) => (typeof d === 'number' ? d : rest));
}

function show(dims: readonly (number | string | null)[] | null): string {
  return dims === null ? 'any' : `[${dims.map((d) => d ?? '?').join(', ')}]`;
}
