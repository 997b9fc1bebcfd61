// Networks for pictures in TFLite's format, with weights of no meaning: in floats, and in numbers of eight bits. Numbers of fields,
// operators and options are those of TFLite's schema.fbs.

/** A FlatBuffer of tables (lists of fields), vectors (`{ of: [...] }`), numbers of four bytes, long ones, bytes and texts. */
class Writer {
  bytes = [];

  word(at, value) {
    new Uint8Array(Int32Array.of(value).buffer).forEach((byte, i) => {
      this.bytes[at + i] = byte;
    });
  }

  align(to, before = 0) {
    while ((this.bytes.length + before) % to) this.bytes.push(0);
  }

  /** Writes a value after all that was written, and gives its place. */
  put(value) {
    if (Array.isArray(value)) return this.table(value);
    if (typeof value === 'string') return this.vector([...Buffer.from(value), 0], value.length, 1);
    if (value instanceof BigInt64Array) return this.vector([...new Uint8Array(value.buffer)], value.length, 8);
    if (value instanceof Uint8Array) return this.vector([...value], value.length, 16);
    const at = this.vector([], value.of.length, 4);
    this.fill(value.of);
    return at;
  }

  vector(bytes, length, alignment) {
    this.align(Math.max(alignment, 4), 4);
    const at = this.bytes.length;
    this.bytes.push(0, 0, 0, 0);
    this.word(at, length);
    for (const byte of bytes) this.bytes.push(byte);
    return at;
  }

  table(fields) {
    this.align(4);
    const offsets = [4 + 2 * fields.length, 4 + 4 * fields.length, ...fields.map((field, i) => (field === undefined ? 0 : 4 + 4 * i))];
    const list = this.bytes.length;
    this.bytes.push(...offsets.flatMap((offset) => [offset & 255, offset >> 8]));
    this.align(4);
    const at = this.bytes.length;
    this.bytes.push(0, 0, 0, 0);
    this.word(at, at - list);
    this.fill(fields);
    return at;
  }

  fill(values) {
    const first = this.bytes.length;
    for (const value of values) this.bytes.push(...new Uint8Array(Int32Array.of(typeof value === 'number' ? value : 0).buffer));
    for (const [i, value] of values.entries()) {
      const at = first + 4 * i;
      if (typeof value === 'object' || typeof value === 'string') this.word(at, this.put(value) - at);
    }
  }

  static file(root) {
    const writer = new Writer();
    writer.bytes.push(0, 0, 0, 0, ...Buffer.from('TFL3'));
    writer.word(0, writer.put(root));
    return Uint8Array.from(writer.bytes);
  }
}

const FLOAT32 = 0;
const INT32 = 2;
const INT64 = 4;
/** What a network's numbers are: their type, where they are of eight bits with their arrays and the zero of their values and weights. */
const FLOATS = { type: FLOAT32 };
const UINT8 = { type: 3, Numbers: Uint8Array, zero: 117, weightZero: 128, least: 0, most: 255 };
/** As behind activations without negative numbers. */
const POSITIVE = { ...UINT8, zero: 0 };
const INT8 = { type: 9, Numbers: Int8Array, zero: -5, weightZero: 0, least: -128, most: 127 };
const SCALE = 0.05;
const WEIGHT_SCALE = 0.001;
/** Numbers of operators, and of the kinds of their options. */
const OPERATORS = {
  ADD: [0, 11],
  AVERAGE_POOL_2D: [1, 5],
  CONCATENATION: [2, 10],
  CONV_2D: [3, 1],
  DEPTHWISE_CONV_2D: [4, 2],
  FULLY_CONNECTED: [9, 8],
  DEQUANTIZE: [6, 0],
  LOGISTIC: [14, 0],
  MAX_POOL_2D: [17, 5],
  MUL: [18, 21],
  RELU: [19, 0],
  RESHAPE: [22, 17],
  RESIZE_BILINEAR: [23, 15],
  SOFTMAX: [25, 9],
  PAD: [34, 22],
  MEAN: [40, 27],
  ARG_MAX: [56, 40],
  QUANTIZE: [114, 0],
  HARD_SWISH: [117, 0],
};
const float = (x) => new Int32Array(Float32Array.of(x).buffer)[0];
const NONE = 0;
const RELU = 1;
const RELU6 = 3;

/** How stored numbers stand for others: a scale, or one for each place of an axis. */
function quantization(scales, zero, axis) {
  const zeros = BigInt64Array.from(scales, () => BigInt(zero));
  return [undefined, undefined, { of: scales.map(float) }, zeros, undefined, undefined, axis];
}

class Builder {
  buffers = [[]];
  tensors = [];
  operators = [];
  codes = [];

  constructor(numbers) {
    this.numbers = numbers;
    // Converters write a table for every tensor, which holds nothing where that has floats.
    this.ofValues = numbers.Numbers ? quantization([SCALE], numbers.zero) : [];
    if (numbers.weightZero) {
      const bounds = [numbers.least, numbers.most].map((bound) => ({ of: [float(SCALE * (bound - numbers.zero))] }));
      this.ofValues.splice(0, 2, ...bounds);
    }
  }

