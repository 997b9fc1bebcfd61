import type { Tensor } from 'kilim';

/** How far an output is from what it should be. */
export interface Difference {
  /** Why the two cannot be compared: other dimensions, or texts. */
  unlike?: string;
  /** The largest difference of an element, and that divided by the largest magnitude that is wanted. */
  largest: number;
  relative: number;
  /** The place of the largest difference, one number for each dimension, and what is there. */
  place: number[];
  got: number;
  want: number;
  /** Elements that are further off than the tolerances allow. */
  off: number;
  count: number;
}

export interface Tolerance {
  absolute: number;
  relative: number;
}

/** The coordinates of an element. */
function coordinates(index: number, dims: readonly number[]): number[] {
  let rest = index;
  const place = [...dims].reverse().map((dim) => {
    const at = rest % dim;
    rest = Math.floor(rest / dim);
    return at;
  });
  return place.reverse();
}

export function difference(got: Tensor, want: Tensor, { absolute, relative }: Tolerance): Difference {
  const none = { largest: 0, relative: 0, place: [], got: 0, want: 0, off: 0, count: 0 };
  if (got.type === 'string' || want.type === 'string') return { ...none, unlike: 'texts are not compared' };
  const [shape, wanted] = [got.dims.join(', '), want.dims.join(', ')];
  if (shape !== wanted) return { ...none, unlike: `[${shape}], not [${wanted}]` };
  const [a, b] = [got.toNumbers(), want.toNumbers()];
  let [largest, at, off, magnitude] = [-1, 0, 0, 0];
  a.forEach((value, i) => {
    const right = b[i] as number;
    const same = Object.is(value, right) || value === right;
    const distance = same ? 0 : Math.abs(value - right);
    // What is a number on one side alone is as far off as can be.
    const far = Number.isNaN(distance) ? Infinity : distance;
    if (far > absolute + relative * Math.abs(right)) off++;
    if (far > largest) [largest, at] = [far, i];
    if (Number.isFinite(right)) magnitude = Math.max(magnitude, Math.abs(right));
  });
  if (a.length === 0) return none;
  return {
    largest,
    relative: magnitude > 0 ? largest / magnitude : largest,
    place: coordinates(at, got.dims),
    got: a[at] as number,
    want: b[at] as number,
    off,
    count: a.length,
  };
}
