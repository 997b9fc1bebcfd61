import { KilimError } from 'kilim';
import type { Backend, LoadOptions, ModelSource, Session } from 'kilim';
import type { Inputs } from './inputs/inputs.js';

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

/**
 * A model's file in memory where it is at an address that the page can fetch, or what it is already.
 * @throws KilimError `IO` where nothing is at the address; what `signal` was aborted with.
 */
export async function contentOf({ source }: Model, signal?: AbortSignal): Promise<ModelSource> {
  if (!(source instanceof URL) && (typeof source !== 'string' || source.startsWith('hf:'))) return source;
  const response = await fetch(source, signal ? { signal } : {}).catch((error) => {
    throw signal?.aborted ? error : new KilimError('IO', `${source} cannot be read: ${error}`, {}, error);
  });
  if (!response.ok) throw new KilimError('IO', `${source} cannot be read`, { got: `status ${response.status}` });
  return response.blob();
}
