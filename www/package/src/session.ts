import { Decoder } from './decoder.js';
import type { DecoderFiles } from './decoder.js';
import { DeviceTensor, keptBy, spend } from './device.js';
import { closedByBlocks } from './disposable.js';
import type { Closes } from './disposable.js';
import { KilimError, reading, toKilimError } from './errors.js';
import { prepareFeeds } from './feeds.js';
import type { Feed, Port } from './feeds.js';
import { readMetadata } from './metadata.js';
import type { ModelMetadata } from './metadata.js';
import { readDecoderFiles, readProfileOptions, readRunOptions, readSpeechFiles, readVerifyOptions } from './options.js';
import type { ProfileOptions, RunOptions } from './options.js';
import type { PaintRequest } from './painter.js';
import type { Engine, Loaded, RunRequest } from './protocol.js';
import { readReport } from './report.js';
import type { NodeTime, Report, WireReport } from './report.js';
import { SpeechDecoder } from './speaking.js';
import type { SpeechFiles } from './speaking.js';
import type { Tensor } from './tensor.js';
import { copyValues, fromWireValue } from './values.js';
import type { ModelTypes, Value, WireValue } from './values.js';
import type { Verification, VerifyOptions } from './verify.js';

/** A model that may have any inputs, and gives tensors. */
export interface AnyModel {
  inputs: Record<string, Feed>;
  outputs: Record<string, Tensor>;
}

/** What one timed run gives. */
export interface Profile {
  outputs: Record<string, Tensor>;
  nodes: NodeTime[];
}

/** Closes the runtimes of sessions that nobody has any more. */
const dropped = new FinalizationRegistry<Engine>((engine) => engine.close());

