import type { WireSource } from './source.js';

/** What an ncnn network is called, with what its weights are called instead. */
const NETWORK = /\.param(\.bin)?$/i;

/**
 * The files that a model is loaded with. The weights of an ncnn network at an address, `model.param`, lie beside it in `model.bin`: they
 * are fetched from there where no file is given.
 */
export function withNeighbours(model: WireSource, given: Record<string, WireSource>): Record<string, WireSource> {
  if (!('url' in model) || Object.keys(given).length > 0) return given;
  let url: URL;
  try {
    url = new URL(model.url);
  } catch {
    return given;
  }
  if (!NETWORK.test(url.pathname)) return given;
  url.pathname = url.pathname.replace(NETWORK, '.bin');
  const name = url.pathname.split('/').pop() ?? '';
  return { [decodedOr(name)]: { url: url.href } };
}

/** A part of an address as people write it. */
function decodedOr(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
