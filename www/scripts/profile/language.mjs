// Transformers as exporters write them, with weights of no meaning: what runs of them enter belongs to the part `language`.
import { tensor } from '../../test/support/onnx.mjs';
import { Builder } from './models.mjs';

const SIZE = 8;
const WORDS = 50;
const FAR = -3.4028234663852886e38;

/** Nodes that transformers are made of. Shapes are computed from those of the inputs where exporters do that. */
class Transformer extends Builder {
  /** Of `heads` heads of `size` numbers. */
  constructor(heads = 4, size = SIZE) {
    super();
    Object.assign(this, { heads, size, wide: heads * size });
  }

  linear(x, from, to, { bias = true } = {}) {
    const product = this.op('MatMul', [x, this.weight([from, to])]);
    return bias ? this.op('Add', [this.weight([to]), product]) : product;
  }

  axes(op, x, ...axes) {
    return this.op(op, [x, this.ints(...axes)]);
  }

  /** Dimension `axis` of `x`, as a vector. */
  dim(x, axis) {
    return this.axes('Unsqueeze', this.op('Gather', [this.op('Shape', [x]), this.constant(axis)], { int: { axis: 0 } }), 0);
  }

  constant(value) {
    const name = this.name();
    this.initializers.push(tensor(name, [], { type: 'int64', data: BigInt64Array.of(BigInt(value)) }));
    return name;
  }

  /** `x` with a shape of numbers and of vectors that were computed. */
  reshape(x, ...dims) {
    const parts = dims.map((d) => (typeof d === 'number' ? this.ints(d) : d));
    return this.op('Reshape', [x, this.op('Concat', parts, { int: { axis: 0 } })]);
  }

  transpose(x, ...perm) {
    return this.op('Transpose', [x], { ints: { perm } });
  }

  mean(x) {
    return this.op('ReduceMean', [x], { ints: { axes: [-1] }, int: { keepdims: 1 } });
  }

  /** Written out before opset 17. */
  layerNorm(x, { whole = false } = {}) {
    if (whole) {
      return this.op('LayerNormalization', [x, this.weight([this.wide]), this.weight([this.wide])], {
        int: { axis: -1 },
        floats: { epsilon: 1e-5 },
      });
    }
    const centred = this.op('Sub', [x, this.mean(x)]);
    const variance = this.mean(this.op('Pow', [centred, this.scalar(2)]));
    const root = this.op('Sqrt', [this.op('Add', [variance, this.scalar(1e-5)])]);
    const scaled = this.op('Mul', [this.op('Div', [centred, root]), this.weight([this.wide])]);
    return this.op('Add', [scaled, this.weight([this.wide])]);
  }

  rmsNorm(x, wide = this.wide) {
    const square = this.mean(this.op('Pow', [x, this.scalar(2)]));
    const root = this.op('Sqrt', [this.op('Add', [square, this.scalar(1e-6)])]);
    return this.op('Mul', [this.weight([wide]), this.op('Mul', [x, this.op('Div', [this.scalar(1), root])])]);
  }

  gelu(x, { tanh = false } = {}) {
    if (tanh) {
      const cube = this.op('Mul', [this.op('Pow', [x, this.scalar(3)]), this.scalar(0.044714998453855515)]);
      const inner = this.op('Mul', [this.op('Add', [x, cube]), this.scalar(0.7978845834732056)]);
      const one = this.op('Add', [this.op('Tanh', [inner]), this.scalar(1)]);
      return this.op('Mul', [this.op('Mul', [x, this.scalar(0.5)]), one]);
    }
    const erf = this.op('Erf', [this.op('Div', [x, this.scalar(Math.SQRT2)])]);
    return this.op('Mul', [this.op('Mul', [x, this.op('Add', [erf, this.scalar(1)])]), this.scalar(0.5)]);
  }

  /** `x` `[batch, length, wide]` as heads. */
  apart(x, [batch, length], perm = [0, 2, 1, 3], heads = this.heads) {
    return this.transpose(this.reshape(x, batch, length, heads, this.size), ...perm);
  }

