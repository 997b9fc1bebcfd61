import { registeredBackends } from './backends.js';
import { bytesOf, copyOf } from './bytes.js';
import type { DecoderFiles } from './decoder.js';
import type { SpeechFiles } from './speaking.js';
import { closest } from './describe.js';
import { VARIANTS } from './detect.js';
import type { Variant } from './detect.js';
import { KilimError, reading } from './errors.js';
import {
  address,
  amount,
  anything,
  bytes,
  callback,
  count,
  flag,
  milliseconds,
  oneOf,
  place,
  readOptions,
  record,
  samples,
  signal,
  text,
  texts,
  wrongOption,
} from './kinds.js';
import type { Kinds } from './kinds.js';
import { limitsText } from './limits.js';
import type { Limits } from './limits.js';
import type { Backend, EngineOptions, Progress, Schedule, WasmSource } from './protocol.js';
import type { ModelSource } from './source.js';
import { check as checkTensor, toWire } from './tensor.js';
import type { TensorLike, WireTensor } from './tensor.js';
import type { VerifyOptions } from './verify.js';

/** Half precision, as long as the outputs stay close. */
export interface MixedPrecision {
  /** The largest difference of an output from the one in single precision, relative to that output's largest magnitude. */
  tolerance: number;
  /** Inputs to measure that with, all of the model's in each. What they do not show is not noticed, so they should be typical ones. */
  samples: Record<string, TensorLike>[];
}

/** Options of `load`. */
export interface LoadOptions {
  /** In order of preference, those that `registerBackend` was told of among them; what the first does not run falls to the next. The default is what `pickBackends` says; `report.skipped` tells why. */
  backends?: Backend[];
  /** A node that the first backend does not run is an error. */
  strict?: boolean;
  /** Puts operators (`op:Conv=cpu`) and nodes (`node:NAME=cpu`) on a backend, by the names that `report` shows. */
  pins?: string[];
  /** Has operators (`op:Conv=float16`) and nodes (`node:NAME=float32`) compute in a floating-point type. */
  precision?: string[];
  /**
   * Asks something of single backends: `cpu:layout=NCHW`, `wgpu:f16=off`, `cpu:dynamic=off`, `cpu:timers=on` (see `session.times`), or
   * `wgpu:power=low` for the GPU that takes the least power (WebGPU's `powerPreference`).
   */
  configs?: string[];
  /** Rules of the graph's optimisation that are not applied, by the names that `kilim inspect MODEL --passes` lists. Results stay right. */
  without?: string[];
  /** Lets nodes compute in float16 where a backend is faster in it; `report.precision` says which, and why others do not. */
  mixedPrecision?: MixedPrecision;
  /** Sizes for the model's named free dimensions, so that everything is planned before the first run. */
  dims?: Record<string, number>;
  /**
   * The outputs that the session has, where the model gives more: names, with `*` for any letters. What nothing else needs is left out, inputs that
   * nothing else reads among it: an encoder and a decoder in one file become two sessions so. A name that no output has is an `INPUT` error.
   */
  outputs?: readonly string[];
  /**
   * Outputs that are wanted at the last place along an axis alone, such as the scores behind the last word of a text: `{ logits: 1 }`. They
   * have one place there, and what computes the others is left out. A name that no output has is an `INPUT` error.
   */
  lastOnly?: Record<string, number>;
  /**
   * The text of a `preprocessor_config.json` as Whisper has it: in place of its input `input_features`, the log-mel spectrum that the file
   * describes, the model takes `samples`, `float32`, `[1, samples]`, from −1 to 1. An `UNSUPPORTED` error where the model takes another spectrum.
   */
  logMel?: string;
  /** What runs beside what; `sync` by default. */
  schedule?: Schedule;
  /** What `calibrate` measured on this machine: placement is priced by it. */
  calibration?: string;
  /** Measures the kernels between which a backend has a choice and takes the fastest; loading takes some seconds longer. See `report.tuning`. */
  tune?: boolean;
  /**
   * `true` keeps the files that the model is made of, and what `session.saveCache` gives when it is loaded, on this machine: the next load takes them
   * from there, without a network, too. A file at an address is fetched anew where its server says that it has changed. `hf:` addresses are kept
   * unless this is `false`. `kilim/cache` lists and removes what is kept. Bytes are what `session.saveCache` gave; those of another version,
   * browser or device are ignored: see `report.cache`.
   */
  cache?: Uint8Array | boolean;
  /**
   * `sha256-` and the hash in base 64, as in `<script integrity>`: bytes of another hash are an `IO` error. A text is about the model's file; an object
   * has one for each file, by the names of `externalData` and the last part of the model's address.
   */
  integrity?: string | Record<string, string>;
  /** For `hf:` addresses: a branch, a tag or a commit of the repository, `main` by default. With a whole commit nothing is asked of the hub again. */
  revision?: string;
  /** For `hf:` addresses: the access token for repositories that are not public. Whoever sees the page's code has it. */
  token?: string;
  /** For `hf:` addresses: another server with the interface of huggingface.co. */
  hub?: string | URL;
  /** `limit` spares memory rather than time: weights in their own size only, one plan for each stage, nothing kept between runs. */
  memory?: 'normal' | 'limit';
  /** What the model may use: `strict` for models that somebody else chose, or limits of your own. */
  limits?: 'strict' | Limits;
  /**
   * Keeps weights as the file has them beside those that kernels read, which `verify` needs. Otherwise they go where nothing
   * else needs them: on the CPU, in models whose inputs have fixed dimensions, and with `memory: 'limit'`.
   */
  keepWeights?: boolean;
  /** Files that the model refers to, by the names it uses. */
  externalData?: Record<string, ModelSource>;
  /**
   * The address of a module whose default export is an array of `Operator`s, which the model may use beside Kilim's own.
   * It is imported where the runtime is, in the worker: functions cannot be posted. A `Blob` of its text is taken, too.
   */
  operators?: string | URL | Blob;
  onProgress?: (progress: Progress) => void;
  /** Stops loading and gives everything back. */
  signal?: AbortSignal;
  /**
   * Run in a worker of the session's own (`true`), or in the calling thread (`false`). By default in a worker, until a small model of
   * fixed shapes has turned out to take less than half a millisecond on the CPU, less than messages to a worker and back: then in the
   * calling thread, and in the worker again if a run there should take longer than a frame.
   */
  worker?: boolean;
  /**
   * Threads that kernels on the CPU compute with, in a page that is cross-origin isolated and in programs: the session's worker, and workers
   * that all sessions share. One by default, and where a page is not isolated: then workers can have no memory in common.
   */
  threads?: number;
  /**
   * The folder that the package's own files are in (`worker.*.js`, `kilim.*.wasm`), where that is not the one of its modules, as behind a
   * bundler that moves these: `npx kilim copy public/kilim` puts them into one, `assets: '/kilim/'` says where it is served.
   */
  assets?: string | URL;
  /** The runtime's binary, where it is not to be fetched from beside this module; `variant` says which build it is. */
  wasm?: WasmSource;
  /** The build to use; the default is the fastest that the browser runs. */
  variant?: Variant;
}

