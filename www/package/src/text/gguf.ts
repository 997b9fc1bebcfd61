import type { ModelSource } from '../index.js';
import type { Folder, FolderSource } from './folder.js';
import { beginAt, folderAt } from './served.js';

/** Bytes of a GGUF file that hold what stands in front of the data of tensors: a tokenizer is the largest part of that. */
const BEGIN = 32 << 20;

const isGguf = (path: string): boolean => /\.gguf$/i.test(path);

/** Settings of the models that are no GGUF files. */
const SETTINGS = ['genai_config.json', 'config.json'];

/** The GGUF file that a source is, that `file` names, or that is the only one in a folder without settings; `undefined` where there is none. */
export async function ggufOf(
  source: FolderSource,
  folder: Folder,
  file: string | undefined,
  signal?: AbortSignal,
): Promise<ModelSource | undefined> {
  if (typeof source === 'string' || source instanceof URL) {
    const url = folderAt(source);
    if (isGguf(url.pathname)) return folder.read ? folder.find(url.pathname.split('/').pop() ?? '', signal) : url;
  }
  const paths = folder.paths ?? [];
  const [only, ...others] = SETTINGS.some((name) => paths.includes(name)) ? [] : paths.filter(isGguf);
  const path = file ?? (others.length === 0 ? only : undefined);
  return path !== undefined && isGguf(path) ? folder.find(path, signal) : undefined;
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
