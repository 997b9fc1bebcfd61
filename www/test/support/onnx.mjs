// Writes small ONNX models, right ones and wrong ones. Field numbers are those of onnx.proto.

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** A message of `[field, value]` pairs: numbers, strings, bytes and messages. */
export function message(...fields) {
  return Buffer.concat(
    fields.flatMap(([field, value]) => {
      if (typeof value === 'number' || typeof value === 'bigint')
        return [Buffer.from([...varint(field << 3), ...varint(BigInt.asUintN(64, BigInt(value)))])];
      const bytes = Buffer.from(value);
      return [Buffer.from([...varint((field << 3) | 2), ...varint(bytes.length)]), bytes];
    }),
  );
}

const TYPES = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  uint4: 21,
  int4: 22,
};
const FLOAT = TYPES.float32;
// A dimension is a number or a name.
const dimension = (d) => message([typeof d === 'number' ? 1 : 2, d]);
const shape = (dims) => (dims ? [[2, message(...dims.map((d) => [1, dimension(d)]))]] : []);
const value = (name, dims, type) => message([1, name], [2, message([1, message([1, TYPES[type]], ...shape(dims))])]);

/** An initializer of floats, in the model or in the file `location` from `offset` on; or of any type, with the bytes of `data`. */
export function tensor(
  name,
  dims,
  { floats = [], location, offset = 0, type = 'float32', data = Float32Array.from(floats), typed = false } = {},
) {
  // Numbers go into `float_data`, `int32_data` or `int64_data`, or are bytes.
  const whole = () => Buffer.from([...data].flatMap((x) => varint(BigInt.asUintN(64, BigInt(x)))));
  const numbers = type === 'int64' ? [7, whole()] : type === 'float32' ? [4, new Uint8Array(data.buffer)] : [5, whole()];
  const held = typed
    ? [numbers]
    : location
      ? [
          [13, message([1, 'location'], [2, location])],
          [13, message([1, 'offset'], [2, String(offset)])],
          [14, 1],
        ]
      : [[9, new Uint8Array(data.buffer)]];
  return message(...dims.map((d) => [1, d]), [2, TYPES[type]], [8, name], ...held);
}

/** A float attribute, after its four bytes' tag. */
const float = (name, x) => {
  const fields = message([1, name], [20, FLOAT]);
  return Buffer.from([...fields, (2 << 3) | 5, ...new Uint8Array(Float32Array.of(x).buffer)]);
};
const int = (name, x) => message([1, name], [20, 2], [3, x]);
const ints = (name, list) => message([1, name], [20, 7], ...list.map((x) => [8, x]));
const text = (name, x) => message([1, name], [20, 3], [4, x]);
const tensorOf = (name, x) => message([1, name], [20, 4], [5, x]);
const graphOf = (name, graph) => message([1, name], [20, 5], [6, graph]);

/**
 * The message of a graph. `nodes` are `[operator, inputs, outputs, {domain, floats, int, ints, text, tensors, graphs}]`, ports `[name, dims, type]`, as
 * are the other `values` that are described,
 * whose type is `float32` unless it is given; without dims, their rank is not told.
 */
export function graph({ nodes, inputs, outputs, initializers = [], values = [] }) {
  return message(
    ...nodes.map(
      (
        [op, from, to, { domain = '', floats = {}, int: single = {}, ints: lists = {}, text: texts = {}, tensors = {}, graphs = {} } = {}],
        i,
      ) => [
        1,
        message(
          ...from.map((name) => [1, name]),
          ...to.map((name) => [2, name]),
          [3, `node${i}`],
          [4, op],
          ...[
            [float, floats],
            [int, single],
            [ints, lists],
            [text, texts],
            [tensorOf, tensors],
            [graphOf, graphs],
          ].flatMap(([write, named]) => Object.entries(named).map(([name, x]) => [5, write(name, x)])),
          [7, domain],
        ),
      ],
    ),
    [2, 'graph'],
    ...initializers.map((initializer) => [5, initializer]),
    ...values.map(([name, dims, type = 'float32']) => [13, value(name, dims, type)]),
    ...inputs.map(([name, dims, type = 'float32']) => [11, value(name, dims, type)]),
    ...outputs.map(([name, dims, type = 'float32']) => [12, value(name, dims, type)]),
  );
}

/** The bytes of a file of one graph: see `graph`. The version of ONNX's operators is `opset`; fields of the file beside that are `about`. */
export function model(parts) {
  const domains = new Set(parts.nodes.map(([, , , { domain = '' } = {}]) => domain).filter(Boolean));
  const opsets = [...domains].map((domain) => [8, message([1, domain], [2, 1])]);
  return [...message([1, 8], ...(parts.about ?? []), [7, graph(parts)], [8, message([1, ''], [2, parts.opset ?? 17])], ...opsets)];
}

/** The fields of a message as `[field, value]`: numbers as `BigInt`s, strings and messages as bytes. */
export function fields(bytes) {
  const read = [];
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes[at++]);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(next());
    const value = next();
    const packed = (tag & 7) === 2;
    read.push([tag >> 3, packed ? bytes.subarray(at, at + Number(value)) : value]);
    if (packed) at += Number(value);
  }
  return read;
}
