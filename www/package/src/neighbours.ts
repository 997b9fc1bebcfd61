import type { WireSource } from './source.js';

/** What networks of two files are called, with what their weights are called instead: those of ncnn and PNNX, and of TNN. */
const WEIGHTS: [RegExp, string][] = [
  [/\.param(\.bin)?$/i, '.bin'],
  [/\.tnnproto$/i, '.tnnmodel'],
];

/**
 * The files that a model is loaded with. The weights of a network of two files at an address, `model.param`, lie beside it, in
 * `model.bin`: they are fetched from there where no file is given.
 */
export function withNeighbours(model: WireSource, given: Record<string, WireSource>): Record<string, WireSource> {
  if (!('url' in model) || Object.keys(given).length > 0) return given;
  const [, path = '', rest = ''] = /^([^?#]*)(.*)$/s.exec(model.url) ?? [];
  const pair = WEIGHTS.find(([network]) => network.test(path));
  if (!pair) return given;
  const own = path.replace(...pair);
  return { [decodedOr(own.split('/').pop() ?? '')]: { url: own + rest } };
}

/** A part of an address as people write it. */
function decodedOr(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
