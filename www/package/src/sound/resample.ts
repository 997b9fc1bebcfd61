import { KilimError } from '../index.js';

/** Zero crossings of the sine cardinal on either side, and the shape of Kaiser's window over it: what `scipy.signal.resample_poly` has. */
const CROSSINGS = 10;
const KAISER = 5;
/** Samples that are made before others may have the thread: some milliseconds. */
const AT_ONCE = 1 << 16;

/** Makes the samples of `out` from `begin` to `end`. */
type Fill = (out: Float32Array, begin: number, end: number) => void;

/** @throws KilimError `UNSUPPORTED` for a rate out of range. */
export function checkRate(rate: unknown): void {
  // As in the crate `kilim-speech`.
  if (!Number.isInteger(rate) || (rate as number) < 1000 || (rate as number) > 768_000)
    throw new KilimError('UNSUPPORTED', 'sound of an unusual rate', {
      expected: '1,000 to 768,000 samples a second',
      got: typeof rate === 'number' ? String(rate) : typeof rate,
    });
}

/** The samples at another rate. */
export function resampledAtOnce(samples: Float32Array, from: number, to: number): Float32Array {
  const [out, fill] = begun(samples, from, to);
  fill(out, 0, out.length);
  return out;
}

/** The samples at another rate, made with pauses in which the page goes on. */
export async function resampled(samples: Float32Array, from: number, to: number): Promise<Float32Array> {
  const [out, fill] = begun(samples, from, to);
  for (let begin = 0; begin < out.length; begin += AT_ONCE) {
    fill(out, begin, Math.min(out.length, begin + AT_ONCE));
    await new Promise((resolve) => setTimeout(resolve));
  }
  return out;
}

/** Room for the samples, `up` for every `down`, and what makes them. */
function begun(samples: Float32Array, from: number, to: number): [out: Float32Array, fill: Fill] {
  checkRate(from);
  checkRate(to);
  const common = divisor(from, to);
  const [up, down] = [to / common, from / common];
  const most = Math.max(up, down);
  const half = up === down ? 0 : CROSSINGS * most;
  const filter = lowPass(half, most, up);
  const fill: Fill = (out, begin, end) => {
    for (let place = begin; place < end; place++) {
      const middle = place * down;
      const first = Math.max(0, Math.ceil((middle - half) / up));
      const last = Math.min(samples.length - 1, Math.floor((middle + half) / up));
      let sum = 0;
      for (let i = first, at = half + middle - first * up; i <= last; i++, at -= up) sum += (samples[i] as number) * (filter[at] as number);
      out[place] = sum;
    }
  };
  return [new Float32Array(Math.ceil((samples.length * up) / down)), fill];
}

/** A low pass at `1 / most` of the highest frequency, `2 half + 1` long, whose sum is `gain`. */
function lowPass(half: number, most: number, gain: number): Float64Array {
  const filter = new Float64Array(2 * half + 1);
  let sum = 0;
  for (let i = -half; i <= half; i++) {
    const x = (Math.PI * i) / most;
    sum += filter[half + i] = (x === 0 ? 1 : Math.sin(x) / x) * bessel(KAISER * Math.sqrt(1 - (i / (half || 1)) ** 2));
  }
  return filter.map((value) => (value * gain) / sum);
}

/** The modified Bessel function of order zero, by its series. */
function bessel(x: number): number {
  let sum = 0;
  for (let k = 1, term = 1; term > sum * 1e-17; k++) {
    sum += term;
    term *= (x / (2 * k)) ** 2;
  }
  return sum;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}
