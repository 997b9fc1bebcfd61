import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import { reasonOf } from '../../describe.js';
import { VARIANTS } from '../../detect.js';
import type { Variant } from '../../detect.js';
import { KilimError } from '../../errors.js';
import type { Port } from '../../feeds.js';
import { PARTS, partsFor } from '../../parts.js';
import { PARTS_OF } from '../../places.js';
import type { Part } from '../../parts.js';
import { readReport } from '../../report.js';
import { Tensor, toWire } from '../../tensor.js';
import { PACKAGE, copyFiles } from './copy.js';
import { listOf, openModel, useImporters } from './model.js';
import type { Alone, Opened } from './model.js';

/** Files by their names, and why each is there. */
type Files = Map<string, string>;

/** What is asked of a bundle. */
interface Wanted {
  out: string;
  builds: readonly Variant[];
  gpu: boolean;
  webnn: boolean;
  /** Modules of importers that a page registers. */
  importers: readonly string[];
  /** Sizes of free dimensions. */
  dims: Readonly<Record<string, number>>;
}

const BACKENDS = ['wgpu', 'cpu', 'webnn'];

/** @throws KilimError `INVALID_VALUE` for words that mean nothing. */
function readWanted(out: string, given: Record<string, string | undefined>): Wanted {
  const builds = listOf(given['builds'], 'relaxed,simd').map((word) => VARIANTS.find((build) => build === word) ?? wrong(word, VARIANTS));
  const backends = listOf(given['backends'], 'cpu').map((word) => BACKENDS.find((backend) => backend === word) ?? wrong(word, BACKENDS));
  const dims = listOf(given['dims'], '').map((word): [string, number] => {
    const [, name = '', size] = /^(.+)=(\d+)$/.exec(word) ?? wrong(word, ['NAME=SIZE']);
    return [name, Number(size)];
  });
  return {
    out,
    builds,
    gpu: backends.includes('wgpu'),
    webnn: backends.includes('webnn'),
    importers: listOf(given['importer'], ''),
    dims: Object.fromEntries(dims),
  };
}

function wrong(word: string, known: readonly string[]): never {
  throw new KilimError('INVALID_VALUE', `\`${word}\` is not known here`, { expected: known.join(', ') });
}

/** Zeros for an input; free dimensions that nobody named are 1. */
function zerosFor({ name, type, dims, kind }: Port, sizes: Wanted['dims']): ReturnType<typeof toWire> {
  if (kind !== 'tensor' || type === null || dims === null) throw new Error(`the input \`${name}\` is no tensor of known rank`);
  const shape = dims.map((dim) => (typeof dim === 'number' ? dim : (sizes[dim ?? ''] ?? 1)));
  return toWire(name, new Tensor(type, shape));
}

/** The parts that a model takes, each with the reason. */
async function partsOf(model: string, { engine, loaded }: Opened, dims: Wanted['dims']): Promise<Map<Part, string>> {
  const name = basename(model);
  const parts = new Map<Part, string>(loaded.parts.map((part) => [part, `${name} takes it while it is loaded`]));
  try {
    const feeds = loaded.inputs.filter(({ optional }) => !optional).map((port) => zerosFor(port, dims));
    const ran = await engine.run({ feeds, profile: false });
    for (const part of ran.parts ?? []) if (!parts.has(part)) parts.set(part, `${name} takes it while it runs`);
  } catch (error) {
    const why = `${name} may take it: it was not run (${reasonOf(error)})`;
    for (const part of PARTS) if (!OF_PAGES.includes(part) && !parts.has(part)) parts.set(part, why);
  }
  return parts;
}

/** Parts that no run on the CPU takes. */
const OF_PAGES: readonly Part[] = ['gpu', 'shaders', 'gpu_rare'];
/** What models of any kind need on WebGPU. */
const ON_GPU = ['gpu', 'gpu_language', 'gpu_quantized', 'gpu_tflite'] as const;

/** What is found out of models by one build. */
interface Found {
  parts: Map<Part, string>;
  /** Why pictures are decoded, if they are. */
  pictures?: string;
}

