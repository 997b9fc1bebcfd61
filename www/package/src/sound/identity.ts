/** A message of ONNX: fields of one byte's tag. Field numbers are those of `onnx.proto`; no length here is above 127. */
const message = (...fields: [field: number, value: number | string | number[]][]): number[] =>
  fields.flatMap(([field, value]) => {
    if (typeof value === 'number') return [field << 3, value];
    const bytes = typeof value === 'string' ? [...new TextEncoder().encode(value)] : value;
    return [(field << 3) | 2, bytes.length, ...bytes];
  });

/** The type of a `float32` tensor of three dimensions without sizes. */
const port = (name: string): number[] => {
  const shape = message([1, []], [1, []], [1, []]);
  return message([1, name], [2, message([1, message([1, 1], [2, shape])])]);
};

/** A model whose output is its input, `float32` of three dimensions. */
export function identity(input: string, output: string): Uint8Array {
  const node = message([1, input], [2, output], [4, 'Identity']);
  const graph = message([1, node], [2, 'identity'], [11, port(input)], [12, port(output)]);
  return Uint8Array.from(message([1, 8], [7, graph], [8, message([2, 17])]));
}