  /** Attention of heads; keys are `[.., size, keys]`. */
  attention(query, key, value, mask, scale = this.scalar(Math.sqrt(this.size))) {
    let scores = this.op('Div', [this.op('MatMul', [query, key]), scale]);
    if (mask) scores = this.op('Add', [scores, mask]);
    return this.op('MatMul', [this.op('Softmax', [scores], { int: { axis: -1 } }), value]);
  }

  merged(x, [batch, length]) {
    return this.reshape(this.transpose(x, 0, 2, 1, 3), batch, length, this.wide);
  }

  layer(x, dims, mask, options = {}, from = x, fromDims = dims) {
    const query = this.apart(this.linear(x, this.wide, this.wide), dims);
    const key = this.apart(this.linear(from, this.wide, this.wide), fromDims, [0, 2, 3, 1]);
    const value = this.apart(this.linear(from, this.wide, this.wide), fromDims);
    const mixed = this.merged(this.attention(query, key, value, mask), dims);
    return this.layerNorm(this.op('Add', [this.linear(mixed, this.wide, this.wide), x]), options);
  }

  feedForward(x, options = {}) {
    const inner = this.gelu(this.linear(x, this.wide, 2 * this.wide), options);
    return this.layerNorm(this.op('Add', [this.linear(inner, 2 * this.wide, this.wide), x]), options);
  }

  words(ids) {
    return this.op('Gather', [this.weight([WORDS, this.wide]), ids]);
  }

  cast(x, to) {
    return this.op('Cast', [x], { int: { to } });
  }

  /** A file of several inputs `[name, dims, type]`. */
  files(inputs, outputs, opset) {
    return this.file([], ...outputs, { inputs, opset });
  }
}

const IDS = ['batch', 'sequence'];
const MASKED = [
  ['input_ids', IDS, 'int64'],
  ['attention_mask', IDS, 'int64'],
];

/** BERT and its kin: words, positions, a mask of padding, and what is taken of the last layer. */
function encoder(opset, { whole = false, tanh = false } = {}) {
  const b = new Transformer();
  const options = { whole, tanh };
  const dims = [b.dim('input_ids', 0), b.dim('input_ids', 1)];
  const places = b.op('Slice', [b.weight([1, 64, b.wide]), b.ints(0), dims[1], b.ints(1)]);
  const kinds = b.op('Gather', [b.weight([2, b.wide]), 'token_type_ids']);
  let x = b.layerNorm(b.op('Add', [b.op('Add', [b.words('input_ids'), kinds]), places]), options);
  const seen = b.cast(b.axes('Unsqueeze', 'attention_mask', 1, 2), 1);
  const mask = b.op('Mul', [b.op('Sub', [b.scalar(1), seen]), b.scalar(FAR)]);
  for (let i = 0; i < 2; i++) x = b.feedForward(b.layer(x, dims, mask, options), options);
  // The mean of what is no padding, of length one.
  const spread = b.op('Expand', [b.axes('Unsqueeze', 'attention_mask', -1), b.op('Shape', [x])]);
  const weights = b.cast(spread, 1);
  const sums = [b.op('Mul', [x, weights]), weights].map((of) => b.op('ReduceSum', [of, b.ints(1)], { int: { keepdims: 0 } }));
  const mean = b.op('Div', [sums[0], b.op('Clip', [sums[1], b.scalar(1e-9)])]);
  const length = b.op('ReduceL2', [mean], { ints: { axes: [1] }, int: { keepdims: 1 } });
  const unit = b.op('Div', [mean, b.op('Expand', [b.op('Clip', [length, b.scalar(1e-12)]), b.op('Shape', [mean])])]);
  // The first word's, for a class.
  const first = b.op('Gather', [x, b.constant(0)], { int: { axis: 1 } });
  const pooled = b.op('Tanh', [b.op('Gemm', [first, b.weight([b.wide, b.wide]), b.weight([b.wide])], { int: { transB: 1 } })]);
  const scores = b.op('Gemm', [pooled, b.weight([3, b.wide]), b.weight([3])], { int: { transB: 1 } });
  const kind = ['token_type_ids', IDS, 'int64'];
  return b.files([...MASKED, kind], [x, unit, b.op('Softmax', [scores], { int: { axis: -1 } }), b.linear(x, b.wide, 2)], opset);
}

