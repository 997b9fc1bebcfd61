// Models like those that most pages run, with weights of no meaning: what runs of them enter is fetched by every page.
import { model, tensor } from '../../test/support/onnx.mjs';

/** Who made a file, and with what. */
const ABOUT = [
  [2, 'exporter'],
  [3, '1.0'],
  [4, 'domain'],
  [5, 1],
  [6, 'A model.'],
  [14, Buffer.from([10, 1, 97, 18, 1, 98])],
];

/** Collects the nodes and weights of one model. */
export class Builder {
  nodes = [];
  initializers = [];
  /** Whether weights are written as numbers, not as bytes. */
  typed = false;
  /** Whether a convolution's weights are computed, as in the light models of ONNX's suite. */
  alike = false;
  /** Names and dims of the weights that are floats. */
  declared = [];

  name() {
    return `v${this.nodes.length + this.initializers.length}`;
  }

  /** A weight that differs from element to element. */
  weight(dims, scale = 0.1) {
    const name = this.name();
    const floats = Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i + dims.length) * scale);
    this.initializers.push(tensor(name, dims, { data: floats, typed: this.typed }));
    this.declared.push([name, dims]);
    return name;
  }

  ints(...values) {
    const name = this.name();
    this.initializers.push(tensor(name, [values.length], { type: 'int64', data: BigInt64Array.from(values, BigInt) }));
    return name;
  }

  /** A weight whose elements are alike, which the file computes. */
  filled(dims) {
    const shape = this.ints(...dims);
    return this.op('ConstantOfShape', [shape], { tensors: { value: tensor('', [1], { floats: [0.02], typed: true }) } });
  }

  index(value) {
    const name = this.name();
    this.initializers.push(tensor(name, [], { type: 'int64', data: BigInt64Array.of(value) }));
    return name;
  }

  scalar(value) {
    const name = this.name();
    this.initializers.push(tensor(name, [], { floats: [value] }));
    return name;
  }

  op(op, inputs, attributes = {}, outputs = 1) {
    const names = Array.from({ length: outputs }, (_, i) => `${this.name()}_${i}`);
    this.nodes.push([op, inputs, names, attributes]);
    return outputs === 1 ? names[0] : names;
  }

  conv(x, from, to, size = 3, { stride = 1, group = 1, dilation = 1, bias = true, padded = true } = {}) {
    const pad = padded ? Math.floor((size - 1) / 2) * dilation : 0;
    const weight = (dims) => (this.alike ? this.filled(dims) : this.weight(dims));
    const inputs = [x, weight([to, from / group, size, size]), ...(bias ? [weight([to])] : [])];
    return this.op('Conv', inputs, {
      ints: { kernel_shape: [size, size], strides: [stride, stride], pads: [pad, pad, pad, pad], dilations: [dilation, dilation] },
      int: { group },
    });
  }

  normalized(x, channels) {
    const variance = tensor(`${this.name()}_variance`, [channels], { data: new Float32Array(channels).fill(1) });
    const name = `${this.name()}_variance`;
    this.initializers.push(variance);
    return this.op('BatchNormalization', [x, this.weight([channels]), this.weight([channels]), this.weight([channels]), name]);
  }

  relu6(x) {
    return this.op('Clip', [x, this.scalar(0), this.scalar(6)]);
  }

  pool(op, x, size = 2, stride = 2, pad = 0) {
    return this.op(op, [x], { ints: { kernel_shape: [size, size], strides: [stride, stride], pads: [pad, pad, pad, pad] } });
  }

  head(x, channels, classes, flat = 'Flatten') {
    const pooled = this.op('GlobalAveragePool', [x]);
    const row = flat === 'Flatten' ? this.op('Flatten', [pooled]) : this.op('Reshape', [pooled, this.ints(0, -1)]);
    const scores = this.op('Gemm', [row, this.weight([classes, channels]), this.weight([classes])], { int: { transB: 1 } });
    return this.op('Softmax', [scores], { int: { axis: -1 } });
  }

  floats(...values) {
    const name = this.name();
    this.initializers.push(tensor(name, [values.length], { floats: values }));
    return name;
  }

  /** The file, with one input `x` of such dimensions; an output is a name, or `[name, type, dims]`; what else a file has may come last. */
  file(dims, ...outputs) {
    const more = typeof outputs.at(-1) === 'object' && !Array.isArray(outputs.at(-1)) ? outputs.pop() : {};
    return model({
      nodes: this.nodes,
      initializers: this.initializers,
      inputs: [['x', dims]],
      outputs: outputs.map((output) => (Array.isArray(output) ? output : [output])).map(([name, type, shape]) => [name, shape, type]),
      ...more,
    });
  }
}

