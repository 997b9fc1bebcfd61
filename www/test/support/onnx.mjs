// Writes small ONNX models, right ones and wrong ones. Field numbers are those of onnx.proto.

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** A message of `[field, value]` pairs: numbers, strings, bytes and messages. */
function message(...fields) {
  return fields.flatMap(([field, value]) => {
    if (typeof value === 'number' || typeof value === 'bigint') return [...varint(field << 3), ...varint(value)];
    const bytes = typeof value === 'string' ? [...Buffer.from(value)] : [...value];
    return [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
  });
}

const FLOAT = 1;
// A dimension is a number or a name.
const dimension = (d) => message([typeof d === 'number' ? 1 : 2, d]);
const value = (name, dims) => message([1, name], [2, message([1, message([1, FLOAT], [2, message(...dims.map((d) => [1, dimension(d)]))])])]);

/** An initializer of floats, in the model or in the file `location`. */
export function tensor(name, dims, { floats = [], location } = {}) {
  const data = location ? [[13, message([1, 'location'], [2, location])], [14, 1]] : [[9, new Uint8Array(Float32Array.from(floats).buffer)]];
  return message(...dims.map((d) => [1, d]), [2, FLOAT], [8, name], ...data);
}

/** A float attribute, after its four bytes' tag. */
const float = (name, x) => {
  const fields = message([1, name], [20, FLOAT]);
  return [...fields, (2 << 3) | 5, ...new Uint8Array(Float32Array.of(x).buffer)];
};

/** `nodes` are `[operator, inputs, outputs, {domain, floats}]`, ports `[name, dims]`. */
export function model({ nodes, inputs, outputs, initializers = [] }) {
  const graph = message(
    ...nodes.map(([op, from, to, { domain = '', floats = {} } = {}], i) => [1, message(
      ...from.map((name) => [1, name]), ...to.map((name) => [2, name]), [3, `node${i}`], [4, op],
      ...Object.entries(floats).map(([name, x]) => [5, float(name, x)]), [7, domain],
    )]),
    [2, 'graph'],
    ...initializers.map((initializer) => [5, initializer]),
    ...inputs.map(([name, dims]) => [11, value(name, dims)]),
    ...outputs.map(([name, dims]) => [12, value(name, dims)]),
  );
  const domains = new Set(nodes.map(([, , , { domain = '' } = {}]) => domain).filter(Boolean));
  const opsets = [...domains].map((domain) => [8, message([1, domain], [2, 1])]);
  return message([1, 8], [7, graph], [8, message([1, ''], [2, 17])], ...opsets);
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
