import type { DType } from 'kilim';
import type { GivenInput } from '../inputs/given.js';
import type { Program } from './given.js';

/** The types that numpy has itself. */
const OWN = /^(u?int(8|16|32|64)|float(16|32|64)|complex(64|128))$/;

const text = (value: string) => JSON.stringify(value);

function dtype(type: DType): string {
  if (type === 'bool') return 'np.bool_';
  if (type === 'string') return 'object';
  if (OWN.test(type)) return `np.${type}`;
  return `ml_dtypes.${type.replace(/e(\d)m(\d)/, '_e$1m$2')}`;
}

function feed({ port, type, dims }: GivenInput): string {
  const shape = dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(', ')})`;
  const zeros = type === 'string' ? `np.full(${shape}, "", object)` : `np.zeros(${shape}, ${dtype(type)})`;
  return `    ${text(port.name)}: ${port.kind === 'sequence' ? `[${zeros}]` : zeros},`;
}

/** The model's inputs as arrays of numpy; onnxruntime runs a file of ONNX with them, and a file for the tab "Compare" has all that goes in and out. */
export function python({ file, inputs, outputs }: Program): string {
  const narrow = inputs.some(({ type }) => dtype(type).startsWith('ml_dtypes'));
  const runs = /\.(onnx|ort)$/i.test(file);
  const plain = inputs.every(({ port }) => port.kind === 'tensor') && outputs.every(({ kind }) => kind === 'tensor');
  return [
    narrow && 'import ml_dtypes',
    'import numpy as np',
    runs && 'import onnxruntime',
    '',
    ...(inputs.length ? ['feeds = {', ...inputs.map(feed), '}'] : ['feeds = {}']),
    ...(runs
      ? [
          `session = onnxruntime.InferenceSession(${text(file)})`,
          'names = [output.name for output in session.get_outputs()]',
          'outputs = dict(zip(names, session.run(names, feeds)))',
          'for name, value in outputs.items():',
          '    print(name, getattr(value, "dtype", type(value)), getattr(value, "shape", ""))',
        ]
      : []),
    plain && `np.savez("reference.npz", **feeds${runs ? ', **outputs' : ''})`,
    '',
  ]
    .filter((line) => line !== false)
    .join('\n');
}
