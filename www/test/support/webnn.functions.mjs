// Shapes, and the functions of one and two numbers and along axes that the stand-in of WebNN (`webnn.mjs`) computes.

export const count = (shape) => shape.reduce((a, b) => a * b, 1);
const stridesOf = (shape) => shape.map((_, i) => count(shape.slice(i + 1)));
export const indices = function* (shape) {
  const n = count(shape);
  const strides = stridesOf(shape);
  for (let flat = 0; flat < n; flat++) yield shape.map((d, i) => Math.floor(flat / strides[i]) % d);
};
export const flatOf = (index, shape) => index.reduce((sum, at, i) => sum * shape[i] + at, 0);
export const must = (fits, why) => {
  if (!fits) throw new TypeError(`Failed to execute on 'MLGraphBuilder': ${why}`);
};
export const near = (n) => Math.fround(n);

function erf(x) {
  // The series of Abramowitz and Stegun 7.1.6, to the last digit for small numbers; 1 beyond.
  if (Math.abs(x) > 6) return Math.sign(x);
  let [sum, term] = [0, x];
  for (let n = 0; Math.abs(term) > 1e-18 * Math.abs(sum) || n < 3; n++) {
    sum += term;
    term *= (2 * x * x) / (2 * n + 3);
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** Functions of one number, by their names and with their options. */
export const UNARY = {
  abs: () => Math.abs,
  ceil: () => Math.ceil,
  cos: () => Math.cos,
  erf: () => erf,
  exp: () => Math.exp,
  floor: () => Math.floor,
  identity: () => (x) => x,
  log: () => Math.log,
  neg: () => (x) => -x,
  reciprocal: () => (x) => 1 / x,
  sign: () => Math.sign,
  sin: () => Math.sin,
  sqrt: () => Math.sqrt,
  tan: () => Math.tan,
  clamp: ({ minValue = -Infinity, maxValue = Infinity } = {}) => {
    must(minValue <= maxValue, 'the bounds are the wrong way round');
    return (x) => clamp(x, minValue, maxValue);
  },
  elu:
    ({ alpha = 1 } = {}) =>
    (x) =>
      x < 0 ? alpha * Math.expm1(x) : x,
  gelu: () => (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  hardSigmoid:
    ({ alpha = 0.2, beta = 0.5 } = {}) =>
    (x) =>
      clamp(alpha * x + beta, 0, 1),
  hardSwish: () => (x) => (x * clamp(x + 3, 0, 6)) / 6,
  leakyRelu:
    ({ alpha = 0.01 } = {}) =>
    (x) =>
      x < 0 ? alpha * x : x,
  relu: () => (x) => Math.max(x, 0),
  sigmoid: () => sigmoid,
  softplus: () => (x) => Math.log1p(Math.exp(x)),
  softsign: () => (x) => x / (1 + Math.abs(x)),
  tanh: () => Math.tanh,
};
export const BINARY = {
  add: (a, b) => a + b,
  div: (a, b) => a / b,
  max: Math.max,
  min: Math.min,
  mul: (a, b) => a * b,
  pow: (a, b) => a ** b,
  prelu: (x, slope) => (x < 0 ? slope * x : x),
  sub: (a, b) => a - b,
};
export const REDUCE = {
  reduceL1: [(a, x) => a + Math.abs(x), 0],
  reduceL2: [(a, x) => a + x * x, 0, Math.sqrt],
  reduceLogSum: [(a, x) => a + x, 0, Math.log],
  reduceLogSumExp: [(a, x) => a + Math.exp(x), 0, Math.log],
  reduceMax: [Math.max, -Infinity],
  reduceMean: [(a, x) => a + x, 0, (sum, n) => sum / n],
  reduceMin: [Math.min, Infinity],
  reduceProduct: [(a, x) => a * x, 1],
  reduceSum: [(a, x) => a + x, 0],
  reduceSumSquare: [(a, x) => a + x * x, 0],
};

export function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const [x = 1, y = 1] = [a[i - rank + a.length], b[i - rank + b.length]];
    must(x === y || x === 1 || y === 1, `[${a}] and [${b}] do not broadcast`);
    return Math.max(x, y);
  });
}

/** The element of `data` that is read for a place of a larger shape. */
export const reach = (data, shape, index) =>
  data[
    flatOf(
      shape.map((d, i) => (d === 1 ? 0 : index[index.length - shape.length + i])),
      shape,
    )
  ];