/**
 * A model ready to run. Calls wait for each other in order; different sessions run side by side. `close` gives back what a session
 * holds, as does `using session = await load(…)` at the end of its block. A session that is dropped without it is closed when its object
 * is collected, which may be late: nothing tells the collector how much memory a worker holds. `M` are the types of the model's inputs and
 * outputs, which `npx kilim types` writes.
 *
 *     using session: Session = await load('model.onnx');
 *     const { scores } = await session.run({ image: pixels });
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface declares what is set on the prototype where the engine has the symbols.
export class Session<M extends ModelTypes = AnyModel> {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** Read when it is asked for. */
  #report: WireReport | Report;
  #times: NodeTime[] = [];
  #engine: Engine | undefined;
  /** What the last decoder is known by. */
  #decoder: object | undefined;
  readonly #oneThread: string | undefined;

  /** Sessions are made by `load`. */
  constructor(engine: Engine, loaded: Loaded, oneThread?: string) {
    const { inputs, outputs, report } = reading('a session', () => ({ ...loaded }));
    if (!inputs || !outputs || !report || typeof engine?.close !== 'function')
      throw new KilimError('INVALID_VALUE', 'sessions are made by `load`');
    this.#engine = engine;
    this.inputs = inputs;
    this.outputs = outputs;
    this.#report = report;
    this.#oneThread = oneThread;
    dropped.register(this, engine, this);
  }

  /**
   * Where every node runs and why. A run whose inputs have other shapes brings it up to date. Where they grow a little in each of many runs,
   * as the caches of a language model do, the first, second, fourth, eighth and so on of these runs do.
   */
  get report(): Report {
    return (this.#report = readReport(this.#report, this.#oneThread));
  }

  /** What the nodes took in the last run, on backends with `timers=on`. */
  get times(): NodeTime[] {
    return this.#times;
  }

  /** `DeviceTensor`s that runs have kept and that were neither disposed of nor used up nor collected. */
  get kept(): number {
    return this.#engine ? keptBy(this) : 0;
  }

  /**
   * Runs the model. An input is a tensor, or the elements alone where the model's dimensions say the rest; an array of
   * tensors where it is a sequence, and `null` where it may be absent. What outputs are, `outputs` says; of a model that
   * gives other values than tensors, `T` is what they are, and of a run that keeps outputs, `DeviceTensor` among them. Inputs are read before
   * the call returns: afterwards their memory is the caller's.
   *
   *     const { scores } = await session.run({ image: pixels }, { outputs: ['scores'] });
   *
   * @throws KilimError `INPUT` for a missing or unknown input, `DTYPE` and `SHAPE` where one does not fit, `STATE` on a closed session.
   */
  run<K extends keyof M['outputs'] & string>(
    feeds: M['inputs'],
    options: RunOptions & { outputs: readonly K[] },
  ): Promise<Pick<M['outputs'], K>>;
  run(feeds: M['inputs'], options?: RunOptions & { outputs?: undefined }): Promise<M['outputs']>;
  run(feeds: M['inputs'], options: RunOptions): Promise<Partial<M['outputs']>>;
  run<T extends Value>(feeds: M['inputs'], options?: RunOptions): Promise<Record<string, T>>;
  async run(feeds: M['inputs'], options: RunOptions = {}): Promise<Record<string, Value>> {
    return (await this.#run(feeds, readRunOptions(options), false)).outputs;
  }

  /** Runs a model of tensors once and times every node, of `outputs` alone where they are named. Errors are those of `run`. */
  async profile(feeds: Record<string, Feed>, options: ProfileOptions = {}): Promise<Profile> {
    return (await this.#run(feeds, readProfileOptions(options), true)) as Profile;
  }

  /**
   * Runs every node on two backends with the same inputs, and the whole model, and names the first node that differs.
   * Everything that the reference computes is held in memory meanwhile.
   * @throws KilimError `STATE` where the session has let go of its weights: load it with `keepWeights`.
   */
  async verify(feeds: Record<string, Feed>, options: VerifyOptions & { signal?: AbortSignal } = {}): Promise<Verification> {
    const { signal, ...how } = readVerifyOptions(options);
    return this.#given(feeds, (values, engine) => engine.verify({ feeds: values, options: how }, signal));
  }

  /**
   * Makes a decoder of a language model, in place of the one that was made before. `files` are the texts of the files beside it, which say what
   * the model does not.
   * @throws KilimError `UNSUPPORTED` where the model is none whose inputs are words and caches, `INVALID_MODEL` for files that cannot be understood.
   */
  async decoder(files: DecoderFiles = {}): Promise<Decoder> {
    const given = readDecoderFiles(files);
    const own = {};
    this.#decoder = own;
    const said = await this.#call((engine) => engine.openDecoder(given));
    const call = <T>(make: (engine: Engine) => Promise<T>): Promise<T> => {
      if (this.#decoder !== own && this.#engine) throw new KilimError('STATE', 'another decoder of the session was made');
      return this.#call(make);
    };
    return new Decoder(
      {
        startText: async (words, sampling) => call((engine) => engine.startText(words, sampling)),
        nextWords: async (signal) => {
          const spoken = await call((engine) => engine.nextWords({}, signal));
          if (spoken.report) this.#report = spoken.report;
          return spoken;
        },
      },
      said,
    );
  }

  /**
   * Makes a speech decoder of a session, in place of the one that was made before. `files` are the texts of the files beside it, or the beginning of its
   * file where that has all of the model.
   * @throws KilimError `UNSUPPORTED` where the model is no decoder of Whisper or Moonshine, `INVALID_MODEL` for files that cannot be understood.
   */
  async speech(files: SpeechFiles): Promise<SpeechDecoder> {
    const given = readSpeechFiles(files);
    const said = await this.#call((engine) => engine.openSpeech(given));
    return new SpeechDecoder(
      {
        hearWindow: async (source, samples, wanted, signal) => {
          const heard = await this.#call((engine) => engine.hearWindow({ source, samples, wanted }, signal));
          if (heard.report) this.#report = heard.report;
          return heard;
        },
        nextWindow: (samples, times) => this.#call((engine) => engine.nextWindow(samples, times)),
      },
      said,
    );
  }

  /** What the model file says of itself: who wrote it, what it is for, and what else stands there. Asked of the runtime by each call. */
  async metadata(): Promise<ModelMetadata> {
    return readMetadata(await this.#call((engine) => engine.metadata()));
  }

  /**
   * Gives the model's variables the values that they had before the first run; `report.variables` names them. Runs that were called before are done
   * first. A model without variables stays as it is.
   */
  async reset(): Promise<void> {
    return this.#call((engine) => engine.reset());
  }

  /**
   * Brings pictures into a tensor on the session's GPU; `undefined` where it has none, or cannot take them. `Tensor.from` with the option `session` calls it.
   * What is given is used up.
   */
  async paint(request: PaintRequest): Promise<DeviceTensor | undefined> {
    return this.#call(async (engine) => {
      const wire = await engine.paint(request);
      return wire && new DeviceTensor(engine, wire, this);
    });
  }

  /**
   * What was found out of this machine's devices while models were loaded and run with `tune`. Keep it, in IndexedDB for instance, and
   * give it to `load` as `cache`.
   */
  async saveCache(): Promise<Uint8Array> {
    return this.#call((engine) => engine.saveCache());
  }

  /** Gives everything back, the worker and its memory included. Calls under way are rejected with `STATE`. */
  close(): void {
    this.#engine?.close();
    this.#engine = undefined;
    dropped.unregister(this);
  }

  /** A call of the runtime with these inputs. It is made at once unless other sessions have kept some of them. */
  #given<T>(feeds: Record<string, Feed>, call: (values: WireValue[], engine: Engine) => Promise<T>): Promise<T> {
    return this.#call((engine) => {
      const given = reading('an input', () => prepareFeeds(this.inputs, feeds, engine));
      const there = given.filter((value): value is WireValue => !(value instanceof Promise));
      if (there.length === given.length) return call(there, engine);
      const copied = copyValues(there);
      const coming = given.filter((value) => value instanceof Promise);
      return Promise.all(coming).then((read) => call([...copied, ...read], engine));
    });
  }

  /** A call of the runtime. The session is in use until the call is done, so that it is not collected meanwhile. */
  async #call<T>(call: (engine: Engine) => Promise<T>): Promise<T> {
    if (!this.#engine) throw closed();
    let result: T;
    try {
      result = await call(this.#engine);
    } catch (error) {
      throw toKilimError(error);
    }
    if (!this.#engine) throw closed();
    return result;
  }

  async #run(
    feeds: Record<string, Feed>,
    { signal, timeout, keep, consume = [], outputs }: RunOptions,
    profile: boolean,
  ): Promise<{ outputs: Record<string, Value>; nodes: NodeTime[] }> {
    const consumed = named('input', this.inputs, 'consume', consume);
    named('output', this.outputs, 'outputs', outputs ?? []);
    const { ran, engine } = await this.#given(feeds, async (values, engine) => {
      const give: (() => void)[] = [];
      const given = values.map((value) => {
        const tensor = consumed(value.name) && feeds[value.name];
        if (!(tensor instanceof DeviceTensor)) return value;
        const back = spend(tensor);
        // What another session had kept was read.
        if (!('kept' in value)) back();
        else give.push(back);
        return 'kept' in value ? { ...value, spent: true } : value;
      });
      const request: RunRequest = {
        feeds: given,
        profile,
        ...(timeout === undefined ? {} : { timeout }),
        ...(keep && { keep }),
        ...(outputs && { outputs: [...outputs] }),
      };
      try {
        return { ran: await engine.run(request, signal), engine };
      } catch (error) {
        for (const back of give) back();
        throw error;
      }
    });
    if (ran.report) this.#report = ran.report;
    this.#times = ran.nodes ?? [];
    return {
      outputs: Object.fromEntries(
        ran.outputs.map((value) => [value.name, 'kept' in value ? new DeviceTensor(engine, value, this) : fromWireValue(value)]),
      ),
      nodes: ran.nodes ?? [],
    };
  }
}

/**
 * Tells of inputs or outputs whether the patterns of an option name them.
 * @throws KilimError `INPUT` for a pattern that fits none.
 */
function named(what: string, ports: readonly Port[], option: string, patterns: readonly string[]): (name: string) => boolean {
  const names = ports.map(({ name }) => name);
  const all = patterns.map((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
    const fits = new RegExp(`^${parts.join('.*')}$`, 's');
    if (!names.some((name) => fits.test(name)))
      throw new KilimError('INPUT', `no ${what} fits \`${pattern}\`, which \`${option}\` names`, {
        expected: names.join(', '),
        got: pattern,
      });
    return fits;
  });
  return (name) => all.some((fits) => fits.test(name));
}

function closed(): KilimError {
  return new KilimError('STATE', 'the session is closed');
}

// biome-ignore lint/correctness/noUnusedVariables: a declaration of the class has its parameters.
export interface Session<M extends ModelTypes = AnyModel> extends Closes {}

closedByBlocks(Session);
