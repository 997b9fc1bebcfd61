// Networks for pictures in TFLite's format, computed in floats, with weights of no meaning. Numbers of fields, operators and options are
// those of TFLite's schema.fbs.

/** A FlatBuffer of tables (lists of fields), vectors (`{ of: [...] }`), numbers of four bytes, bytes and texts. */
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
/** Numbers of operators, and of the kinds of their options. */
const OPERATORS = {
  ADD: [0, 11],
  AVERAGE_POOL_2D: [1, 5],
  CONCATENATION: [2, 10],
  CONV_2D: [3, 1],
  DEPTHWISE_CONV_2D: [4, 2],
  FULLY_CONNECTED: [9, 8],
  LOGISTIC: [14, 0],
  MAX_POOL_2D: [17, 5],
  MUL: [18, 21],
  RELU: [19, 0],
  RESHAPE: [22, 17],
  RESIZE_BILINEAR: [23, 15],
  SOFTMAX: [25, 9],
  PAD: [34, 22],
  MEAN: [40, 27],
  HARD_SWISH: [117, 0],
};
const float = (x) => new Int32Array(Float32Array.of(x).buffer)[0];
const NONE = 0;
const RELU = 1;
const RELU6 = 3;

class Builder {
  buffers = [[]];
  tensors = [];
  operators = [];
  codes = [];

  tensor(dims, type = FLOAT32, data) {
    let buffer = 0;
    if (data) buffer = this.buffers.push([new Uint8Array(data.buffer)]) - 1;
    return this.tensors.push([{ of: dims }, type, buffer, `t${this.tensors.length}`]) - 1;
  }

  weight(...dims) {
    const length = dims.reduce((a, b) => a * b, 1);
    return this.tensor(
      dims,
      FLOAT32,
      Float32Array.from({ length }, (_, i) => Math.sin(i) / 10),
    );
  }

  ints(...values) {
    return this.tensor([values.length], INT32, Int32Array.from(values));
  }

  op(name, inputs, dims, options = []) {
    const [code, kind] = OPERATORS[name];
    let at = this.codes.indexOf(code);
    if (at < 0) at = this.codes.push(code) - 1;
    const y = this.tensor(dims);
    this.operators.push([at, { of: inputs }, { of: [y] }, ...(kind ? [kind, options] : [])]);
    return y;
  }

  conv(x, side, from, to, size, stride = 1, act = RELU6) {
    const out = Math.ceil(side / stride);
    return this.op('CONV_2D', [x, this.weight(to, size, size, from), this.weight(to)], [1, out, out, to], [0, stride, stride, act, 1, 1]);
  }

  deep(x, side, channels, stride = 1, act = RELU6) {
    const out = Math.ceil(side / stride);
    return this.op(
      'DEPTHWISE_CONV_2D',
      [x, this.weight(1, 3, 3, channels), this.weight(channels)],
      [1, out, out, channels],
      [0, stride, stride, 1, act],
    );
  }

  file(inputs, outputs) {
    const codes = this.codes.map((code) => [code, undefined, 1, code]);
    const subgraph = [{ of: this.tensors }, { of: inputs }, { of: outputs }, { of: this.operators }, 'main'];
    return Writer.file([3, { of: codes }, { of: [subgraph] }, 'A model.', { of: this.buffers }]);
  }
}

/** MobileNet and ResNet. */
function mobile(side) {
  const b = new Builder();
  const x = b.tensor([1, side, side, 3]);
  const half = Math.ceil(side / 2);
  let y = b.conv(x, side, 3, 24, 3, 2);
  y = b.deep(y, half, 24);
  y = b.conv(y, half, 24, 32, 1);
  const wide = b.conv(y, half, 32, 32, 3, 1, NONE);
  y = b.op('ADD', [y, wide], [1, half, half, 32], [RELU]);
  const small = Math.ceil(half / 2);
  y = b.op('PAD', [b.deep(y, half, 32, 2), b.ints(0, 0, 0, 0, 0, 0, 0, 5)], [1, small, small, 37]);
  const pooled = b.op('AVERAGE_POOL_2D', [y], [1, 1, 1, 37], [1, small, small, small, small, NONE]);
  const flat = b.op('RESHAPE', [pooled, b.ints(1, 37)], [1, 37], [{ of: [1, 37] }]);
  const scores = b.op('FULLY_CONNECTED', [flat, b.weight(10, 37), b.weight(10)], [1, 10], [NONE]);
  return b.file([x], [b.op('SOFTMAX', [scores], [1, 10], [float(1)])]);
}

/** Detection and segmentation: several outputs, pictures that grow, gates. */
function detector(side) {
  const b = new Builder();
  const x = b.tensor([1, side, side, 3]);
  const half = side / 2;
  let y = b.op('RELU', [b.conv(x, side, 3, 16, 5, 2, NONE)], [1, half, half, 16]);
  y = b.op('HARD_SWISH', [b.conv(y, half, 16, 16, 1, 1, NONE)], [1, half, half, 16]);
  const gate = b.op('LOGISTIC', [b.op('MEAN', [y, b.ints(1, 2)], [1, 1, 1, 16], [1])], [1, 1, 1, 16]);
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
  const all = b.op('CONCATENATION', boxes, [1, 2 * (half * half + quarter * quarter), 4], [1, NONE]);
  const mask = b.op('LOGISTIC', [b.conv(joined, half, 32, 1, 1, 1, NONE)], [1, half, half, 1]);
  return b.file([x], [all, mask]);
}

/** `[name, file]` */
export const TFLITE = [
  ['mobile', mobile(33)],
  ['mobile, larger', mobile(224)],
  ['detector', detector(32)],
];
