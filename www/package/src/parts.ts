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
  'tflite',
  'ncnn',
  'mnn',
  'tengine',
  'tnn',
  'pnnx',
  'gguf',
  'language',
  'text',
  'speech',
  'quantized',
  'more',
  'rest',
  'seldom',
  'several',
] as const;
export type Part = (typeof PARTS)[number];

/** Where the parts of a build lie. */
export type Places = Record<Part, () => URL>;

/** The places of a core's parts: beside it, where its address says so, or those of the package's own, which may be the same. */
export function placesOf({ beside }: Binary, own: Places): Places {
  if (beside === undefined || !new URL(beside).pathname.endsWith('.wasm')) return own;
  const place = (part: Part): URL => {
    const url = new URL(beside);
    url.pathname = url.pathname.replace(/\.wasm$/, `.${part}.wasm`);
    return url;
  };
  try {
    if (own.rest().href === place('rest').href) return own;
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
