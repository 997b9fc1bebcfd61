import type { Backend, LoadOptions, ModelSource, Session } from 'kilim';
import type { Inputs } from './inputs.js';

/** A model that may be loaded, again with other options, too. */
export interface Model {
  label: string;
  source: ModelSource;
  externalData: Record<string, Blob>;
}

/** What a model is to run on, as the fields of "Run on" say. */
export interface Choice {
  /** `auto`, or ids with commas between them. */
  backends: string;
  strict: boolean;
}

/** A model that is loaded, and how. */
export interface OpenModel {
  model: Model;
  choice: Choice;
  session: Session;
  inputs: Inputs;
}

/** A part of the page that shows something of the model. */
export interface Panel {
  readonly element: HTMLElement;
  /** Another model stands in place of the one before. */
  show(open: OpenModel): void;
}

export function optionsOf({ backends, strict }: Choice): LoadOptions {
  return backends === 'auto' ? { strict } : { strict, backends: backends.split(',') as Backend[] };
}

/** The model's file as the program in the visitor's project would name it. */
export function fileNameOf({ label, source }: Model): string {
  if (source instanceof File) return source.name;
  if (source instanceof URL || typeof source === 'string') {
    const name = String(source).split(/[?#]/)[0]?.split('/').pop();
    // Files of the page itself have a hash in their names.
    if (name) return decodeURIComponent(name).replace(/-[\w-]{8}(\.\w+)$/, '$1');
  }
  return label;
}