/** The parts of a build that these models take. Builds differ in what is in their parts. */
async function lookAt(models: readonly string[], build: Alone, dims: Wanted['dims']): Promise<Found> {
  const found: Found = { parts: new Map() };
  for (const model of models) {
    const opened = await openModel(model, build);
    for (const [part, why] of await partsOf(model, opened, dims)) if (!found.parts.has(part)) found.parts.set(part, why);
    if (readReport(opened.loaded.report).nodes.some(({ op }) => op === 'ImageDecoder'))
      found.pictures ??= `${basename(model)} decodes pictures`;
    opened.engine.close();
  }
  return found;
}

/** All parts that a run on the CPU may take. */
const anyParts = (): Map<Part, string> =>
  new Map(PARTS.filter((part) => !OF_PAGES.includes(part)).map((part) => [part, 'workers may take it, which are seen in a page only']));

/** The files that pages need for these models. */
async function filesFor(models: readonly string[], { builds, gpu, webnn, importers, dims }: Wanted): Promise<Files> {
  useImporters(importers);
  let pictures: string | undefined;
  const files: Files = new Map();
  for (const build of builds) {
    // Models are looked at for what they decode, too.
    const found = await lookAt(models, build === 'threads' ? 'simd' : build, dims);
    const parts = build === 'threads' ? anyParts() : found.parts;
    pictures ??= found.pictures;
    if (gpu) {
      const why = 'WebGPU; which of its kernels a model takes shows on a GPU only';
      for (const part of [...OF_PAGES, ...partsFor(PARTS_OF[build].needs, ON_GPU)]) if (!parts.has(part)) parts.set(part, why);
    }
    files.set(`worker.${build}.js`, 'the worker of sessions');
    files.set(`kilim.${build}.wasm`, 'the core');
    for (const part of PARTS) if (parts.has(part)) files.set(`kilim.${build}.${part}.wasm`, parts.get(part) ?? '');
  }
  if (builds.includes('threads')) files.set('worker.crew.js', 'the workers that help sessions');
  if (gpu) files.set('painter.js', 'pictures that go to the GPU');
  if (webnn) for (const name of ['backend.js', 'webnn.js']) files.set(name, 'WebNN');
  if (importers.length > 0) files.set('importer.js', `what stands between Kilim and ${importers.map((file) => basename(file)).join(', ')}`);
  if (pictures) files.set('kilim.pictures.wasm', pictures);
  return files;
}

const KB = 1000;

/** Puts the files that these models need into a folder, and lists them with their sizes and reasons. */
export async function bundle(models: readonly string[], out: string, given: Record<string, string | undefined>): Promise<string> {
  const wanted = readWanted(out, given);
  const files = await filesFor(models, wanted);
  await copyFiles([...files.keys()], out);
  const rows = await Promise.all(
    Array.from(files, async ([name, why]): Promise<[string, number, number, string]> => {
      const bytes = await readFile(join(PACKAGE, name));
      return [name, bytes.length / KB, (await promisify(brotliCompress)(bytes)).length / KB, why];
    }),
  );
  const width = Math.max(...rows.map(([name]) => name.length));
  const line = (name: string, kilobytes: number, brotli: number, why: string) =>
    `${name.padEnd(width)}${kilobytes.toFixed(1).padStart(10)}${brotli.toFixed(1).padStart(10)}  ${why}`;
  const sums = wanted.builds.map((build) => {
    const own = rows.filter(([name]) => name.includes(`.${build}.`) || !VARIANTS.some((other) => name.includes(`.${other}.`)));
    const sum = (at: 1 | 2) => own.reduce((all, row) => all + row[at], 0);
    return line(`a page, ${build}`, sum(1), sum(2), '');
  });
  return [
    `${'file'.padEnd(width)}${'kB'.padStart(10)}${'brotli'.padStart(10)}  why`,
    ...rows.map((row) => line(...row)),
    ...sums.map((sum) => sum.trimEnd()),
  ].join('\n');
}