  /** An input of any batch, which is 1 where the file was made. */
  batched(...dims) {
    const x = this.tensor([1, ...dims]);
    this.tensors[x][7] = { of: [-1, ...dims] };
    return x;
  }

  tensor(dims, type = this.numbers.type, data, quantized = type === this.numbers.type ? this.ofValues : undefined) {
    let buffer = 0;
    if (data) buffer = this.buffers.push([new Uint8Array(data.buffer)]) - 1;
    return this.tensors.push([{ of: dims }, type, buffer, `t${this.tensors.length}`, quantized]) - 1;
  }

  /** A weight whose channels of output are along an axis: numbers of eight bits with a sign have a scale for each. */
  weight(axis, ...dims) {
    const { type, Numbers, weightZero } = this.numbers;
    const length = dims.reduce((a, b) => a * b, 1);
    const value = (_, i) => Math.sin(i) / 10;
    if (!Numbers) return this.tensor(dims, type, Float32Array.from({ length }, value));
    const scales = weightZero ? [WEIGHT_SCALE] : Array(dims[axis]).fill(WEIGHT_SCALE);
    const stored = Numbers.from({ length }, (_, i) => weightZero + Math.round(value(_, i) / WEIGHT_SCALE));
    return this.tensor(dims, type, stored, quantization(scales, weightZero, axis));
  }

  bias(length) {
    const { Numbers, weightZero } = this.numbers;
    if (!Numbers)
      return this.tensor(
        [length],
        FLOAT32,
        Float32Array.from({ length }, (_, i) => i / length),
      );
    const scale = SCALE * WEIGHT_SCALE;
    const scales = weightZero ? [scale] : Array(length).fill(scale);
    return this.tensor(
      [length],
      INT32,
      Int32Array.from({ length }, (_, i) => i),
      quantization(scales, 0, 0),
    );
  }

  ints(...values) {
    return this.tensor([values.length], INT32, Int32Array.from(values));
  }

  op(name, inputs, dims, options = [], out = undefined) {
    const [code, kind] = OPERATORS[name];
    let at = this.codes.indexOf(code);
    if (at < 0) at = this.codes.push(code) - 1;
    const y = out ?? this.tensor(dims);
    this.operators.push([at, { of: inputs }, { of: [y] }, ...(kind ? [kind, options] : [])]);
    return y;
  }

  conv(x, side, from, to, size, stride = 1, act = RELU6) {
    const out = Math.ceil(side / stride);
    return this.op('CONV_2D', [x, this.weight(0, to, size, size, from), this.bias(to)], [1, out, out, to], [0, stride, stride, act, 1, 1]);
  }

  deep(x, side, channels, stride = 1, act = RELU6, dilation = 1) {
    const out = Math.ceil(side / stride);
    return this.op(
      'DEPTHWISE_CONV_2D',
      [x, this.weight(3, 1, 3, 3, channels), this.bias(channels)],
      [1, out, out, channels],
      [0, stride, stride, 1, act, dilation, dilation],
    );
  }

  /** A value between 0 and 1, whose scale is fixed where numbers are of eight bits. */
  share(name, x, dims, options) {
    const { type, Numbers, least } = this.numbers;
    const out = Numbers && this.tensor(dims, type, undefined, quantization([1 / 256], least));
    return this.op(name, [x], dims, options, out);
  }

  /** Floats from outside, as numbers of the network. */
  input(dims) {
    const x = this.tensor(dims, FLOAT32);
    return [x, this.numbers.Numbers ? this.op('QUANTIZE', [x], dims) : x];
  }

  output(x, dims) {
    return this.numbers.Numbers ? this.op('DEQUANTIZE', [x], dims, [], this.tensor(dims, FLOAT32)) : x;
  }

  file(inputs, outputs) {
    const codes = this.codes.map((code) => [code, undefined, 1, code]);
    const subgraph = [{ of: this.tensors }, { of: inputs }, { of: outputs }, { of: this.operators }, 'main'];
    return Writer.file([3, { of: codes }, { of: [subgraph] }, 'A model.', { of: this.buffers }]);
  }
}

/** MobileNet and ResNet. */
function mobile(side, classes, numbers = FLOATS) {
  const b = new Builder(numbers);
  const x = b.batched(side, side, 3);
  const half = Math.ceil(side / 2);
  let y = b.conv(x, side, 3, 24, 3, 2);
  y = b.deep(y, half, 24);
  y = b.conv(y, half, 24, 32, 1);
  const wide = b.conv(y, half, 32, 32, 3, 1, NONE);
  y = b.op('ADD', [y, wide], [1, half, half, 32], [RELU]);
  for (let block = 0; block < 6; block++) {
    const narrow = b.conv(b.deep(b.conv(y, half, 32, 48, 1), half, 48), half, 48, 32, 1, 1, NONE);
    y = b.op('ADD', [y, narrow], [1, half, half, 32], [NONE]);
  }
  const small = Math.ceil(half / 2);
  y = b.op('PAD', [b.deep(y, half, 32, 2), b.ints(0, 0, 0, 0, 0, 0, 0, 5)], [1, small, small, 37]);
  const pooled = b.op('AVERAGE_POOL_2D', [y], [1, 1, 1, 37], [1, small, small, small, small, NONE]);
  const flat = b.op('RESHAPE', [pooled, b.ints(-1, 37)], [1, 37], [{ of: [-1, 37] }]);
  const scores = b.op('FULLY_CONNECTED', [flat, b.weight(undefined, classes, 37), b.bias(classes)], [1, classes], [NONE]);
  return b.file([x], [b.share('SOFTMAX', scores, [1, classes], [float(1)])]);
}

