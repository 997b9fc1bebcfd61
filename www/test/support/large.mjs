// Models of files that are large enough to be read where they lie.
import { graph, message, tensor } from './onnx.mjs';

/** Rows and columns of a matrix. */
export const SIDE = 2048;
const BYTES = 4 * SIDE * SIDE;

/** Numbers without order, small enough that products of rows stay small. */
function numbers(seed) {
  const data = new Float32Array(SIDE * SIDE);
  let state = seed + 1;
  for (let i = 0; i < data.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = (state / 2 ** 32 - 0.5) / 16;
  }
  return data;
}

/** `layers` products of `rows` rows: the bytes of the model, and of its weights where they are in another file, `location`. */
export function products({ layers = 3, rows = 1, location } = {}) {
  const matrices = Array.from({ length: layers }, (_, i) => numbers(i));
  const bytes = message(
    [1, 8],
    [
      7,
      graph({
        nodes: matrices.map((_, i) => ['MatMul', [`x${i}`, `w${i}`], [`x${i + 1}`]]),
        inputs: [['x0', [rows, SIDE]]],
        outputs: [[`x${layers}`, [rows, SIDE]]],
        initializers: matrices.map((data, i) => tensor(`w${i}`, [SIDE, SIDE], location ? { location, offset: i * BYTES } : { data })),
      }),
    ],
    [8, message([1, ''], [2, 17])],
  );
  const weights = location && Buffer.concat(matrices.map((data) => new Uint8Array(data.buffer)));
  return { bytes, weights };
}