/** Of fixed sizes, with the layers of newer opsets. */
function fixed(length, heads, size) {
  const b = new Transformer(heads, size);
  const dims = [1, length];
  let x = 'embeddings';
  for (let i = 0; i < 3; i++) x = b.feedForward(b.layer(x, dims, undefined, { whole: true }), { whole: true });
  return b.files([['embeddings', [1, length, b.wide]]], [x], 17);
}

/** Queries, keys and values of one product, taken apart; pictures in patches, or sound in columns. */
function perceiving(kind) {
  const b = new Transformer();
  let x;
  if (kind === 'picture') {
    const patches = b.op('Conv', ['x', b.weight([b.wide, 3, 8, 8]), b.weight([b.wide])], {
      ints: { kernel_shape: [8, 8], strides: [8, 8] },
    });
    const row = b.transpose(b.reshape(patches, b.dim(patches, 0), b.dim(patches, 1), -1), 0, 2, 1);
    // PyTorch's `expand(batch, -1, -1)`.
    const wanted = b.op('Concat', [b.dim('x', 0), b.ints(-1), b.ints(-1)], { int: { axis: 0 } });
    const one = tensor('', [1], { type: 'int64', data: BigInt64Array.of(1n) });
    const ones = b.op('ConstantOfShape', [b.ints(3)], { tensors: { value: one } });
    const same = b.op('Equal', [wanted, b.op('Mul', [ones, b.constant(-1)])]);
    const first = b.op('Expand', [b.weight([1, 1, b.wide]), b.op('Where', [same, ones, wanted])]);
    x = b.op('Add', [b.op('Concat', [first, row], { int: { axis: 1 } }), b.weight([1, 17, b.wide])]);
  } else {
    const column = (y, from, stride) =>
      b.gelu(
        b.op('Conv', [y, b.weight([b.wide, from, 3]), b.weight([b.wide])], {
          ints: { kernel_shape: [3], strides: [stride], pads: [1, 1] },
        }),
      );
    x = b.op('Add', [b.transpose(column(column('x', 20, 1), b.wide, 2), 0, 2, 1), b.weight([16, b.wide])]);
  }
  const dims = [b.dim(x, 0), b.dim(x, 1)];
  const all = b.reshape(b.linear(b.layerNorm(x, { whole: true }), b.wide, 3 * b.wide), dims[0], dims[1], 3, b.heads, SIZE);
  const parts = b.op('Split', [b.transpose(all, 2, 0, 3, 1, 4), b.ints(1, 1, 1)], { int: { axis: 0 } }, 3);
  const [query, key, value] = parts.map((part) => b.axes('Squeeze', part, 0));
  const scaled = b.op('Mul', [query, b.scalar(SIZE ** -0.25)]);
  const turned = b.op('Mul', [b.transpose(key, 0, 1, 3, 2), b.scalar(SIZE ** -0.25)]);
  const weights = b.op('Softmax', [b.op('MatMul', [scaled, turned])], { int: { axis: -1 } });
  x = b.op('Add', [x, b.linear(b.merged(b.op('MatMul', [weights, value]), dims), b.wide, b.wide)]);
  x = b.feedForward(x, { whole: true, tanh: kind === 'picture' });
  const dim = kind === 'picture' ? [['x', ['batch', 3, 32, 32]]] : [['x', ['batch', 20, 32]]];
  return b.files(dim, [x, b.op('ReduceMean', [x], { ints: { axes: [1] }, int: { keepdims: 0 } })], 17);
}

/** Llama and its kin with growing caches, as Optimum and PyTorch write them out. `keyHeads` are shared by the heads; the numbers of a pair
 * that turns stand in two halves, beside each other, or in a dimension of their own. */
