import type { Port } from 'kilim';
import type { PictureOptions } from 'kilim/pictures';
import { typeName } from 'kilim/types';
import type { GivenInput } from '../inputs/given.js';
import type { Program } from './given.js';

/** A text in single quotes. */
const text = (value: string) => `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
const isName = (name: string) => /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name);
const key = (name: string) => (isName(name) ? name : text(name));

/** A number with the digits that matter; 1/255 as it is written. */
const number = (value: number) => (value === 1 / 255 ? '1 / 255' : String(value));

function literal(value: unknown): string {
  if (typeof value === 'number') return number(value);
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  return object(Object.entries(value as object));
}

const object = (entries: [string, unknown][]) => `{ ${entries.map(([name, value]) => `${key(name)}: ${literal(value)}`).join(', ')} }`;

/** The options that are not what `Tensor.from` does without them. */
function pictureOptions(options: PictureOptions): string {
  const float = options.type === undefined || options.type.includes('float');
  const usual: Record<string, unknown> = {
    type: 'float32',
    layout: 'NCHW',
    channels: 'RGB',
    mean: options.type === 'int8' ? 128 : 0,
    std: 1,
    scale: float ? 1 / 255 : 1,
  };
  return object(Object.entries(options).filter(([name, value]) => value !== usual[name]));
}

function feed({ port, type, dims, picture }: GivenInput): string {
  const shape = `[${dims.join(', ')}]`;
  if (picture) {
    const count = dims.length === 4 ? (dims[0] as number) : 1;
    const pictures = count === 1 ? 'picture' : `[${Array<string>(count).fill('picture').join(', ')}]`;
    return `await Tensor.from(${pictures}, ${pictureOptions(picture)})`;
  }
  const zeros = `new Tensor(${text(type)}, ${shape})`;
  return port.kind === 'sequence' ? `[${zeros}]` : zeros;
}

/** How a program prints an output. */
function print({ name, kind, optional }: Port): string {
  const output = `outputs${isName(name) ? `.${name}` : `[${text(name)}]`}`;
  const mark = optional ? '?.' : '.';
  const shown = kind === 'tensor' ? [`${output}${mark}dims`, `${output}${mark}data`] : [output];
  return `console.log(${[text(name), ...shown].join(', ')});`;
}

/** The program in JavaScript, or in TypeScript with the model's types from `typesFile`. */
export function javascript({ file, inputs, outputs, backends, strict }: Program, typesFile?: string): string {
  const tensors = inputs.some(({ port }) => port.kind === 'tensor' || port.kind === 'sequence');
  const options = object([...(backends.length ? [['backends', backends] as [string, unknown]] : [])]);
  const more = [backends.length ? options.slice(2, -2) : '', strict ? 'strict: true' : ''].filter(Boolean).join(', ');
  const call = `load${typesFile === undefined ? '' : `<${typeName(file)}>`}(${text(file)}${more && `, { ${more} }`})`;
  const pictures = inputs.some(({ picture }) => picture);
  return [
    `import { ${tensors ? 'Tensor, ' : ''}load } from 'kilim';`,
    typesFile !== undefined && `import type { ${typeName(file)} } from './${typesFile.replace(/\.ts$/, '.js')}';`,
    '',
    `const session = await ${call};`,
    pictures && "const picture = await (await fetch('picture.png')).blob();",
    inputs.length === 0 ? 'const outputs = await session.run({});' : 'const outputs = await session.run({',
    ...inputs.map((input) => `  ${key(input.port.name)}: ${feed(input)},`),
    inputs.length > 0 && '});',
    ...outputs.map(print),
    'session.close();',
    '',
  ]
    .filter((line) => line !== false)
    .join('\n');
}

/** The name of the module with a model's types. */
export const typesFileOf = (file: string) => `${file.replace(/\.[^.]*$/, '')}.types.ts`;
