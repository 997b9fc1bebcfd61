import { cannotStart, compileBinary } from './binary.js';
import { fetchNow } from './fetch.js';
import type { Binary } from './protocol.js';

/**
 * The parts of a build beside its core, which every page fetches (`xtask/src/parts/owners.rs` says what is in them). The core calls for a
 * part when something of it is called; what is known to be needed is fetched before.
 */
export const PARTS = [
  'gpu',
  'shaders',
  'gpu_rare',
  'tflite',
  'ncnn',
  'mnn',
  'tengine',
  'tnn',
  'pnnx',
  'gguf',
  'text',
  'speech',
  'brought',
  'common1',
  'common2',
  'common3',
  'common4',
  'common5',
  'common6',
  'common7',
  'common8',
  'common9',
  'common10',
  'common11',
  'common12',
  'common13',
  'common14',
  'common15',
  'common16',
  'common17',
  'common18',
  'common19',
  'common20',
  'common21',
  'common22',
  'common23',
  'common24',
  'common25',
  'common26',
  'common27',
  'common28',
  'common29',
  'common30',
  'common31',
  'common32',
  'rare1',
  'rare2',
  'rare3',
  'rare4',
  'rare5',
  'rare6',
  'rare7',
  'rare8',
  'rare9',
  'rare10',
  'rare11',
  'rare12',
  'rare13',
  'rare14',
  'rare15',
  'rare16',
] as const;
export type Part = (typeof PARTS)[number];

/** What is known of a page before the core calls for a part: kinds of models, of backends, and both together (`xtask/src/parts/needs.rs`). */
export const KINDS = [
  'brought',
  'ggml',
  'gguf',
  'gpu',
  'gpu_language',
  'gpu_quantized',
  'gpu_tflite',
  'language',
  'mnn',
  'ncnn',
  'nnpackage',
  'pnnx',
  'quantized',
  'safetensors',
  'speech',
  'tengine',
  'text',
  'tflite',
  'tflite_quantized',
  'tnn',
] as const;
export type Kind = (typeof KINDS)[number];

/** Where the parts of a build lie. */
export type Places = Record<Part, () => URL>;

/** The parts that each kind needs. They differ from build to build. */
export type Needs = Readonly<Record<Kind, readonly Part[]>>;

/** What is known of the parts of a build. */
export interface Build {
  places: Places;
  needs: Needs;
}

/** The parts that these kinds need. */
export const partsFor = (needs: Needs, kinds: readonly Kind[]): Part[] => [...new Set(kinds.flatMap((kind) => needs[kind]))];

/** The places of a core's parts: beside it, where its address says so, or those of the package's own, which may be the same. */
export function placesOf({ beside }: Binary, own: Places): Places {
  if (beside === undefined || !new URL(beside).pathname.endsWith('.wasm')) return own;
  const place = (part: Part): URL => {
    const url = new URL(beside);
    url.pathname = url.pathname.replace(/\.wasm$/, `.${part}.wasm`);
    return url;
  };
  try {
    if (own.gpu().href === place('gpu').href) return own;
  } catch {
    // A bundle does not say where its own are.
  }
  return Object.fromEntries(PARTS.map((part) => [part, () => place(part)])) as Places;
}

/** A part that the core's own file holds: that of the build of one file does. */
function embedded(core: WebAssembly.Module, part: Part): ArrayBuffer | undefined {
  return WebAssembly.Module.customSections(core, `kilim.${part}`)[0];
}

/** Parts that are fetched and compiled before the core is there. */
export class EarlyParts {
  readonly #places: Places;
  readonly #modules = new Map<Part, Promise<WebAssembly.Module>>();

  constructor(places: Places) {
    this.#places = places;
  }

  /** Begins with these parts. Whoever takes one learns of a failure. */
  fetch(parts: readonly Part[]): void {
    for (const part of parts) {
      if (this.#modules.has(part)) continue;
      const module = compileBinary(this.#places[part]);
      module.catch(() => undefined);
      this.#modules.set(part, module);
    }
  }

  get(part: Part): Promise<WebAssembly.Module> | undefined {
    return this.#modules.get(part);
  }
}

/**
 * Fetches and compiles a part.
 * @throws KilimError `IO` where it cannot be read or is no WebAssembly.
 */
export async function compilePart(core: WebAssembly.Module, part: Part, places: Places): Promise<WebAssembly.Module> {
  const bytes = embedded(core, part);
  return compileBinary(bytes === undefined ? places[part] : () => bytes);
}

/**
 * Fetches and compiles a part while the caller waits: in a worker, where that blocks no page.
 * @throws KilimError `IO` where it cannot be read or is no WebAssembly.
 */
export function compilePartNow(core: WebAssembly.Module, part: Part, places: Places): WebAssembly.Module {
  try {
    return new WebAssembly.Module(embedded(core, part) ?? fetchNow(places[part]()));
  } catch (error) {
    throw cannotStart(error);
  }
}