function decoder(keyHeads, pairs = 'halves') {
  const b = new Transformer();
  const dims = [b.dim('input_ids', 0), b.dim('input_ids', 1)];
  let x = b.words('input_ids');
  const before = b.op('Gather', [b.op('Shape', ['past_key_values.0.key']), b.constant(2)], { int: { axis: 0 } });
  const now = b.op('Gather', [b.op('Shape', ['input_ids']), b.constant(1)], { int: { axis: 0 } });
  const end = b.op('Add', [before, now]);
  const [zero, one] = [b.constant(0), b.constant(1)];
  const queries = b.op('Range', [before, end, one]);
  const keys = b.op('Range', [zero, end, one]);
  const later = b.op('Greater', [b.axes('Unsqueeze', keys, 0), b.axes('Unsqueeze', queries, 1)]);
  const padding = b.op('Equal', [b.axes('Unsqueeze', 'attention_mask', 1, 2), zero]);
  const hidden = b.op('Or', [b.axes('Unsqueeze', later, 0, 1), padding]);
  const mask = b.op('Where', [hidden, b.scalar(FAR), b.scalar(0)]);
  const angles = b.op('MatMul', [b.weight([1, SIZE / 2, 1]), b.cast(b.axes('Unsqueeze', 'position_ids', 1), 1)]);
  const turned = b.transpose(angles, 0, 2, 1);
  const each = pairs === 'apart' ? turned : b.op('Concat', [turned, turned], { int: { axis: -1 } });
  const [cosines, sines] = ['Cos', 'Sin'].map((f) => b.axes('Unsqueeze', b.op(f, [each]), 1));
  const cut = (y, start, stop, step) => b.op('Slice', [y, b.ints(start), b.ints(stop), b.ints(3), b.ints(step)]);
  const rotated = (y) => {
    let around;
    if (pairs === 'apart') {
      const whole = b.op('Reshape', [y, b.ints(0, 0, 0, -1, 2)]);
      const [first, second] = b.op('Split', [whole], { int: { axis: -1 } }, 2).map((side) => b.axes('Squeeze', side, -1));
      const times = (p, q) => b.op('Mul', [p, q]);
      const real = b.op('Sub', [times(first, cosines), times(second, sines)]);
      const imaginary = b.op('Add', [times(first, sines), times(second, cosines)]);
      const joined = b.op(
        'Concat',
        [real, imaginary].map((side) => b.axes('Unsqueeze', side, -1)),
        { int: { axis: -1 } },
      );
      return b.op('Reshape', [joined, b.ints(0, 0, 0, -1)]);
    }
    if (pairs === 'halves') {
      const negated = b.op('Neg', [cut(y, SIZE / 2, Number.MAX_SAFE_INTEGER, 1)]);
      around = b.op('Concat', [negated, cut(y, 0, SIZE / 2, 1)], { int: { axis: -1 } });
    } else {
      const pair = [b.op('Neg', [cut(y, 1, SIZE, 2)]), cut(y, 0, SIZE, 2)].map((side) => b.axes('Unsqueeze', side, -1));
      const stacked = b.op('Concat', pair, { int: { axis: -1 } });
      around = b.op('Reshape', [stacked, b.op('Shape', [y])]);
    }
    return b.op('Add', [b.op('Mul', [y, cosines]), b.op('Mul', [around, sines])]);
  };
  const repeated = (y) => {
    if (keyHeads === b.heads) return y;
    const length = b.dim(y, 2);
    const shape = b.op('Concat', [dims[0], b.ints(keyHeads), b.ints(b.heads / keyHeads), length, b.ints(SIZE)], { int: { axis: 0 } });
    return b.reshape(b.op('Expand', [b.axes('Unsqueeze', y, 2), shape]), dims[0], b.heads, length, SIZE);
  };
  const presents = [];
  for (let i = 0; i < 2; i++) {
    const y = b.rmsNorm(x);
    const query = rotated(b.rmsNorm(b.apart(b.linear(y, b.wide, b.wide, { bias: false }), dims), SIZE));
    let key = rotated(b.apart(b.linear(y, b.wide, keyHeads * SIZE), dims, undefined, keyHeads));
    let value = b.apart(b.linear(y, b.wide, keyHeads * SIZE), dims, undefined, keyHeads);
    key = b.op('Concat', [`past_key_values.${i}.key`, key], { int: { axis: 2 } });
    value = b.op('Concat', [`past_key_values.${i}.value`, value], { int: { axis: 2 } });
    presents.push(key, value);
    const mixed = b.attention(query, b.transpose(repeated(key), 0, 1, 3, 2), repeated(value), mask);
    x = b.op('Add', [x, b.linear(b.merged(mixed, dims), b.wide, b.wide, { bias: false })]);
    const z = b.rmsNorm(x);
    const gate = b.linear(z, b.wide, 2 * b.wide, { bias: false });
    const open = b.op('Mul', [gate, b.op('Sigmoid', [gate])]);
    const inner = b.op('Mul', [open, b.linear(z, b.wide, 2 * b.wide, { bias: false })]);
    x = b.op('Add', [x, b.linear(inner, 2 * b.wide, b.wide, { bias: false })]);
  }
  const pasts = [0, 1].flatMap((i) => ['key', 'value'].map((what) => [`past_key_values.${i}.${what}`, ['batch', keyHeads, 'past', SIZE]]));
  const mask1 = ['attention_mask', ['batch', 'past + sequence'], 'int64'];
  const inputs = [MASKED[0], mask1, ['position_ids', IDS, 'int64'], ...pasts];
  return b.files(inputs, [b.linear(b.rmsNorm(x), b.wide, WORDS, { bias: false }), ...presents], 14);
}

