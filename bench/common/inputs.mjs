// The inputs of a model, the same for every engine.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
};

/** What to draw for the ports `{ name, type, dims }` of a model: free dimensions are 1. `given` replaces single ones. */
export function specsOf(ports, given = {}) {
  const fixed = (dims) => dims.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
  return ports.map(({ name, type, dims }) => ({ name, type, dims: fixed(dims), ...given[name] }));
}

/** Draws each by xorshift: floats from -1 to 1, integers from `low` (0) to below `high` (2; 256 for bytes). */
export function draw(specs) {
  let state = 2463534242;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return specs.map(({ name, type, dims, low = 0, high = type === 'uint8' ? 256 : 2 }) => {
    const data = new ARRAYS[type](dims.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++) {
      const number = next();
      if (type.startsWith('float')) data[i] = 2 * number - 1;
      else data[i] = type === 'int64' ? BigInt(low + Math.floor(number * (high - low))) : low + Math.floor(number * (high - low));
    }
    return { name, type, dims, data };
  });
}

/** The largest difference of two lists of outputs `{ name, dims, data }`, in parts of the output's largest number. */
export function difference(ours, theirs) {
  let worst = 0;
  for (const [i, { dims, data }] of theirs.entries()) {
    // Outputs stand in the model's order; names are not always kept.
    const other = ours[i];
    if (other?.dims.join() !== dims.join()) return Infinity;
    const size = data.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-6);
    for (const [k, x] of data.entries())
      worst = Math.max(worst, Number.isNaN(other.data[k]) ? Infinity : Math.abs(other.data[k] - x) / size);
  }
  return worst;
}
