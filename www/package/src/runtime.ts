import { cannotStart } from './binary.js';
import { KilimError, toPlain } from './errors.js';
import type { CreateGlue, Instance } from './glue.js';
import { PARTS, compilePart, compilePartNow } from './parts.js';
import type { EarlyParts, Part, Places } from './parts.js';

/** What an entry gives that was not made or that trapped: for the script neither a result nor an error. */
const NOTHING: readonly unknown[] = Object.freeze([]);

/** How the names of exports for parts begin. */
const SHARED = '$';

/** What an instance is made with, beside its module. */
export interface Making {
  /** Where the parts are, for a build that has parts. */
  places?: Places | undefined;
  /** Parts at these places that were asked for before. */
  early?: EarlyParts | undefined;
  /** Called when the instance has trapped. */
  ended?: () => void;
  /** The memory of another instance, whose thread this one is. */
  memory?: WebAssembly.Memory;
}

/**
 * One instance of a binary. A trap anywhere in it is the end of it: its memory can no longer be trusted, and nothing enters it again.
 * Its futures are polled by the engine's microtasks, where a trap would be an error that nobody catches, and what waits for them would
 * wait for ever; so every entry is guarded, and whoever waits is told.
 */
export class Runtime<G extends Instance> {
  readonly glue: G;
  #fault: KilimError | undefined;
  #waiting = new Set<(fault: KilimError) => void>();
  /** How many entries are on the stack: the binary calls JavaScript, which may enter it again. */
  #depth = 0;

  readonly #module: WebAssembly.Module;
  readonly #places: Places | undefined;
  readonly #early: EarlyParts | undefined;
  readonly #ended: () => void;
  #exports: WebAssembly.Exports = {};
  #memory: WebAssembly.Memory | undefined;
  #parts = new Set<Part>();

  private constructor(create: CreateGlue<G>, module: WebAssembly.Module, { places, early, ended }: Making) {
    this.#module = module;
    this.#places = places;
    this.#early = early;
    this.#ended = ended ?? (() => undefined);
    const loaders = Object.fromEntries(PARTS.map((part) => [part, () => this.#loadNow(part)]));
    this.glue = create((exports) => this.#guard(exports), loaders);
  }

  /** @throws KilimError `IO` where the module cannot be instantiated. */
  static async start<G extends Instance>(create: CreateGlue<G>, module: WebAssembly.Module, making: Making = {}): Promise<Runtime<G>> {
    const runtime = new Runtime(create, module, making);
    const { memory } = making;
    try {
      const exports = await runtime.glue.init({ module_or_path: module, ...(memory && { memory }) });
      runtime.#memory = exports.memory;
    } catch (error) {
      throw cannotStart(error);
    }
    if (runtime.#fault) throw runtime.#fault;
    return runtime;
  }

  get memory(): WebAssembly.Memory | undefined {
    return this.#memory;
  }

  /** The parts that have been loaded. */
  get parts(): ReadonlySet<Part> {
    return this.#parts;
  }

  /**
   * Loads parts, all at once, before they are called for.
   * @throws KilimError `IO` where one cannot be had.
   */
  async require(parts: readonly Part[]): Promise<void> {
    const places = this.#places;
    if (!places) return;
    await Promise.all(
      parts.map(async (part) => {
        if (this.#parts.has(part)) return;
        this.#link(part, await (this.#early?.get(part) ?? compilePart(this.#module, part, places)));
      }),
    );
  }

  /** The core has called for a part. What is thrown passes through its frames as a trap. */
  #loadNow(part: Part): void {
    if (!this.#parts.has(part) && this.#places) this.#link(part, compilePartNow(this.#module, part, this.#places));
  }

  #link(part: Part, module: WebAssembly.Module): void {
    if (this.#parts.has(part)) return;
    try {
      // Making the instance puts the part's functions into the core's table.
      new WebAssembly.Instance(module, { core: this.#exports });
    } catch (error) {
      throw new KilimError(
        'IO',
        `the runtime's part \`${part}\` does not fit: ${toPlain(error).message}`,
        { hint: 'serve all files of one version of the package' },
        error,
      );
    }
    this.#parts.add(part);
  }

  /** Why it has come to its end, if it has. */
  get fault(): KilimError | undefined {
    return this.#fault;
  }

  /**
   * What a call of the binary comes to.
   * @throws KilimError `INTERNAL` when the binary traps meanwhile, `STATE` where it has before; and what the call throws.
   */
  async call<T>(call: () => Promise<T> | T): Promise<T> {
    if (this.#fault) throw new KilimError('STATE', 'the runtime failed before', { hint: 'load the model again' }, this.#fault);
    let tell!: (fault: KilimError) => void;
    const failed = new Promise<never>((_resolve, reject) => {
      tell = reject;
    });
    // A call that throws at once is not waited for.
    failed.catch(() => undefined);
    this.#waiting.add(tell);
    try {
      const result = await Promise.race([call(), failed]);
      if (this.#fault) throw this.#fault;
      return result;
    } catch (error) {
      // What comes of an entry that trapped is nothing, on which its caller may fail in some way.
      throw this.#fault ?? error;
    } finally {
      this.#waiting.delete(tell);
    }
  }

  #guard(exports: WebAssembly.Exports): WebAssembly.Exports {
    this.#exports = exports;
    const entries = Object.entries(exports).filter(([name]) => !name.startsWith(SHARED));
    const guarded = entries.map(([name, value]) => [name, typeof value === 'function' ? this.#entry(value) : value]);
    return Object.fromEntries(guarded) as WebAssembly.Exports;
  }

  /** The exported function `enter`. Errors of the library come back as values: what it throws is a trap, or passes through its frames like one. */
  // biome-ignore lint/complexity/noBannedTypes: exports of a module have no other type.
  #entry(enter: Function): (...values: unknown[]) => unknown {
    return (...values) => {
      if (this.#fault) {
        // Frames of the binary that are still on the stack must go, too.
        if (this.#depth > 0) throw this.#fault;
        return NOTHING;
      }
      this.#depth++;
      try {
        return enter(...values);
      } catch (thrown) {
        this.#end(thrown);
        if (this.#depth > 1) throw thrown;
        return NOTHING;
      } finally {
        this.#depth--;
      }
    };
  }

  #end(thrown: unknown): void {
    if (this.#fault) return;
    this.#fault =
      thrown instanceof KilimError
        ? thrown
        : new KilimError('INTERNAL', `the runtime failed: ${toPlain(thrown).message}`, { hint: 'load the model again' }, thrown);
    for (const tell of this.#waiting) tell(this.#fault);
    this.#ended();
  }
}