/** Encoder and decoder: what the decoder reads of the encoder is read by its attention. */
function crossed() {
  const b = new Transformer();
  const dims = [b.dim('input_ids', 0), b.dim('input_ids', 1)];
  const length = b.op('Gather', [b.op('Shape', ['input_ids']), b.constant(1)], { int: { axis: 0 } });
  const square = b.op('Concat', [b.axes('Unsqueeze', length, 0), b.axes('Unsqueeze', length, 0)], { int: { axis: 0 } });
  const causal = b.op('Trilu', [b.op('Expand', [b.scalar(FAR), square]), b.constant(1)], { int: { upper: 1 } });
  const from = [b.dim('states', 0), b.dim('states', 1)];
  let x = b.op('Add', [
    b.words('input_ids'),
    b.op('Gather', [b.weight([64, b.wide]), b.op('Range', [b.constant(0), length, b.constant(1)])]),
  ]);
  x = b.layer(x, dims, causal, { whole: true });
  x = b.feedForward(b.layer(x, dims, undefined, { whole: true }, 'states', from), { whole: true });
  const last = b.op('Gather', [x, b.constant(-1)], { int: { axis: 1 } });
  const best = b.op('ArgMax', [last], { int: { axis: -1 } });
  return b.files([MASKED[0], ['states', ['batch', 'frames', b.wide]]], [b.linear(x, b.wide, WORDS), [best, 'int64']], 17);
}

const ids = (...dims) => [dims, dims, dims];
const step = (batch, past, sequence, keyHeads) => [
  [batch, sequence],
  [batch, past + sequence],
  [batch, sequence],
  ...Array(4).fill([batch, keyHeads, past, SIZE]),
];
const steps = (keyHeads) =>
  [
    [1, 0, 5],
    [1, 5, 1],
    [1, 6, 1],
    [1, 7, 1],
    [1, 8, 3],
    [2, 3, 4],
    [1, 0, 40],
  ].map(([b, p, s]) => step(b, p, s, keyHeads));

/** `[file, runs]`: the dims of every input in each run. */
export const TRANSFORMERS = [
  [encoder(14), [ids(1, 7), ids(1, 7), ids(2, 9), ids(1, 48)]],
  [encoder(17, { whole: true, tanh: true }), [ids(1, 12), ids(3, 5)]],
  [fixed(32, 4, SIZE), [[[1, 32, 32]]]],
  [fixed(128, 12, 32), [[[1, 128, 384]]]],
  [perceiving('picture'), [[[1, 3, 32, 32]], [[2, 3, 32, 32]]]],
  [perceiving('sound'), [[[1, 20, 32]]]],
  [decoder(4), steps(4)],
  [decoder(2), steps(2)],
  [decoder(2, 'beside'), steps(2)],
  [decoder(2, 'apart'), steps(2)],
  [
    crossed(),
    [
      [
        [1, 4],
        [1, 16, 32],
      ],
      [
        [1, 5],
        [1, 16, 32],
      ],
    ],
  ],
];
