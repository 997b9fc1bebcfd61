import type { LoadOptions, ModelSource } from '../index.js';
import { mostFileBytes } from '../limits.js';
import { readSource } from '../source.js';
import type { OnBytes } from '../source.js';
import { GGUF_FILE } from '../whole-names.js';
import type { Folder, FolderSource } from './folder.js';
import { beginAt, folderAt } from './served.js';

/** Bytes of a GGUF file that hold what stands in front of the data of tensors: a tokenizer is the largest part of that. */
const BEGIN = 32 << 20;

/** Settings of the models whose files do not have all of them. */
const SETTINGS = ['genai_config.json', 'config.json'];

/**
 * The file that has all of a model: that the source is, that `file` names, or that is the only one in a folder without settings; `undefined` where there
 * is none. `kind` says how such files are called.
 */
export async function wholeOf(
  source: FolderSource,
  folder: Folder,
  { file, kind = GGUF_FILE, signal }: { file?: string | undefined; kind?: RegExp; signal?: AbortSignal | undefined },
): Promise<ModelSource | undefined> {
  if (typeof source === 'string' || source instanceof URL) {
    const url = folderAt(source);
    if (kind.test(url.pathname)) return folder.read ? folder.find(url.pathname.split('/').pop() ?? '', signal) : url;
  }
  const paths = folder.paths ?? [];
  const [only, ...others] = SETTINGS.some((name) => paths.includes(name)) ? [] : paths.filter((path) => kind.test(path));
  const path = file ?? (others.length === 0 ? only : undefined);
  return path !== undefined && kind.test(path) ? folder.find(path, signal) : undefined;
}

/**
 * A file at an address that several sessions open, in memory, so that it is fetched once. `undefined` for other sources, and where `load` itself keeps
 * the file.
 */
export async function fetchedOnce(model: ModelSource, options: LoadOptions, onBytes: OnBytes): Promise<Blob | undefined> {
  if (!(model instanceof URL) || !/^https?:$/.test(model.protocol) || options.cache === true) return undefined;
  const bytes = await readSource({ url: model.href }, { onBytes, most: mostFileBytes(options), signal: options.signal });
  return new File([bytes as Uint8Array<ArrayBuffer>], model.pathname.split('/').pop() ?? '');
}

/** The beginning of a file, and what `load` takes for the whole. Of an address no more than the beginning is fetched here. */
export async function begun(model: ModelSource, signal?: AbortSignal): Promise<{ begin: Uint8Array; model: ModelSource }> {
  if (typeof model === 'string' || model instanceof URL) {
    return { begin: await beginAt(folderAt(model), BEGIN, signal), model };
  }
  if (model instanceof Blob) return { begin: new Uint8Array(await model.slice(0, BEGIN).arrayBuffer()), model };
  const whole = ArrayBuffer.isView(model)
    ? new Uint8Array(model.buffer, model.byteOffset, model.byteLength)
    : new Uint8Array(await new Response(model instanceof Response ? model.body : (model as BodyInit)).arrayBuffer());
  return { begin: whole.slice(0, BEGIN), model: whole };
}
