import type { Rectangle, Resample, Size } from './options.js';

/** Bytes of a picture: those of a pixel stand together, `stride` from one pixel to the next and `row` from one row to the next. */
export interface Plane extends Size {
  data: Uint8Array | Uint8ClampedArray;
  start: number;
  row: number;
  stride: number;
}

interface Filter {
  /** Pixels on either side of the middle that count. */
  support: number;
  weight(x: number): number;
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** Keys' cubic with a = −1/2. */
function cubic(at: number): number {
  const x = Math.abs(at);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

const FILTERS: Record<Exclude<Resample, 'nearest'>, Filter> = {
  box: { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { support: 2, weight: cubic },
  lanczos: { support: 3, weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

/** The bits behind the point of a weight: those of Pillow's 8-bit resampling, which leave two of 32 for sums that go beyond a byte. */
const BITS = 22;

/** For each place of an output line: the first input that counts, how many do, and their weights, `most` to a place. */
export interface Weights {
  first: Int32Array;
  count: Int32Array;
  weights: Int32Array;
  most: number;
}

/** The weights of places `from` to `to` of a line that goes from `input` to `output` pixels, as Pillow computes and rounds them. */
function weightsOf(input: number, output: number, [from, to]: [number, number], { support, weight }: Filter, antialias: boolean): Weights {
  const scale = input / output;
  const width = antialias ? Math.max(1, scale) : 1;
  const reach = support * width;
  const most = Math.ceil(reach) * 2 + 1;
  const places = to - from;
  const made = { first: new Int32Array(places), count: new Int32Array(places), weights: new Int32Array(places * most), most };
  const line = new Float64Array(most);
  for (let place = 0; place < places; place++) {
    const center = (from + place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - reach + 0.5));
    const count = Math.min(input, Math.trunc(center + reach + 0.5)) - first;
    let sum = 0;
    for (let i = 0; i < count; i++) sum += line[i] = weight((first + i - center + 0.5) / width);
    for (let i = 0; i < count; i++) {
      const share = (line[i] as number) / (sum || 1);
      made.weights[place * most + i] = Math.trunc(share * 2 ** BITS + (share < 0 ? -0.5 : 0.5));
    }
    made.first[place] = first;
    made.count[place] = count;
  }
  return made;
}

/** Half of what the point is behind, so that sums are rounded. */
const HALF = 1 << (BITS - 1);

/** Rows of `channels` bytes to a pixel, each made of a row of the picture: the sums fit into 32 bits, as Pillow has them. */
function sumAcross(
  { data, start, row, stride, height }: Plane,
  channels: number,
  { first, count, weights, most }: Weights,
): Uint8ClampedArray {
  const width = first.length;
  const out = new Uint8ClampedArray(width * height * channels);
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++, to += channels) {
      let at = start + y * row + (first[x] as number) * stride;
      const end = x * most + (count[x] as number);
      let one = HALF;
      let two = HALF;
      let three = HALF;
      let four = HALF;
      for (let i = x * most; i < end; i++, at += stride) {
        const weight = weights[i] as number;
        one = (one + Math.imul(data[at] as number, weight)) | 0;
        if (channels === 1) continue;
        two = (two + Math.imul(data[at + 1] as number, weight)) | 0;
        three = (three + Math.imul(data[at + 2] as number, weight)) | 0;
        if (channels === 4) four = (four + Math.imul(data[at + 3] as number, weight)) | 0;
      }
      out[to] = one >> BITS;
      if (channels === 1) continue;
      out[to + 1] = two >> BITS;
      out[to + 2] = three >> BITS;
      if (channels === 4) out[to + 3] = four >> BITS;
    }
  }
  return out;
}

/** Rows of `length` bytes, each made of some of the rows in `data`, which begin with row `top` of the picture. */
function sumDown(data: Uint8ClampedArray, length: number, top: number, { first, count, weights, most }: Weights): Uint8ClampedArray {
  const out = new Uint8ClampedArray(length * first.length);
  const sums = new Int32Array(length);
  for (let y = 0; y < first.length; y++) {
    sums.fill(HALF);
    for (let i = 0; i < (count[y] as number); i++) {
      const weight = weights[y * most + i] as number;
      const from = ((first[y] as number) + i - top) * length;
      for (let x = 0; x < length; x++) sums[x] = (sums[x] as number) + Math.imul(data[from + x] as number, weight);
    }
    for (let x = 0; x < length; x++) out[y * length + x] = (sums[x] as number) >> BITS;
  }
  return out;
}

/** The pixels of a picture that each place of the part `shown` of its resampled form is made of, along rows and along columns. */
export interface Taps {
  across: Weights;
  down: Weights;
}

/** What `resample` sums up, as weights; where it takes single pixels, these have all the weight. */
export function tapsOf(picture: Size, scaled: Size, shown: Rectangle, kind: Resample = 'bilinear', antialias = true): Taps {
  const { x, y, width, height } = shown;
  if (takesPixels(picture, scaled, kind))
    return { across: whole(picture.width, scaled.width, [x, x + width]), down: whole(picture.height, scaled.height, [y, y + height]) };
  const filter = FILTERS[kind];
  return {
    across: weightsOf(picture.width, scaled.width, [x, x + width], filter, antialias),
    down: weightsOf(picture.height, scaled.height, [y, y + height], filter, antialias),
  };
}

function whole(input: number, output: number, [from, to]: [number, number]): Weights {
  const first = taken(input, output).slice(from, to);
  const [count, weights] = [new Int32Array(to - from).fill(1), new Int32Array(to - from).fill(2 ** BITS)];
  return { first, count, weights, most: 1 };
}

/** Filters leave a picture of the same size as it is. */
const takesPixels = (picture: Size, scaled: Size, kind: Resample): kind is 'nearest' =>
  kind === 'nearest' || (picture.width === scaled.width && picture.height === scaled.height);

/** The first of the rows that the places of a column are made of, and how many there are. */
export function rowsOf({ first, count }: Weights): { top: number; rows: number } {
  const last = first.length - 1;
  const top = first[0] as number;
  return { top, rows: (first[last] as number) + (count[last] as number) - top };
}

/**
 * The bytes of the part `shown` of the picture at the size `scaled`, of the first `channels` bytes of each pixel: along rows first, rounded to bytes,
 * then along columns.
 */
export function resample(
  picture: Plane,
  channels: number,
  scaled: Size,
  shown: Rectangle,
  kind: Resample = 'bilinear',
  antialias = true,
): Uint8ClampedArray {
  if (takesPixels(picture, scaled, kind)) return nearest(picture, channels, scaled, shown);
  const { across, down } = tapsOf(picture, scaled, shown, kind, antialias);
  // No more rows than the columns need.
  const { top, rows } = rowsOf(down);
  const wide = sumAcross({ ...picture, start: picture.start + top * picture.row, height: rows }, channels, across);
  return sumDown(wide, shown.width * channels, top, down);
}

/** The pixel that each place of an output line takes. Pillow adds up places in float64, which decides where one lies between two pixels. */
function taken(input: number, output: number): Int32Array {
  const scale = input / output;
  const pixels = new Int32Array(output);
  for (let place = 0, at = scale * 0.5; place < output; place++, at += scale) pixels[place] = Math.min(input - 1, Math.floor(at));
  return pixels;
}

function nearest({ data, start, row, stride, ...picture }: Plane, channels: number, scaled: Size, shown: Rectangle): Uint8ClampedArray {
  const out = new Uint8ClampedArray(shown.width * shown.height * channels);
  const [across, down] = [taken(picture.width, scaled.width), taken(picture.height, scaled.height)];
  let to = 0;
  for (let y = shown.y; y < shown.y + shown.height; y++) {
    for (let x = shown.x; x < shown.x + shown.width; x++) {
      const at = start + (down[y] as number) * row + (across[x] as number) * stride;
      for (let channel = 0; channel < channels; channel++) out[to++] = data[at + channel] as number;
    }
  }
  return out;
}
