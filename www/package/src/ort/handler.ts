import type { InferenceSession, InferenceSessionHandler, SessionHandler, Tensor } from 'onnxruntime-common';
import { DeviceTensor } from '../index.js';
import type { Feed, NodeTime, Port, Session, Value } from '../index.js';
import { deviceBufferOf } from './buffers.js';
import { failed, failure } from './failures.js';
import { toFeed } from './inputs.js';
import { checkLog } from './options.js';
import { toOutput } from './outputs.js';
import { printTimes } from './profile.js';
import { warnOnce } from './warn.js';

type Metadata = InferenceSession.ValueMetadata;
type Fetches = Record<string, Tensor | null>;

/** What onnxruntime-web calls a session in its messages. */
let sessions = 0;

/** How the session was created. */
export interface Created {
  /** Outputs that stay on the device. */
  kept: ReadonlySet<string>;
  /** Whether nodes are timed. */
  profiled: boolean;
}

/** A session of Kilim as onnxruntime-common takes one. */
export class Handler implements InferenceSessionHandler {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly Metadata[];
  readonly outputMetadata: readonly Metadata[];
  readonly #id = ++sessions;
  readonly #inputs: ReadonlyMap<string, Port>;
  readonly #kept: ReadonlySet<string>;
  #session: Session | undefined;
  /** Runs that were called and are not done. */
  #running = new Set<Promise<unknown>>();
  /** What nodes took in each run, where they are timed. */
  #times: NodeTime[][] | undefined;

  constructor(session: Session, { kept, profiled }: Created) {
    this.#session = session;
    this.#kept = kept;
    if (profiled) this.#times = [];
    this.#inputs = new Map(session.inputs.map((port) => [port.name, port]));
    this.inputNames = session.inputs.map(({ name }) => name);
    this.outputNames = session.outputs.map(({ name }) => name);
    this.inputMetadata = session.inputs.map(metadata);
    this.outputMetadata = session.outputs.map(metadata);
  }

  run(feeds: SessionHandler.FeedsType, fetches: SessionHandler.FetchesType, options: InferenceSession.RunOptions) {
    const running = this.#run(feeds as Record<string, Tensor>, this.#fetchesIn(options) ?? (fetches as Fetches), options);
    this.#running.add(running);
    const done = () => this.#running.delete(running);
    running.then(done, done);
    return running;
  }

  /** Runs that were called before are done first. */
  async dispose(): Promise<void> {
    const session = this.#session;
    if (!session) throw new Error(`cannot release session. invalid session id: ${this.#id}`);
    this.#session = undefined;
    await Promise.allSettled(this.#running);
    session.close();
  }

  startProfiling(): void {
    if (!this.#times) warnOnce('a session is profiled from the first run on if it is created with `enableProfiling`');
  }

  endProfiling(): void {
    if (this.#times?.length) printTimes(this.#times);
    this.#times = undefined;
  }

  async #run(feeds: Record<string, Tensor>, fetches: Fetches, options: InferenceSession.RunOptions): Promise<Record<string, Tensor>> {
    const session = this.#session;
    if (!session) throw new Error(`cannot run inference. invalid session id: ${this.#id}`);
    checkLog('severity', options.logSeverityLevel);
    if (options.terminate) throw failed('run', 'ABORTED', 'Exiting due to terminate flag being set to true.');
    const names = Object.keys(fetches);
    const keep = names.filter((name) => staysOnDevice(fetches[name], this.#kept.has(name)));
    const given = Object.entries(feeds).map(([name, tensor]) => {
      const port = this.#inputs.get(name);
      if (!port) throw new Error(`invalid input '${name}'`);
      return [name, toFeed(port, tensor)] as const;
    });
    const how = { ...(keep.length > 0 && { keep }), ...(names.length < this.outputNames.length && { outputs: names }) };
    const run = (inputs: readonly (readonly [string, Feed])[]) => session.run<Value>(Object.fromEntries(inputs), how);
    const values = await inputsOf(given, run).catch((error: unknown) => {
      throw failure('run', error);
    });
    this.#times?.push(session.times);
    const outputs = names.map(async (name) => [name, await toOutput(name, values[name], fetches[name] ?? null)] as const);
    return Object.fromEntries(await Promise.all(outputs));
  }

  /** What onnxruntime-common took for options: tensors to fill that are of another copy of its class. */
  #fetchesIn(options: object): Fetches | undefined {
    const given = options as Record<string, unknown>;
    const found = this.outputNames.filter((name) => Object.hasOwn(given, name) && isTensor(given[name]));
    return found.length > 0 ? Object.fromEntries(found.map((name) => [name, given[name] as Tensor])) : undefined;
  }
}

/** Runs at once, unless some inputs must be read: then what the caller gave is copied meanwhile. */
function inputsOf<T>(
  given: readonly (readonly [string, Feed | Promise<Feed>])[],
  run: (inputs: (readonly [string, Feed])[]) => Promise<T>,
): Promise<T> {
  const there = given.filter((entry): entry is [string, Feed] => !(entry[1] instanceof Promise));
  if (there.length === given.length) return run(there);
  const copied = given.map(async ([name, feed]) => [name, await (feed instanceof Promise ? feed : copyOf(feed))] as const);
  return Promise.all(copied).then(run);
}

function copyOf(feed: Feed): Feed {
  return feed instanceof DeviceTensor ? feed : structuredClone(feed);
}

/** A tensor to fill decides for itself. */
function staysOnDevice(given: Tensor | null | undefined, preferred: boolean): boolean {
  return given ? deviceBufferOf(given) !== undefined : preferred;
}

function isTensor(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'dims' in value && 'location' in value;
}

/** A rank that is not known is no dimensions, and a dimension that is not known is -1. */
function metadata({ name, kind, type, dims }: Port): Metadata {
  if (kind !== 'tensor') return { name, isTensor: false };
  return { name, isTensor: true, type: (type ?? 'float32') as Tensor.Type, shape: (dims ?? []).map((d) => d ?? -1) };
}