/** Options of `prepare` and `calibrate`: those of `load` that concern the runtime. */
export type PrepareOptions = Pick<LoadOptions, 'worker' | 'variant' | 'threads' | 'assets'>;

/** Options of `openHub`: those of `load` that concern a hub. */
export type HubOptions = Pick<LoadOptions, 'revision' | 'token' | 'hub' | 'cache' | 'signal'>;

/** Options of `Session.run`. */
export interface RunOptions {
  /**
   * Rejects the call at once. In a worker the work stops some milliseconds later, where the page is cross-origin isolated or its content
   * security policy lets workers read `blob:` addresses; elsewhere at the next step.
   */
  signal?: AbortSignal;
  /** Milliseconds after which the run is stopped with the code `ABORTED`. */
  timeout?: number;
  /**
   * Outputs that stay where they are computed and come as `DeviceTensor`, which further runs take: names, with `*` for any letters. A name
   * that no output has is an `INPUT` error, an output that is no tensor a `DTYPE` error.
   */
  keep?: string[];
  /**
   * Outputs that are wanted beside those of `keep`, named as there; all of them without it. Nodes that only other outputs need do not run.
   */
  outputs?: readonly string[];
  /**
   * Inputs whose `DeviceTensor`s this run uses up, as `keep` names outputs: they are disposed of, whether it succeeds or not. An output that the
   * model makes by writing on such an input, as it does with a cache that has room, is written where the input is, without a copy. A name that
   * no input has is an `INPUT` error.
   */
  consume?: string[];
}

/** Options of `Session.profile`, as those of `run`. */
export type ProfileOptions = Pick<RunOptions, 'signal' | 'timeout' | 'outputs'>;

const LOAD: Kinds<LoadOptions> = {
  backends: texts,
  strict: flag,
  pins: texts,
  precision: texts,
  configs: texts,
  without: texts,
  mixedPrecision: record,
  dims: record,
  outputs: texts,
  lastOnly: record,
  logMel: text,
  schedule: oneOf('sync', 'overlapped'),
  calibration: text,
  tune: flag,
  cache: { expected: 'true, false or a Uint8Array', fits: (value) => flag.fits(value) || value instanceof Uint8Array },
  integrity: { expected: 'a string, or an object of strings', fits: (value) => text.fits(value) || record.fits(value) },
  revision: text,
  token: text,
  hub: place,
  memory: oneOf('normal', 'limit'),
  limits: { expected: '`strict` or an object with limits', fits: (value) => value === 'strict' || record.fits(value) },
  keepWeights: flag,
  externalData: record,
  operators: address,
  onProgress: callback,
  signal,
  worker: flag,
  threads: count,
  assets: place,
  wasm: anything,
  variant: oneOf(...VARIANTS),
};
const MIXED: Kinds<NonNullable<LoadOptions['mixedPrecision']>> = { tolerance: amount, samples };
const RUN: Kinds<RunOptions> = { signal, timeout: milliseconds, keep: texts, outputs: texts, consume: texts };
const PROFILE: Kinds<ProfileOptions> = { signal, timeout: milliseconds, outputs: texts };
const FILES: Kinds<DecoderFiles> = { genai: text, config: text, generation: text, gguf: bytes };
const SPEECH_FILES: Kinds<SpeechFiles> = { config: text, generation: text, preprocessor: text, ggml: bytes };
const VERIFY: Kinds<VerifyOptions & { signal?: AbortSignal }> = { signal, reference: text, candidate: text, tolerance: amount };

