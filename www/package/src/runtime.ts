import { cannotStart } from './binary.js';
import { KilimError, toPlain } from './errors.js';
import type { CreateGlue, Instance } from './glue.js';

/** What an entry gives that was not made or that trapped: for the script neither a result nor an error. */
const NOTHING: readonly unknown[] = Object.freeze([]);

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

  readonly #ended: () => void;
  #memory: WebAssembly.Memory | undefined;

  private constructor(create: CreateGlue<G>, ended: () => void) {
    this.#ended = ended;
    this.glue = create((exports) => this.#guard(exports));
  }

  /**
   * `ended` is called when the instance has trapped. With the `memory` of another instance, it is a thread of that one's.
   * @throws KilimError `IO` where the module cannot be instantiated.
   */
  static async start<G extends Instance>(create: CreateGlue<G>, module: WebAssembly.Module, ended: () => void = () => undefined, memory?: WebAssembly.Memory): Promise<Runtime<G>> {
    const runtime = new Runtime(create, ended);
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
    const failed = new Promise<never>((_resolve, reject) => { tell = reject; });
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
    const guarded = Object.entries(exports).map(([name, value]) => [name, typeof value === 'function' ? this.#entry(value) : value]);
    return Object.fromEntries(guarded) as WebAssembly.Exports;
  }

  /** The exported function `enter`. Errors of the library come back as values: what it throws is a trap, or passes through its frames like one. */
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
    this.#fault = new KilimError('INTERNAL', `the runtime failed: ${toPlain(thrown).message}`, { hint: 'load the model again' }, thrown);
    for (const tell of this.#waiting) tell(this.#fault);
    this.#ended();
  }
}
