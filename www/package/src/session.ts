import { KilimError } from './errors.js';
import { prepareFeeds } from './feeds.js';
import type { Feed, Port } from './feeds.js';
import type { Engine, Loaded } from './protocol.js';
import { readReport } from './report.js';
import type { NodeTime, Report, WireReport } from './report.js';
import type { Tensor } from './tensor.js';
import { fromWireValue } from './values.js';
import type { Value } from './values.js';
import type { Verification, VerifyOptions } from './verify.js';

export interface RunOptions {
  /** Rejects the call at once; work already begun is stopped at the next step. */
  signal?: AbortSignal;
  /** Milliseconds after which the run is stopped with the code `ABORTED`. */
  timeout?: number;
}

/** What one timed run gives. */
export interface Profile {
  outputs: Record<string, Tensor>;
  nodes: NodeTime[];
}

const never = new AbortController().signal;

/** A model ready to run. Calls wait for each other in order; different sessions run side by side. */
export class Session {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** Read when it is asked for. */
  #report: WireReport | Report;
  #times: NodeTime[] = [];
  #engine: Engine | undefined;

  /** Made by `load`. */
  constructor(engine: Engine, loaded: Loaded) {
    this.#engine = engine;
    this.inputs = loaded.inputs;
    this.outputs = loaded.outputs;
    this.#report = loaded.report;
  }

  /** Where every node runs and why. A run with new input shapes brings it up to date. */
  get report(): Report {
    return (this.#report = readReport(this.#report));
  }

  /** What the nodes took in the last run, on backends with `timers=on`. */
  get times(): NodeTime[] {
    return this.#times;
  }

  /**
   * Runs the model. An input is a tensor, or the elements alone where the model's dimensions say the rest; an array of
   * tensors where it is a sequence, and `null` where it may be absent. What outputs are, `outputs` says; of a model that
   * gives other values than tensors, `T` is what they are.
   * @throws KilimError `INPUT` for a missing or unknown input, `DTYPE` and `SHAPE` where one does not fit, `STATE` on a closed session.
   */
  async run<T extends Value = Tensor>(feeds: Record<string, Feed>, options: RunOptions = {}): Promise<Record<string, T>> {
    return (await this.#run(feeds, options, false)).outputs as Record<string, T>;
  }

  /** Runs a model of tensors once and times every node. */
  async profile(feeds: Record<string, Feed>, options: { signal?: AbortSignal } = {}): Promise<Profile> {
    return (await this.#run(feeds, options, true)) as Profile;
  }

  /**
   * Runs every node on two backends with the same inputs, and the whole model, and names the first node that differs.
   * Everything that the reference computes is held in memory meanwhile.
   * @throws KilimError `STATE` where the session has let go of its weights: load it with `keepWeights`.
   */
  async verify(feeds: Record<string, Feed>, options: VerifyOptions & { signal?: AbortSignal } = {}): Promise<Verification> {
    if (!this.#engine) throw new KilimError('STATE', 'the session is closed');
    const { signal, ...rest } = options;
    return this.#engine.verify({ feeds: prepareFeeds(this.inputs, feeds), options: rest }, signal ?? never);
  }

  /**
   * What was found out of this machine's devices while models were loaded and run with `tune`. Keep it, in IndexedDB for instance, and
   * give it to `load` as `cache`.
   */
  async saveCache(): Promise<Uint8Array> {
    if (!this.#engine) throw new KilimError('STATE', 'the session is closed');
    return this.#engine.saveCache();
  }

  /** Gives everything back, the worker and its memory included. Calls under way are rejected with `STATE`. */
  close(): void {
    this.#engine?.close();
    this.#engine = undefined;
  }

  async #run(feeds: Record<string, Feed>, { signal, timeout }: RunOptions, profile: boolean): Promise<{ outputs: Record<string, Value>; nodes: NodeTime[] }> {
    if (!this.#engine) throw new KilimError('STATE', 'the session is closed');
    if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
      throw new KilimError('INVALID_VALUE', 'a timeout is a number of milliseconds, zero or more', { got: String(timeout) });
    }
    const request = { feeds: prepareFeeds(this.inputs, feeds), profile, ...(timeout === undefined ? {} : { timeout }) };
    const ran = await this.#engine.run(request, signal ?? never);
    if (ran.report) this.#report = ran.report;
    this.#times = ran.nodes ?? [];
    return { outputs: Object.fromEntries(ran.outputs.map((value) => [value.name, fromWireValue(value)])), nodes: ran.nodes ?? [] };
  }
}