/** Detection and segmentation: several outputs, pictures that grow, gates. */
function detector(side, numbers = FLOATS) {
  const b = new Builder(numbers);
  const [x, picture] = b.input([1, side, side, 3]);
  const half = side / 2;
  let y = b.op('RELU', [b.conv(picture, side, 3, 16, 5, 2, NONE)], [1, half, half, 16]);
  y = b.op('HARD_SWISH', [b.conv(y, half, 16, 16, 1, 1, NONE)], [1, half, half, 16]);
  const gate = b.share('LOGISTIC', b.op('MEAN', [y, b.ints(1, 2)], [1, 1, 1, 16], [1]), [1, 1, 1, 16]);
  y = b.op('MUL', [y, gate], [1, half, half, 16], [NONE]);
  const quarter = half / 2;
  const low = b.op('MAX_POOL_2D', [y], [1, quarter, quarter, 16], [0, 2, 2, 2, 2, NONE]);
  const grown = b.op('RESIZE_BILINEAR', [low, b.ints(half, half)], [1, half, half, 16], [undefined, undefined, 0, 1]);
  const joined = b.op('CONCATENATION', [grown, y], [1, half, half, 32], [3, NONE]);
  const boxes = [
    [joined, half, 32],
    [low, quarter, 16],
  ].map(([z, n, channels]) => {
    const length = n * n * 2;
    return b.op('RESHAPE', [b.conv(z, n, channels, 8, 3, 1, NONE), b.ints(1, length, 4)], [1, length, 4], [{ of: [1, length, 4] }]);
  });
  const many = [1, 2 * (half * half + quarter * quarter), 4];
  const all = b.op('CONCATENATION', boxes, many, [1, NONE]);
  const mask = b.share('LOGISTIC', b.conv(joined, half, 32, 1, 1, 1, NONE), [1, half, half, 1]);
  return b.file([x], [b.output(all, many), b.output(mask, [1, half, half, 1])]);
}

/** Segmentation: the class of every place, from what one place and the whole picture show. */
function segmenter(side, numbers, type) {
  const b = new Builder(numbers);
  const x = b.tensor([1, side, side, 3]);
  const half = Math.ceil(side / 2);
  const narrow = b.conv(b.deep(b.conv(x, side, 3, 16, 3, 2), half, 16), half, 16, 8, 1, 1, NONE);
  const wide = b.conv(b.deep(b.conv(narrow, half, 8, 48, 1), half, 48, 1, RELU6, 2), half, 48, 8, 1, 1, NONE);
  const y = b.conv(b.op('ADD', [narrow, wide], [1, half, half, 8], [NONE]), half, 8, 16, 1);
  const pooled = b.op('AVERAGE_POOL_2D', [y], [1, 1, 1, 16], [1, half, half, half, half, NONE]);
  const whole = b.op(
    'RESIZE_BILINEAR',
    [b.conv(pooled, 1, 16, 24, 1, 1, RELU), b.ints(half, half)],
    [1, half, half, 24],
    [undefined, undefined, 1, 0],
  );
  const joined = b.op('CONCATENATION', [whole, b.conv(y, half, 16, 16, 1, 1, RELU)], [1, half, half, 40], [3, NONE]);
  const scores = b.conv(joined, half, 40, 21, 1, 1, NONE);
  const grown = b.op('RESIZE_BILINEAR', [scores, b.ints(side, side)], [1, side, side, 21], [undefined, undefined, 1, 0]);
  const classes = b.tensor([1, side, side], type);
  return b.file([x], [b.op('ARG_MAX', [grown, b.ints(3)], [1, side, side], [type], classes)]);
}

/** `[name, file, dims]`: those of the input. */
export const TFLITE = [
  ['mobile', mobile(33, 2), [1, 33, 33, 3]],
  ['mobile, larger', mobile(224, 10), [1, 224, 224, 3]],
  ['detector', detector(32), [1, 32, 32, 3]],
];

/** Those of numbers of eight bits. */
export const TFLITE_QUANTIZED = [
  ...[UINT8, POSITIVE, INT8].flatMap((numbers) => [
    ['mobile', mobile(33, 2, numbers), [1, 33, 33, 3]],
    ['mobile, larger', mobile(224, 10, numbers), [1, 224, 224, 3]],
    ['detector', detector(32, numbers), [1, 32, 32, 3]],
  ]),
  ['segmenter', segmenter(33, UINT8, INT32), [1, 33, 33, 3]],
  ['segmenter, larger', segmenter(257, POSITIVE, INT64), [1, 257, 257, 3]],
];
