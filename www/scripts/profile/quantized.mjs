// Networks for pictures in ONNX's format whose numbers have eight bits, as onnxruntime's tools write them, with weights of no meaning.
import { tensor } from '../../test/support/onnx.mjs';
import { Builder } from './models.mjs';

const MICROSOFT = { domain: 'com.microsoft' };
const SCALE = 0.05;
const ZERO = 117;
const WEIGHT_SCALE = 0.001;

/** Values are of eight bits without a sign, weights with one. */
class Quantized extends Builder {
  constant(dims, type, data) {
    const name = this.name();
    this.initializers.push(tensor(name, dims, { type, data, typed: dims.length === 0 }));
    return name;
  }

  number(type, value) {
    return this.constant([], type, { float32: Float32Array, uint8: Uint8Array, int8: Int8Array, int32: Int32Array }[type].of(value));
  }

  /** The scale and zero of values, or of all weights. */
  values() {
    return [this.number('float32', SCALE), this.number('uint8', ZERO)];
  }

  /** Weights with their scales and zeros, one for each channel of output where there are `channels`. */
  weights(dims, channels) {
    const length = dims.reduce((a, b) => a * b, 1);
    const data = Int8Array.from({ length }, (_, i) => Math.round((Math.sin(i) / 10 / WEIGHT_SCALE) % 127));
    const scale = channels ? this.floats(...Array(channels).fill(WEIGHT_SCALE)) : this.number('float32', WEIGHT_SCALE);
    const zero = channels ? this.constant([channels], 'int8', new Int8Array(channels)) : this.number('int8', 0);
    return [this.constant(dims, 'int8', data), scale, zero];
  }

  bias(channels) {
    return this.constant(
      [channels],
      'int32',
      Int32Array.from({ length: channels }, (_, i) => i),
    );
  }

  quantize(x) {
    return this.op('QuantizeLinear', [x, ...this.values()]);
  }

  dequantize(x, form = this.values(), axis = undefined) {
    return this.op('DequantizeLinear', [x, ...form], axis === undefined ? {} : { int: { axis } });
  }

  /** An operator between floats that are rounded to eight bits on both of its sides. */
  rounded(op, inputs, attributes) {
    return this.quantize(this.op(op, inputs, attributes));
  }
}

const window = (size, stride, group) => {
  const pad = Math.floor((size - 1) / 2);
  return { ints: { kernel_shape: [size, size], strides: [stride, stride], pads: [pad, pad, pad, pad] }, int: { group } };
};

/** Every operator of a MobileNet between pairs that quantise. */
function pairs(batch, side, channelwise) {
  const b = new Quantized();
  const conv = (x, from, to, size, { stride = 1, group = 1, clip = false } = {}) => {
    const [weight, ...form] = b.weights([to, from / group, size, size], channelwise && to);
    const biasScale = channelwise ? b.floats(...Array(to).fill(SCALE * WEIGHT_SCALE)) : b.number('float32', SCALE * WEIGHT_SCALE);
    const biasZero = channelwise ? b.constant([to], 'int32', new Int32Array(to)) : b.number('int32', 0);
    const axis = channelwise ? 0 : undefined;
    const bias = b.dequantize(b.bias(to), [biasScale, biasZero], axis);
    const inputs = [b.dequantize(x), b.dequantize(weight, form, axis), bias];
    if (!clip) return b.rounded('Conv', inputs, window(size, stride, group));
    return b.quantize(b.relu6(b.op('Conv', inputs, window(size, stride, group))));
  };
  let x = conv(b.quantize('x'), 3, 16, 3, { stride: 2 });
  for (const stride of [1, 1, 2]) {
    const wide = conv(x, 16, 48, 1, { clip: true });
    const deep = conv(wide, 48, 48, 3, { stride, group: 48 });
    const narrow = conv(deep, 48, 16, 1);
    x = stride === 1 ? b.rounded('Add', [b.dequantize(x), b.dequantize(narrow)]) : narrow;
  }
  x = b.rounded('MaxPool', [b.dequantize(x)], { ints: { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] } });
  x = b.rounded('Concat', [b.dequantize(x), b.dequantize(conv(x, 16, 16, 1))], { int: { axis: 1 } });
  const pooled = b.rounded('GlobalAveragePool', [b.dequantize(x)]);
  const flat = b.rounded('Flatten', [b.dequantize(pooled)]);
  const [weight, ...form] = b.weights([10, 32]);
  const bias = b.dequantize(b.bias(10), [b.number('float32', SCALE * WEIGHT_SCALE), b.number('int32', 0)]);
  const scores = b.rounded('Gemm', [b.dequantize(flat), b.dequantize(weight, form), bias], { int: { transB: 1 } });
  return b.file([batch, 3, side, side], b.op('Softmax', [b.dequantize(scores)]));
}

