/** The lowest and the highest of the values that are finite. */
export function range(values: Float64Array): [number, number] {
  return values
    .filter(Number.isFinite)
    .reduce<[number, number]>(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
}

/** The places of the values, the highest first; what is not a number comes last. */
export function rank(values: Float64Array): number[] {
  const places = Array.from(values.keys());
  const isNumber = (i: number) => !Number.isNaN(values[i]);
  const numbers = places.filter(isNumber).sort((a, b) => (values[b] as number) - (values[a] as number) || a - b);
  return [...numbers, ...places.filter((i) => !isNumber(i))];
}