/** MobileNet: depthwise and pointwise convolutions, sums past them. */
function mobile(batch, side) {
  const b = new Builder();
  let x = b.relu6(b.normalized(b.conv('x', 3, 16, 3, { stride: 2, bias: false }), 16));
  for (const [from, to, stride, size] of [
    [16, 16, 1, 3],
    [16, 24, 2, 3],
    [24, 24, 1, 3],
    [24, 40, 2, 5],
    [40, 40, 1, 5],
  ]) {
    const wide = from * 4;
    let y = b.relu6(b.conv(x, from, wide, 1));
    y = b.relu6(b.conv(y, wide, wide, size, { stride, group: wide }));
    y = b.conv(y, wide, to, 1);
    x = stride === 1 && from === to ? b.op('Add', [x, y]) : y;
  }
  return b.file([batch, 3, side, side], b.head(x, 40, 100));
}

/** MobileNetV3 and EfficientNet: other activations, and gates for channels. */
function gated(side) {
  const b = new Builder();
  let x = b.op('HardSwish', [b.conv('x', 3, 16, 3, { stride: 2 })]);
  const gate = (y, channels, narrow) => {
    const mean = b.op('ReduceMean', [y], { ints: { axes: [2, 3] }, int: { keepdims: 1 } });
    const inner = b.op('Relu', [b.conv(mean, channels, 8, 1)]);
    return b.op('Mul', [y, b.op(narrow, [b.conv(inner, 8, channels, 1)])]);
  };
  x = gate(b.op('Relu', [b.conv(x, 16, 16, 3, { group: 16, stride: 2 })]), 16, 'HardSigmoid');
  const y = b.conv(x, 16, 64, 1);
  x = gate(b.op('Mul', [y, b.op('Sigmoid', [y])]), 64, 'Sigmoid');
  return b.file([1, 3, side, side], b.head(x, 64, 10, 'Reshape'));
}

/** ResNet and SqueezeNet: wide convolutions, joined channels, pooling. */
function residual(side) {
  const b = new Builder();
  let x = b.op('Relu', [b.normalized(b.conv('x', 3, 64, 7, { stride: 2, bias: false }), 64)]);
  x = b.pool('MaxPool', x, 3, 2, 1);
  const y = b.op('Relu', [b.conv(x, 64, 64, 3)]);
  x = b.op('Relu', [b.op('Add', [b.conv(y, 64, 64, 3), x])]);
  const narrow = b.op('Relu', [b.conv(x, 64, 16, 1)]);
  x = b.op('Concat', [b.op('Relu', [b.conv(narrow, 16, 64, 1)]), b.op('Relu', [b.conv(narrow, 16, 64, 3)])], { int: { axis: 1 } });
  x = b.pool('AveragePool', b.op('Dropout', [x]), 2, 2);
  x = b.op('Relu', [b.op('Add', [b.conv(x, 128, 128, 1, { stride: 2 }), b.conv(x, 128, 128, 3, { stride: 2 })])]);
  x = b.op('LeakyRelu', [b.conv(x, 128, 32, 3, { dilation: 2 })], { floats: { alpha: 0.1 } });
  return b.file([1, 3, side, side], b.head(x, 32, 1000));
}

/** ShuffleNet: channels in groups that change places. */
function shuffled(side) {
  const b = new Builder();
  let x = b.op('Relu', [b.conv('x', 3, 24, 3, { stride: 2 })]);
  const shuffle = (y, groups, channels, size) => {
    const apart = b.op('Reshape', [y, b.ints(1, groups, channels / groups, size, size)]);
    const turned = b.op('Transpose', [apart], { ints: { perm: [0, 2, 1, 3, 4] } });
    return b.op('Reshape', [turned, b.ints(1, channels, size, size)]);
  };
  const size = side / 2;
  x = b.op('Relu', [b.conv(x, 24, 48, 1, { group: 2 })]);
  x = shuffle(x, 2, 48, size);
  const [left, right] = b.op('Split', [x, b.ints(24, 24)], { int: { axis: 1 } }, 2);
  const y = b.conv(b.conv(b.op('Relu', [b.conv(left, 24, 24, 1)]), 24, 24, 3, { group: 24 }), 24, 24, 1);
  x = shuffle(b.op('Concat', [right, y], { int: { axis: 1 } }), 2, 48, size);
  const sliced = b.op('Slice', [x, b.ints(0), b.ints(24), b.ints(1)]);
  return b.file([1, 3, side, side], b.head(sliced, 24, 7));
}

