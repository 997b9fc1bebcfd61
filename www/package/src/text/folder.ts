import { downloads } from '../entries.js';
import { KilimError } from '../index.js';
import type { LoadOptions, ModelSource } from '../index.js';
import { exists, folderAt, readAt } from './served.js';

/**
 * A folder with a language model: the address of one, which may be a repository of the Hugging Face hub or a folder in it, `hf:owner/name`; the files that a visitor chose, with their paths; or files by their paths from the folder on.
 * In place of a folder the address of a file that has all of its model: a GGUF file, which ends with `.gguf`; for speech one of whisper.cpp, `ggml-NAME.bin`.
 */
export type FolderSource = string | URL | Iterable<File> | Record<string, ModelSource>;

/** A folder, whose files are asked for by their paths from it on. */
export interface Folder {
  /** What `load` takes for a file; `undefined` where there is none. */
  find(path: string, signal?: AbortSignal): Promise<ModelSource | undefined>;
  /** The paths of all files, where they are known. */
  paths: readonly string[] | undefined;
  /** The bytes of a file, where `find` gives none that can be read without more. */
  read?(path: string): Promise<Uint8Array>;
}

/** @throws KilimError `INVALID_VALUE` for what is no folder; of a hub what `openHub` throws. */
export async function openFolder(source: FolderSource, options: LoadOptions): Promise<Folder> {
  if (typeof source === 'string' || source instanceof URL)
    return /^hf:/.test(String(source)) ? (await downloads()).hubFolder(String(source), options) : served(source);
  if (typeof source !== 'object' || source === null) throw new KilimError('INVALID_VALUE', 'a folder is an address, or its files');
  const files = Symbol.iterator in source ? new Map([...(source as Iterable<File>)].map((file) => [pathOf(file), file])) : undefined;
  const all: Map<string, ModelSource> = files ?? new Map(Object.entries(source as Record<string, ModelSource>));
  return { find: async (path) => all.get(path), paths: [...all.keys()] };
}

/** The path of a file in the folder that was chosen, whose own name stands first. */
function pathOf(file: File): string {
  const { webkitRelativePath: path = '', name } = file;
  return path === '' ? name : path.slice(path.indexOf('/') + 1);
}

function served(address: string | URL): Folder {
  const base = folderAt(address);
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  return {
    paths: undefined,
    async find(path, signal) {
      const url = new URL(path, base);
      url.search = base.search;
      return (await exists(url, signal)) ? url : undefined;
    },
  };
}

/** The text of a file; `undefined` where there is none. */
export async function readText(folder: Folder, path: string, signal?: AbortSignal): Promise<string | undefined> {
  if (folder.read) return folder.paths?.includes(path) ? new TextDecoder().decode(await folder.read(path)) : undefined;
  const source = await folder.find(path, signal);
  if (source === undefined) return undefined;
  if (source instanceof URL || typeof source === 'string') return readAt(source, signal);
  return new Response(source instanceof Response ? source.body : (source as BodyInit)).text();
}

/**
 * A file of settings.
 * @throws KilimError `INVALID_MODEL` where it is no JSON.
 */
export function parse<T>(name: string, text: string): T {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KilimError('INVALID_MODEL', `\`${name}\` cannot be understood: ${error}`, {}, error);
  }
}

/** Names of models in a folder that has several, the usual one first. */
const USUAL = ['onnx/model.onnx', 'model.onnx', 'onnx/decoder_model_merged.onnx', 'decoder_model_merged.onnx'];

/** The settings of a model of transformers, which stand for it where its weights lie beside them, and the weights: a file, or a list of files. */
const SETTINGS = 'config.json';
const WEIGHTS = 'model.safetensors';
const WEIGHTS_LIST = 'model.safetensors.index.json';

/**
 * The path of the folder's model; of one that is settings and weights, as transformers saves it, that of the settings.
 * @throws KilimError `IO` where there is none, `INPUT` where there are several and none is the usual one.
 */
export async function modelOf(folder: Folder, signal?: AbortSignal): Promise<string> {
  for (const path of USUAL) {
    if ((await folder.find(path, signal)) !== undefined) return path;
  }
  const models = (folder.paths ?? []).filter((path) => /^(onnx\/)?[^/]+\.onnx$/.test(path)).sort();
  const [only] = models;
  if (only !== undefined && models.length === 1) return only;
  if (models.length > 1)
    throw new KilimError('INPUT', 'the folder has several models', { got: models.join(', '), hint: 'the option `file` says which it is' });
  for (const path of [WEIGHTS, WEIGHTS_LIST]) {
    if ((await folder.find(path, signal)) !== undefined) return SETTINGS;
  }
  throw new KilimError('IO', 'the folder has no model', { expected: USUAL.join(' or ') });
}

/** The files of weights beside a model, by the names that it has for them: `NAME.data`, `NAME_data`, `NAME_data_1` and so on. */
export async function weightsOf(folder: Folder, model: string, signal?: AbortSignal): Promise<Record<string, ModelSource>> {
  if (model === SETTINGS) return weightsOfSettings(folder, signal);
  const weights: Record<string, ModelSource> = {};
  const name = model.slice(model.lastIndexOf('/') + 1);
  const take = async (ending: string): Promise<boolean> => {
    const source = await folder.find(`${model}${ending}`, signal);
    if (source !== undefined) weights[`${name}${ending}`] = source;
    return source !== undefined;
  };
  await Promise.all(
    ['.data', '_data'].map(async (ending) => {
      if (!(await take(ending))) return;
      for (let number = 1; await take(`${ending}_${number}`); ) number += 1;
    }),
  );
  return weights;
}

/** The weights beside the settings of a model of transformers, with the list of them where there are several files. */
async function weightsOfSettings(folder: Folder, signal?: AbortSignal): Promise<Record<string, ModelSource>> {
  const whole = await folder.find(WEIGHTS, signal);
  if (whole !== undefined) return { [WEIGHTS]: whole };
  const text = await readText(folder, WEIGHTS_LIST, signal);
  if (text === undefined) return {};
  const list: { weight_map?: Record<string, string> } = parse(WEIGHTS_LIST, text);
  const names = [...new Set(Object.values(list.weight_map ?? {}))];
  const files = await Promise.all(names.map(async (name) => [name, await folder.find(name, signal)] as const));
  const there = files.filter((file): file is readonly [string, ModelSource] => file[1] !== undefined);
  return { ...Object.fromEntries(there), [WEIGHTS_LIST]: new TextEncoder().encode(text) };
}
