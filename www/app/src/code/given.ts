import type { Backend, Port } from 'kilim';
import type { GivenInput } from '../inputs/given.js';
import { fileNameOf, optionsOf } from '../model.js';
import type { OpenModel } from '../model.js';

/** What programs for a model are made of. */
export interface Program {
  /** The model's file. */
  file: string;
  inputs: readonly GivenInput[];
  outputs: readonly Port[];
  /** None where Kilim is to choose. */
  backends: readonly Backend[];
  strict: boolean;
}

export function programOf({ model, choice, session, inputs }: OpenModel): Program {
  const { backends = [], strict = false } = optionsOf(choice);
  return { file: fileNameOf(model), inputs: inputs.given(), outputs: session.outputs, backends, strict };
}

/** A text in double quotes, as Rust, Python and JSON read it alike. */
export function quoted(text: string): string {
  const plain = (letter: string) => `\\u{${letter.codePointAt(0)?.toString(16)}}`;
  return `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll(/\p{Cc}/gu, plain)}"`;
}