/** Segmentation, super-resolution and detection: pictures grow, outputs are several. */
function decoder(side) {
  const b = new Builder();
  const shrunk = b.op('PRelu', [b.conv('x', 3, 32, 3, { stride: 2 }), b.weight([32, 1, 1])]);
  const deep = b.op('Elu', [b.conv(shrunk, 32, 32, 3, { stride: 2 })]);
  const grown = b.op('ConvTranspose', [deep, b.weight([32, 16, 2, 2]), b.weight([16])], {
    ints: { kernel_shape: [2, 2], strides: [2, 2] },
  });
  const scales = tensor('scales', [4], { floats: [1, 1, 2, 2] });
  b.initializers.push(scales);
  const near = b.op('Resize', [deep, '', 'scales'], {
    text: { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' },
  });
  const soft = b.op('Resize', [deep, '', 'scales'], { text: { mode: 'linear', coordinate_transformation_mode: 'half_pixel' } });
  const joined = b.op('Concat', [grown, near, soft, shrunk], { int: { axis: 1 } });
  const fine = b.op('Tanh', [b.conv(b.op('Pad', [joined, b.ints(0, 0, 1, 1, 0, 0, 1, 1)], { text: { mode: 'reflect' } }), 112, 12, 1)]);
  const picture = b.op('DepthToSpace', [fine], { int: { blocksize: 2 }, text: { mode: 'DCR' } });
  const mask = b.op('Sigmoid', [b.conv(joined, 112, 1, 3)]);
  const scores = b.op('Transpose', [b.conv(deep, 32, 8, 3)], { ints: { perm: [0, 2, 3, 1] } });
  const boxes = b.op('Softmax', [b.op('Reshape', [scores, b.ints(1, -1, 4)])], { int: { axis: 2 } });
  const centre = b.op('Div', [b.op('Sub', [b.op('Mul', [boxes, b.scalar(2)]), b.scalar(1)]), b.scalar(3)]);
  const first = b.op('Squeeze', [b.op('Slice', [centre, b.ints(0), b.ints(1), b.ints(2)]), b.ints(2)]);
  const best = b.op('ArgMax', [first], { int: { axis: 1, keepdims: 0 } });
  const lifted = b.op('Unsqueeze', [b.op('Exp', [first]), b.ints(0)]);
  return b.file([1, 3, side, side], picture, mask, centre, [best, 'int64'], lifted);
}

/** Layers that nothing can be fused with, and more of them than lists of few elements hold. */
function deep(batch, side, layers) {
  const b = new Builder();
  let x = b.conv('x', 3, 8, 3);
  for (let i = 0; i < layers; i++) {
    const y = b.op('PRelu', [
      b.normalized(b.op('Add', [x, b.op('AveragePool', [x], { ints: { kernel_shape: [3, 3], strides: [1, 1], pads: [1, 1, 1, 1] } })]), 8),
      b.weight([8, 1, 1]),
    ]);
    x = b.op('Concat', [b.conv(y, 8, 4, 3), b.conv(y, 8, 4, 1)], { int: { axis: 1 } });
  }
  const wide = b.op('Add', [b.pool('AveragePool', x, 8, 8), b.op('Expand', [b.weight([1, 8, 1, 1]), b.ints(1, 8, side / 8, side / 8)])]);
  const grown = b.op('Resize', [wide, '', '', b.ints(1, 8, side, side)], {
    text: { mode: 'linear', coordinate_transformation_mode: 'pytorch_half_pixel' },
  });
  const apart = b.op('Reshape', [b.op('Add', [grown, x]), b.ints(-1, 2, 2, 2, side, side)]);
  const picture = b.op('Reshape', [b.op('Transpose', [apart], { ints: { perm: [0, 1, 4, 2, 5, 3] } }), b.ints(-1, 2, 2 * side, 2 * side)]);
  const last = b.op('Transpose', [b.op('Softmax', [picture], { int: { axis: 1 } })], { ints: { perm: [0, 2, 3, 1] } });
  return b.file(
    [batch, 3, side, side],
    last,
    b.op('Softmax', [last], { int: { axis: 3 } }),
    b.op('ReduceMax', [b.op('Sqrt', [b.op('Abs', [x])])], { ints: { axes: [1] }, int: { keepdims: 1 } }),
  );
}

/** Super-resolution: much that is moved, and no layer that shrinks. */
function upscaled(side) {
  const b = new Builder();
  const x = b.op('Relu', [b.conv(b.op('Relu', [b.conv('x', 1, 8, 5)]), 8, 8, 3)]);
  const apart = b.op('Reshape', [b.conv(x, 8, 9, 3), b.ints(-1, 1, 3, 3, side, side)]);
  const turned = b.op('Transpose', [apart], { ints: { perm: [0, 1, 4, 2, 5, 3] } });
  return b.file([1, 1, side, side], b.op('Reshape', [turned, b.ints(-1, 1, 3 * side, 3 * side)]));
}

/** Inception: branches beside each other, whose tensors are of all sizes and alive together. */
function branched(side, branches) {
  const b = new Builder();
  const widths = Array.from({ length: branches }, (_, i) => 4 + ((i * 7) % branches));
  const ends = widths.map((width, i) => {
    const y = b.op(i % 2 ? 'Tanh' : 'Sigmoid', [b.conv('x', 3, width, i % 3 ? 3 : 1)]);
    return b.op('Tanh', [b.op('MaxPool', [y], { ints: { kernel_shape: [3, 3], strides: [1, 1], pads: [1, 1, 1, 1] } })]);
  });
  const joined = b.op('Concat', [...ends].reverse(), { int: { axis: 1 } });
  return b.file(
    [1, 3, side, side],
    b.head(
      joined,
      widths.reduce((a, c) => a + c, 0),
      5,
    ),
    ...ends.slice(0, 30),
  );
}

/** As exporters wrote it before there were inputs for what had been attributes: weights as numbers, constants as nodes. */
function older(opset, side) {
  const b = new Builder();
  b.typed = true;
  const clip = (x) => (opset < 11 ? b.op('Clip', [x], { floats: { min: 0, max: 6 } }) : b.relu6(x));
  const constant = (...values) =>
    b.op('Constant', [], {
      tensors: { value: tensor('', [values.length], { type: 'int64', data: BigInt64Array.from(values, BigInt), typed: true }) },
    });
  let x = clip(b.normalized(b.conv('x', 3, 32, 3, { stride: 2, bias: false }), 32));
  x = clip(b.conv(x, 32, 32, 3, { group: 32 }));
  x = b.op('Relu', [b.conv(x, 32, 37, 1)]);
  // Nothing that it could be folded into.
  x = b.normalized(b.op('MaxPool', [x], { ints: { kernel_shape: [2, 2], strides: [2, 2] } }), 37);
  const [left, right] = b.op('Split', [x], { ints: { split: [18, 19] }, int: { axis: 1 } }, 2);
  const padded =
    opset < 11 ? b.op('Pad', [left], { ints: { pads: [0, 0, 1, 1, 0, 0, 1, 1] } }) : b.op('Pad', [left, constant(0, 0, 1, 1, 0, 0, 1, 1)]);
  const sliced =
    opset < 10
      ? b.op('Slice', [padded], { ints: { starts: [1, 1], ends: [-1, -1], axes: [2, 3] } })
      : b.op('Slice', [padded, constant(1, 1), constant(-1, -1), constant(2, 3)]);
  x = b.op('Concat', [right, sliced], { int: { axis: 1 } });
  const zeros = opset < 9 ? b.weight([1, 37, 1, 1]) : b.op('ConstantOfShape', [b.ints(1, 37, 1, 1)]);
  x = b.op('Sum', [x, b.conv(x, 37, 37, 1), zeros]);
  const grown =
    opset < 9
      ? x
      : b.op(opset < 10 ? 'Upsample' : 'Resize', opset < 11 ? [x, b.floats(1, 1, 2, 2)] : [x, '', b.floats(1, 1, 2, 2)], {
          text: { mode: 'nearest' },
        });
  const mask = b.op('Softmax', [b.conv(grown, 37, 2, 3)], { int: { axis: 1 } });
  const mean = b.op('ReduceMean', [x], { ints: { axes: [2, 3] }, int: { keepdims: 0 } });
  const thin = b.op('Squeeze', [b.op('Unsqueeze', [mean], { ints: { axes: [2] } })], { ints: { axes: [2] } });
  const [row] = b.op('Dropout', [b.op('Reshape', [thin, constant(1, -1)])], opset < 12 ? { floats: { ratio: 0.5 } } : {}, 2);
  const scores = b.op('Gemm', [row, b.weight([37, 10]), b.weight([10])]);
  // Boxes of several grids, beside each other, with their scores.
  const boxes = [
    [x, 4],
    [grown, 4],
    [x, 2],
  ].map(([y, n]) => b.op('Reshape', [b.op('Transpose', [b.conv(y, 37, 2 * n, 3)], { ints: { perm: [0, 2, 3, 1] } }), constant(1, -1, 2)]));
  const joined = b.op('Concat', boxes, { int: { axis: 1 } });
  return b.file([1, 3, side, side], mask, b.op('Softmax', [scores]), b.op('Softmax', [joined], { int: { axis: 2 } }), {
    opset,
    values: [[thin, [1, 37]]],
    about: ABOUT,
  });
}

/** Detection as PyTorch exports it, with sizes that it computes: boxes of several grids, and what they are in the picture. */
function boxes([height, width], opset) {
  const b = new Builder();
  const old = opset < 11;
  const constant = (dims, type, data) => b.op('Constant', [], { tensors: { value: tensor('', dims, { type, data }) } });
  const index = (value) => (old ? constant([], 'int64', BigInt64Array.of(value)) : b.index(value));
  const number = (value) => (old ? constant([], 'float32', Float32Array.of(value)) : b.scalar(value));
  const vector = (size) => (old ? b.op('Unsqueeze', [size], { ints: { axes: [0] } }) : b.op('Unsqueeze', [size, b.ints(0)]));
  const apart = (x, channels, stride) => b.op('Relu', [b.conv(x, channels, channels, 3, { stride, group: channels })]);
  const grids = [b.op('Relu', [b.normalized(b.conv('x', 3, 16, 3, { stride: 2, bias: false }), 16)])];
  grids.push(b.op('Relu', [b.conv(grids[0], 16, 16, 3, { stride: 2 })]));
  grids.push(b.op('Relu', [b.conv(apart(grids[1], 16, 2), 16, 64, 1)]));
  grids.push(b.op('Relu', [b.normalized(b.conv(apart(grids[2], 64, 2), 64, 64, 3, { bias: false }), 64)]));
  const channels = [16, 16, 64, 64];
  const lists = (numbers) =>
    grids.map((grid, i) => {
      const last = i === 3;
      const values = last ? b.conv(grid, 64, 3 * numbers, 3) : b.conv(apart(grid, channels[i], 1), channels[i], 2 * numbers, 1);
      const turned = b.op('Transpose', [values], { ints: { perm: [0, 2, 3, 1] } });
      const batch = b.op('Gather', [b.op('Shape', [turned]), index(0n)], { int: { axis: 0 } });
      const sizes = [batch, index(-1n), index(BigInt(numbers))].map(vector);
      return b.op('Reshape', [turned, b.op('Concat', sizes, { int: { axis: 0 } })]);
    });
  const [scores, all] = [2, 4].map((numbers) => b.op('Concat', lists(numbers), { int: { axis: 1 } }));
  const half = (x, second) => {
    const [from, to] = second ? [2n, (1n << 63n) - 1n] : [0n, 2n];
    if (old) return b.op('Slice', [x], { ints: { axes: [2], starts: [from], ends: [to] } });
    return b.op('Slice', [x, b.ints(from), b.ints(to), b.ints(2)]);
  };
  const places = grids.reduce(
    (sum, _, i) => sum + (i === 3 ? 3 : 2) * Math.ceil(height / 2 ** (i + 1)) * Math.ceil(width / 2 ** (i + 1)),
    0,
  );
  const anchors = constant([1, places, 2], 'float32', new Float32Array(2 * places).fill(0.3));
  const centres = b.op('Add', [b.op('Mul', [b.op('Mul', [half(all, false), number(0.1)]), anchors]), anchors]);
  const sides = b.op('Mul', [b.op('Exp', [b.op('Mul', [half(all, true), number(0.2)])]), anchors]);
  const found = b.op('Concat', [centres, sides], { int: { axis: 2 } });
  const reach = () => b.op('Div', [half(found, true), number(2)]);
  const corners = ['Sub', 'Add'].map((op) => b.op(op, [half(found, false), reach()]));
  const described = old ? { opset, about: [[2, 'pytorch']], inputs: [['x', [1, 3, height, width]], ...b.declared] } : { opset };
  return b.file(
    [1, 3, height, width],
    [b.op('Softmax', [scores], { int: { axis: 2 } }), 'float32', [1, places, 2]],
    [b.op('Concat', corners, { int: { axis: 2 } }), 'float32', [1, places, 4]],
    described,
  );
}

/** SqueezeNet as PyTorch's first exporter wrote it: weights are inputs, too, and channels are joined to the end, where scores are places. */
function squeezed(side, classes, alike) {
  const b = new Builder();
  Object.assign(b, { alike, typed: true });
  const fire = (x, from, narrow, wide) => {
    const y = b.op('Relu', [b.conv(x, from, narrow, 1)]);
    const ends = [1, 3].map((size) => b.op('Relu', [b.conv(y, narrow, wide, size)]));
    return b.op('Concat', ends, { int: { axis: 1 } });
  };
  let x = b.pool('MaxPool', b.op('Relu', [b.conv('x', 3, 96, 7, { stride: 2, padded: false })]), 3, 2);
  x = fire(fire(fire(x, 96, 16, 64), 128, 16, 64), 128, 32, 128);
  x = b.pool('MaxPool', x, 3, 2);
  x = fire(fire(fire(fire(x, 256, 32, 128), 256, 48, 192), 384, 48, 192), 384, 64, 256);
  x = fire(b.pool('MaxPool', x, 3, 2), 512, 64, 256);
  const [kept] = b.op('Dropout', [x], { floats: { ratio: 0.5 } }, 2);
  const scores = b.op('GlobalAveragePool', [b.op('Relu', [b.conv(kept, 512, classes, 1)])]);
  return b.file([1, 3, side, side], b.op('Softmax', [scores]), { opset: 8, inputs: [['x', [1, 3, side, side]], ...b.declared] });
}

/** Layers of products: what Keras and PyTorch users export first. */
function dense(batch) {
  const b = new Builder();
  let x = b.op('Relu', [b.op('Add', [b.op('MatMul', ['x', b.weight([28, 64])]), b.weight([64])])]);
  x = b.op('Tanh', [b.op('Gemm', [x, b.weight([64, 33]), b.weight([33])])]);
  x = b.op('Sigmoid', [b.op('Gemm', [x, b.weight([5, 33]), b.weight([5])], { int: { transB: 1 } })]);
  return b.file([batch, 28], b.op('LogSoftmax', [b.op('Identity', [x])]));
}

/** `[name, file, feeds]`: the dims of `x` in each run. */
export const PICTURES = [
  ['mobile', mobile(1, 65), [[1, 3, 65, 65]]],
  [
    'mobile, several',
    mobile('N', 32),
    [
      [1, 3, 32, 32],
      [3, 3, 32, 32],
      [2, 3, 32, 32],
      [5, 3, 32, 32],
      [1, 3, 32, 32],
    ],
  ],
  ['gated', gated(64), [[1, 3, 64, 64]]],
  ['residual', residual(96), [[1, 3, 96, 96]]],
  [
    'residual, of any size',
    residual('S'),
    [
      [1, 3, 57, 57],
      [1, 3, 96, 96],
    ],
  ],
  ['shuffled', shuffled(32), [[1, 3, 32, 32]]],
  ['decoder', decoder(48), [[1, 3, 48, 48]]],
  [
    'deep',
    deep('N', 32, 24),
    [
      [1, 3, 32, 32],
      [2, 3, 32, 32],
    ],
  ],
  ['deeper', deep(1, 16, 60), [[1, 3, 16, 16]]],
  ['upscaled', upscaled(224), [[1, 1, 224, 224]]],
  ['branched', branched(24, 50), [[1, 3, 24, 24]]],
  ['of opset 7', older(7, 40), [[1, 3, 40, 40]]],
  ['of opset 9', older(9, 48), [[1, 3, 48, 48]]],
  ['of opset 12', older(12, 56), [[1, 3, 56, 56]]],
  ['boxes', boxes([32, 32], 17), [[1, 3, 32, 32]]],
  ['boxes of opset 9', boxes([240, 320], 9), [[1, 3, 240, 320]]],
  ['squeezed', squeezed(64, 1000, false), [[1, 3, 64, 64]]],
  ['squeezed, light', squeezed(224, 1000, true), [[1, 3, 224, 224]]],
  ['dense', dense(1), [[1, 28]]],
  [
    'dense, several',
    dense('N'),
    [
      [1, 28],
      [5, 28],
    ],
  ],
];
