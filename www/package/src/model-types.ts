import type { Port } from './feeds.js';

/** The last part of a path or an address. */
function baseOf(model: string): string {
  return model.split(/[\\/]/).pop() ?? model;
}

/** `digits.onnx` as `Digits`. */
export function typeNameOf(model: string): string {
  const words = baseOf(model)
    .replace(/\.[^.]*$/, '')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return /^\p{L}/u.test(name) ? name : `Model${name}`;
}

/** What may be given for an input, in TypeScript. */
function feedOf({ kind, type }: Port): string {
  if (kind === 'sequence') return 'readonly TensorLike[]';
  return kind === 'tensor' && type !== null ? `FeedOf<'${type}'>` : 'Feed';
}

/** What an output gives, in TypeScript. */
function resultOf({ kind, type }: Port): string {
  const tensor = type === null ? 'Tensor' : `Tensor<'${type}'>`;
  return { tensor, sequence: `${tensor}[]`, map: 'ModelMap', 'sequence of maps': 'ModelMap[]' }[kind];
}

function field(port: Port, type: string, given: boolean): string {
  const { name, dims, optional } = port;
  const shape = dims === null ? 'of any rank' : `[${dims.map((dim) => dim ?? '?').join(', ')}]`;
  // A name may hold what ends a comment or a text.
  const about = `${port.type ?? 'of any type'}, ${shape}`.replaceAll('*/', '* /').replaceAll(/\s+/g, ' ');
  return `    /** ${about} */\n    ${/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name) ? name : JSON.stringify(name)}${optional && given ? '?' : ''}: ${type}${optional ? ' | null' : ''};`;
}

/** The types of a model's inputs and outputs as the text of a module. */
export function moduleOf(model: string, inputs: readonly Port[], outputs: readonly Port[]): string {
  const fields = [
    '  inputs: {',
    ...inputs.map((port) => field(port, feedOf(port), true)),
    '  };',
    '  outputs: {',
    ...outputs.map((port) => field(port, resultOf(port), false)),
    '  };',
  ].join('\n');
  const used = ['Feed', 'FeedOf', 'ModelMap', 'Tensor', 'TensorLike'].filter((name) => new RegExp(`: .*\\b${name}\\b`).test(fields));
  return `// Written by \`npx kilim types ${baseOf(model)}\`.
import type { ${used.join(', ')} } from 'kilim';

/** The inputs and outputs of \`${baseOf(model)}\`, for \`load<${typeNameOf(model)}>\`. */
export interface ${typeNameOf(model)} {
${fields}
}
`;
}