const BACKENDS = ['wgpu', 'cpu', 'webnn'] as const satisfies readonly Backend[];
const ALIASES: Record<string, Backend> = { webgpu: 'wgpu', wasm: 'cpu' };

/** @throws KilimError `NO_BACKEND` for a name that is none. */
function backendOf(name: string): Backend {
  const brought = registeredBackends();
  if (brought.includes(name)) return name;
  const known = BACKENDS.find((backend) => backend === name) ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined);
  if (known) return known;
  const near = closest(name, [...BACKENDS, ...brought, ...Object.keys(ALIASES)]);
  const meant = near === undefined ? undefined : (ALIASES[near] ?? near);
  throw new KilimError('NO_BACKEND', `there is no backend \`${name}\``, {
    expected: [...BACKENDS, ...brought].join(', '),
    ...(meant && { hint: `did you mean \`${meant}\`?` }),
  });
}

/** The options of a load, with `backends` by their own names. */
export function readLoadOptions(call: string, given: unknown): LoadOptions {
  const options = readOptions<LoadOptions>(call, LOAD, given);
  return options.backends ? { ...options, backends: options.backends.map(backendOf) } : options;
}

export const readRunOptions = (given: unknown): RunOptions => readOptions('run', RUN, given);

export const readProfileOptions = (given: unknown): ProfileOptions => readOptions('profile', PROFILE, given);

export const readDecoderFiles = (given: unknown): DecoderFiles => readOptions('decoder', FILES, given);

/** @throws KilimError `INVALID_VALUE`, for want of `config` and `ggml`, too. */
export function readSpeechFiles(given: unknown): SpeechFiles {
  const files = readOptions('speech', SPEECH_FILES, given);
  if (files.config === undefined && files.ggml === undefined) throw wrongOption('config', text.expected, files.config);
  return files;
}

/** The options of a verification, with backends by their own names. */
export function readVerifyOptions(given: unknown): VerifyOptions & { signal?: AbortSignal } {
  const { reference, candidate, ...options } = readOptions('verify', VERIFY, given);
  return { ...options, ...(reference && { reference: backendOf(reference) }), ...(candidate && { candidate: backendOf(candidate) }) };
}

/**
 * The options that the runtime itself reads.
 * @throws KilimError `INVALID_VALUE`, and what is wrong with tensors among them.
 */
export function engineOptions({
  backends,
  strict,
  pins,
  precision,
  configs,
  without,
  mixedPrecision,
  dims,
  outputs,
  lastOnly,
  logMel,
  schedule,
  calibration,
  memory,
  limits,
  keepWeights,
  tune,
  cache,
}: LoadOptions): EngineOptions {
  return reading('an option of `load`', () => {
    const mixed = mixedPrecision && readMixed(mixedPrecision);
    if (dims) checkDims(dims);
    if (lastOnly) checkAxes(lastOnly);
    const given = Object.entries({
      backends,
      strict,
      pins,
      precision,
      configs,
      without,
      mixedPrecision: mixed,
      dims: dims && { ...dims },
      outputs: outputs && [...outputs],
      lastOnly: lastOnly && { ...lastOnly },
      logMel,
      schedule,
      calibration,
      memory,
      limits: limits && limitsText(limits),
      keepWeights,
      tune,
      cache: cache instanceof Uint8Array ? copyOf(bytesOf(cache, 'INVALID_VALUE')) : undefined,
    });
    return Object.fromEntries(given.filter(([, value]) => value !== undefined));
  });
}

function readMixed(given: object): { tolerance: number; samples: WireTensor[][] } {
  const { tolerance: error, samples: all } = readOptions<NonNullable<LoadOptions['mixedPrecision']>>('mixedPrecision', MIXED, given);
  if (all === undefined) throw wrongOption('mixedPrecision.samples', samples.expected, all);
  if (error === undefined) throw wrongOption('mixedPrecision.tolerance', amount.expected, error);
  return { tolerance: error, samples: all.map(wireSample) };
}

function wireSample(sample: Record<string, TensorLike>): WireTensor[] {
  return Object.entries(sample).map(([name, tensor]) => {
    checkTensor(tensor);
    return toWire(name, tensor);
  });
}

function checkAxes(axes: Record<string, number>): void {
  for (const [name, axis] of Object.entries(axes)) {
    if (!Number.isSafeInteger(axis)) throw wrongOption(`lastOnly.${name}`, 'a whole number, the axis', axis);
  }
}

function checkDims(dims: Record<string, number>): void {
  for (const [name, size] of Object.entries(dims)) {
    if (!Number.isSafeInteger(size) || size < 0) throw wrongOption(`dims.${name}`, 'a whole number, zero or more', size);
  }
}