/** The same with operators that compute in eight bits themselves. */
function integers(side) {
  const b = new Quantized();
  const conv = (x, from, to, size, stride = 1, group = 1) => {
    const inputs = [x, ...b.values(), ...b.weights([to, from / group, size, size]), ...b.values(), b.bias(to)];
    return b.op('QLinearConv', inputs, window(size, stride, group));
  };
  let x = conv(b.quantize('x'), 3, 16, 3, 2);
  for (const stride of [1, 1, 2]) {
    const narrow = conv(conv(conv(x, 16, 48, 1), 48, 48, 3, stride, 48), 48, 16, 1);
    const both = [x, ...b.values(), narrow, ...b.values(), ...b.values()];
    x = stride === 1 ? b.op('QLinearAdd', both, MICROSOFT) : narrow;
  }
  const pooled = b.op('QLinearGlobalAveragePool', [x, ...b.values(), ...b.values()], MICROSOFT);
  const flat = b.op('Reshape', [b.dequantize(pooled), b.ints(-1, 16)]);
  const scores = b.op('QLinearMatMul', [b.quantize(flat), ...b.values(), ...b.weights([16, 10]), ...b.values()]);
  const bias = b.constant(
    [10],
    'uint8',
    Uint8Array.from({ length: 10 }, (_, i) => i + ZERO),
  );
  const sums = b.op('QLinearAdd', [scores, ...b.values(), bias, ...b.values(), ...b.values()], MICROSOFT);
  return b.file([1, 3, side, side], b.dequantize(sums));
}

/** Weights alone are quantised; values are whenever they come, by their own largest. */
function dynamic(side) {
  const b = new Quantized();
  const half = side / 2;
  const floats = (whole, x, weight, channels) => {
    const scales = b.op('Mul', [x, weight]);
    return b.op('Add', [b.op('Mul', [b.op('Cast', [whole], { int: { to: 1 } }), scales]), b.weight(channels)]);
  };
  const [x, scale, zero] = b.op('DynamicQuantizeLinear', ['x'], {}, 3);
  const [weight, weightScale, weightZero] = b.weights([8, 3, 3, 3]);
  const whole = b.op('ConvInteger', [x, weight, zero, weightZero], window(3, 1, 1));
  const y = b.pool('MaxPool', b.op('Relu', [floats(whole, scale, weightScale, [1, 8, 1, 1])]));
  const flat = b.op('Reshape', [y, b.ints(1, half * half * 8)]);
  const [row, rowScale, rowZero] = b.op('DynamicQuantizeLinear', [flat], {}, 3);
  const [matrix, matrixScale, matrixZero] = b.weights([half * half * 8, 10]);
  const product = b.op('MatMulInteger', [row, matrix, rowZero, matrixZero]);
  return b.file([1, 3, side, side], floats(product, rowScale, matrixScale, [10]));
}

/** `[name, file, feeds]`: the dims of `x` in each run. */
export const QUANTIZED = [
  ['pairs, by channel', pairs(1, 65, true), [[1, 3, 65, 65]]],
  ['pairs, larger', pairs(1, 224, false), [[1, 3, 224, 224]]],
  [
    'pairs, several',
    pairs('N', 32, false),
    [
      [1, 3, 32, 32],
      [3, 3, 32, 32],
      [1, 3, 32, 32],
    ],
  ],
  ['integers', integers(65), [[1, 3, 65, 65]]],
  ['integers, larger', integers(224), [[1, 3, 224, 224]]],
  ['dynamic', dynamic(28), [[1, 3, 28, 28]]],
];
