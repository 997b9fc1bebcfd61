import type { Model } from '../model.js';
import { contentOf, fileNameOf } from '../model.js';
import { storedTensor } from './tensor.js';
import type { StoredTensor } from './tensor.js';
import { asBytes, asText, fields, floats, numbers } from './wire.js';

/** What a file of ONNX says of nodes and weights, by their names. */
export interface OnnxFile {
  /** The attributes of each node, as they are shown. */
  attributes: Map<string, [name: string, value: string][]>;
  weights: Map<string, StoredTensor>;
}

/** Bodies of control-flow nodes within each other. */
const DEEPEST = 32;
/** Bytes of a file that is read a second time. */
const LARGEST = 2 ** 29;
/** Numbers of a list that are shown. */
const SHOWN = 16;

const listed = (items: readonly (number | bigint | string)[]) =>
  `[${items.slice(0, SHOWN).join(', ')}${items.length > SHOWN ? `, … ${items.length} in all` : ''}]`;
const short = (number: number) => Number(number.toPrecision(7));

/** The name of an attribute and what it holds. Bodies of control flow are read into `file`. */
function attribute(message: Uint8Array, file: OnnxFile, depth: number): [string, string] {
  let name = '';
  let single: string | undefined;
  const list: (number | bigint | string)[] = [];
  for (const [field, value] of fields(message)) {
    if (field === 1) name = asText(value);
    else if (field === 2) single = String(short(floats(value)[0] ?? 0));
    else if (field === 3) single = String(numbers(value)[0] ?? 0);
    else if (field === 4) single = asText(value);
    else if (field === 5) {
      const { type, dims } = storedTensor(asBytes(value));
      single = `${type ?? 'tensor'} [${dims.join(', ')}]`;
    } else if (field === 6) {
      single = 'a graph';
      readGraph(asBytes(value), file, depth + 1);
    } else if (field === 7) list.push(...floats(value).map(short));
    else if (field === 8) list.push(...numbers(value));
    else if (field === 9) list.push(asText(value));
  }
  return [name, single ?? listed(list)];
}

function readGraph(message: Uint8Array, file: OnnxFile, depth: number): void {
  if (depth > DEEPEST) return;
  for (const [field, value] of fields(message)) {
    if (field === 5) {
      const stored = storedTensor(asBytes(value));
      file.weights.set(stored.name, stored);
    }
    if (field !== 1) continue;
    let name = '';
    const attributes: [string, string][] = [];
    for (const [of, what] of fields(asBytes(value))) {
      if (of === 3) name = asText(what);
      else if (of === 5) attributes.push(attribute(asBytes(what), file, depth));
    }
    if (name) file.attributes.set(name, attributes);
  }
}

/**
 * Reads nodes and weights of a model's file; `undefined` where it is none of ONNX, or too large to be read again.
 * @throws KilimError `INVALID_MODEL` for a damaged file, `IO` where it is not there any more.
 */
export async function readOnnx(model: Model): Promise<OnnxFile | undefined> {
  if (!/\.onnx$/i.test(fileNameOf(model))) return undefined;
  const content = await contentOf(model);
  if (!(content instanceof Blob) || content.size > LARGEST) return undefined;
  const file: OnnxFile = { attributes: new Map(), weights: new Map() };
  for (const [field, value] of fields(new Uint8Array(await content.arrayBuffer()))) {
    if (field === 7) readGraph(asBytes(value), file, 0);
  }
  return file;
}
