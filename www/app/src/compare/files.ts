import { KilimError } from 'kilim';
import type { Port, Tensor } from 'kilim';
import { readTensor, storedTensor } from '../onnx/tensor.js';
import { readNpy } from './npy.js';
import { entries } from './zip.js';

/** A tensor of a file, with what it is called there. */
export interface Named {
  name: string;
  tensor: Tensor;
}

/** Values for a model's inputs and outputs, by their names, and what fits neither. */
export interface Reference {
  inputs: Map<string, Tensor>;
  outputs: Map<string, Tensor>;
  others: string[];
}

const withoutEnding = (name: string) =>
  name
    .split('/')
    .pop()
    ?.replace(/\.(npy|npz|pb)$/i, '') ?? name;

/**
 * The tensors of a `.npy`, a `.npz`, or a `.pb` of ONNX's test data.
 * @throws KilimError for files that are none of these.
 */
async function tensorsOf(file: File): Promise<Named[]> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (/\.npy$/i.test(file.name)) return [{ name: withoutEnding(file.name), tensor: readNpy(file.name, bytes) }];
  if (/\.npz$/i.test(file.name)) {
    const arrays = [...(await entries(file.name, bytes))].filter(([name]) => /\.npy$/i.test(name));
    return arrays.map(([name, array]) => ({ name: name.replace(/\.npy$/i, ''), tensor: readNpy(`${file.name}/${name}`, array) }));
  }
  if (!/\.pb$/i.test(file.name))
    throw new KilimError('INVALID_VALUE', `${file.name} is no file of inputs or outputs`, { expected: '.npy, .npz, .pb', got: file.name });
  const stored = storedTensor(bytes);
  const tensor = readTensor(stored);
  // The files of a case are named by their places; names within are those of whoever wrote them.
  const place = withoutEnding(file.name);
  return [{ name: /^(in|out)put_\d+$/.test(place) ? place : stored.name || place, tensor }];
}

/** The port that a name means: its own, or its place, as in `input_0` and `out1`. */
function portOf(ports: readonly Port[], kind: 'in' | 'out', name: string): Port | undefined {
  const own = ports.find((port) => port.name === name || port.name.replaceAll('/', '_') === name);
  if (own) return own;
  const place = new RegExp(`^${kind}(?:put)?_?(\\d+)$`).exec(name)?.[1];
  return place === undefined ? undefined : ports[Number(place)];
}

/** Reads files and finds out which input or output each tensor is of. */
export async function readReference(files: readonly File[], inputs: readonly Port[], outputs: readonly Port[]): Promise<Reference> {
  const reference: Reference = { inputs: new Map(), outputs: new Map(), others: [] };
  for (const file of files) {
    for (const { name, tensor } of await tensorsOf(file)) {
      const input = portOf(inputs, 'in', name);
      const output = portOf(outputs, 'out', name);
      if (input) reference.inputs.set(input.name, tensor);
      if (output) reference.outputs.set(output.name, tensor);
      if (!input && !output) reference.others.push(name);
    }
  }
  return reference;
}
