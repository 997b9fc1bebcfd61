import type { Tensor } from 'kilim';

/** A value for every channel and place of a picture. */
export interface Maps {
  channels: number;
  height: number;
  width: number;
  at(channel: number, place: number): number;
}

/** The output that has rows and columns, with its channels first or last, for the first of a batch. */
export function mapsOf(outputs: Record<string, Tensor>): Maps | undefined {
  const sized = Object.values(outputs).filter(({ type, dims }) => type !== 'string' && dims.filter((dim) => dim >= 8).length >= 2);
  const tensor = sized.sort((a, b) => b.dims.length - a.dims.length)[0];
  if (!tensor || tensor.dims.length > 4) return undefined;
  const [a = 1, b = 1, c = 1] = tensor.dims.length >= 3 ? tensor.dims.slice(-3) : [1, ...tensor.dims];
  const values = tensor.toNumbers();
  // Channels are fewer than rows and columns, mostly; of a batch of one there is the first dimension to tell.
  const last = tensor.dims.length === 4 && (a > c || c === 1) && a >= 8 && b >= 8;
  if (last) return { channels: c, height: a, width: b, at: (channel, place) => values[place * c + channel] ?? 0 };
  return { channels: a, height: b, width: c, at: (channel, place) => values[channel * b * c + place] ?? 0 };
}
