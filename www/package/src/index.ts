/**
 * Kilim runs neural networks in the browser.
 *
 *     const session = await load('model.onnx');
 *     const { scores } = await session.run({ image: pixels });
 */
import { compileBinary, ownBinary } from './binary.js';
import { VARIANTS, detectVariant } from './detect.js';
import type { Variant } from './detect.js';
import { KilimError, aborted } from './errors.js';
import { createLocalEngine } from './local.js';
import { createNearbyEngine } from './nearby.js';
import { pickBackends } from './pick.js';
import type { Backend, Engine, EngineOptions, Progress, Schedule, WasmSource } from './protocol.js';
import { createRemoteEngine } from './remote.js';
import { Session } from './session.js';
import { absolute, toWireSource } from './source.js';
import type { ModelSource, WireSource } from './source.js';
import { check, toWire } from './tensor.js';
import type { TensorLike, WireTensor } from './tensor.js';

export { KilimError } from './errors.js';
export type { ErrorCode, ErrorContext } from './errors.js';
export type { Feed, Port } from './feeds.js';
export type { Attributes, InputInfo, Operator, OperatorShader, OutputInfo, TensorInfo } from './operators.js';
export { pickBackends } from './pick.js';
export type { Backend, Picked, Progress, Schedule, WasmSource } from './protocol.js';
export type { BackendReport, CrossingReport, MemoryPlan, NodeReport, NodeTime, PlannedTensor, PrecisionReport, Report, TuningReport } from './report.js';
export { Session } from './session.js';
export type { ModelMap, Value } from './values.js';
export type { Profile, RunOptions } from './session.js';
export type { ModelSource } from './source.js';
export type { Agreement, NodeCheck, OutputCheck, Verification, VerifyOptions } from './verify.js';
export { Tensor, fromNumbers, toNumbers } from './tensor.js';
export type { DType, Elements, TensorLike, TypedArray } from './tensor.js';
export { detectVariant } from './detect.js';
export type { Variant } from './detect.js';

/** Half precision, as long as the outputs stay close. */
export interface MixedPrecision {
  /** The largest difference of an output from the one in single precision, relative to that output's largest magnitude. */
  tolerance: number;
  /** Inputs to measure that with, all of the model's in each. What they do not show is not noticed, so they should be typical ones. */
  samples: Record<string, TensorLike>[];
}

export interface LoadOptions {
  /** In order of preference; what the first does not run falls to the next. The default is what `pickBackends` says; `report.skipped` tells why. */
  backends?: Backend[];
  /** A node that the first backend does not run is an error. */
  strict?: boolean;
  /** Puts operators (`op:Conv=cpu`) and nodes (`node:NAME=cpu`) on a backend, by the names that `report` shows. */
  pins?: string[];
  /** Has operators (`op:Conv=float16`) and nodes (`node:NAME=float32`) compute in a floating-point type. */
  precision?: string[];
  /** Asks something of single backends: `cpu:layout=NCHW`, `wgpu:f16=off`, `cpu:dynamic=off`, `cpu:timers=on` (see `session.times`). */
  configs?: string[];
  /** Lets nodes compute in float16 where a backend is faster in it; `report.precision` says which, and why others do not. */
  mixedPrecision?: MixedPrecision;
  /** Sizes for the model's named free dimensions, so that everything is planned before the first run. */
  dims?: Record<string, number>;
  /** What runs beside what; `sync` by default. */
  schedule?: Schedule;
  /** What `calibrate` measured on this machine: placement is priced by it. */
  calibration?: string;
  /** Measures the kernels between which a backend has a choice and takes the fastest; loading takes some seconds longer. See `report.tuning`. */
  tune?: boolean;
  /** What `session.saveCache` gave. One that is of another version, browser or device is ignored: see `report.cache`. */
  cache?: Uint8Array;
  /** `limit` spares memory rather than time: weights in their own size only, one plan for each stage, nothing kept between runs. */
  memory?: 'normal' | 'limit';
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
  /** The runtime's binary, where it is not to be fetched from beside this module; `variant` says which build it is. */
  wasm?: WasmSource;
  /** The build to use; the default is the fastest that the browser runs. */
  variant?: Variant;
}

/**
 * Loads a model and makes it ready to run.
 * @throws KilimError with the codes of the model (`UNKNOWN_FORMAT`, `INVALID_MODEL`, `UNSUPPORTED`, …), `IO` where bytes
 * cannot be read, `ABORTED`.
 */
export async function load(source: ModelSource, options: LoadOptions = {}): Promise<Session> {
  const { signal, onProgress } = options;
  if (signal?.aborted) throw aborted(signal);
  const report = (progress: Progress) => onProgress?.(progress);
  report({ phase: 'runtime', loaded: 0, total: 1 });
  const { engine, started } = await takeEngine(options);
  const stop = () => engine.close();
  signal?.addEventListener('abort', stop);
  let module: string | undefined;
  try {
    module = addressOf(options.operators);
    const onBytes = (loaded: number, total: number | undefined) => report({ phase: 'download', loaded, total });
    const read = async (from: ModelSource): Promise<WireSource> => toWireSource(from, onBytes, signal);
    const external: Record<string, WireSource> = {};
    for (const [name, from] of Object.entries(options.externalData ?? {})) external[name] = await read(from);
    const request = { source: await read(source), external, ...(module === undefined ? {} : { operators: module }), options: engineOptions(options) };
    const [, loaded] = await Promise.all([
      started.then(() => report({ phase: 'runtime', loaded: 1, total: 1 })),
      engine.load(request, report, signal ?? new AbortController().signal),
    ]);
    return new Session(engine, loaded);
  } catch (error) {
    engine.close();
    throw signal?.aborted ? aborted(signal) : error;
  } finally {
    signal?.removeEventListener('abort', stop);
    if (module !== undefined && options.operators instanceof Blob) URL.revokeObjectURL(module);
  }
}

/** Options of `prepare`: those of `load` that concern the runtime. */
export type PrepareOptions = Pick<LoadOptions, 'worker' | 'variant'>;

/** A runtime, and when it has been made ready. */
interface Started {
  engine: Engine;
  started: Promise<void>;
}

let prepared: { key: string; running: Promise<Started> } | undefined;

/** Fetches and compiles the runtime ahead of time; the next `load` with the same options takes it. */
export async function prepare(options: PrepareOptions = {}): Promise<void> {
  const key = engineKey(options);
  if (prepared?.key !== key) prepared = { key, running: startEngine(options) };
  const kept = prepared;
  const { engine, started } = await kept.running;
  try {
    await started;
  } catch (error) {
    engine.close();
    if (prepared === kept) prepared = undefined;
    throw error;
  }
}

async function takeEngine(options: LoadOptions): Promise<Started> {
  const kept = prepared;
  if (kept === undefined || options.wasm !== undefined || kept.key !== engineKey(options)) return startEngine(options);
  prepared = undefined;
  return kept.running;
}

function engineKey({ worker, variant }: PrepareOptions): string {
  return `${worker} ${variant}`;
}

/** By the option `worker`. */
function createEngine(worker: boolean | undefined, build: Variant): Engine | Promise<Engine> {
  if (worker === undefined) return createNearbyEngine(build);
  return worker ? createRemoteEngine(build) : createLocalEngine(build);
}

async function startEngine({ worker, wasm, variant }: Pick<LoadOptions, 'worker' | 'wasm' | 'variant'>): Promise<Started> {
  const build = variant ?? (wasm === undefined ? detectVariant() : 'simd');
  if (build === undefined) {
    throw new KilimError('NO_BACKEND', 'this browser has no WebAssembly SIMD', { hint: 'Chrome 91, Firefox 89, Safari 16.4 and newer have it' });
  }
  if (!VARIANTS.includes(build)) throw new KilimError('INVALID_VALUE', `there is no build \`${build}\``, { expected: VARIANTS.join(', ') });
  const address = typeof wasm === 'string' ? absolute(wasm) : wasm;
  const binary = address === undefined ? ownBinary(build) : compileBinary(address);
  // Whoever waits for it learns of a failure; nobody need wait.
  binary.catch(() => undefined);
  const engine = await createEngine(worker, build);
  const started = engine.start(binary);
  started.catch(() => undefined);
  return { engine, started };
}

/** A blob's address is of this page's origin, so that the worker may import it. */
function addressOf(module: LoadOptions['operators']): string | undefined {
  if (module instanceof Blob) return URL.createObjectURL(new Blob([module], { type: 'text/javascript' }));
  return module === undefined ? undefined : absolute(module).href;
}

function engineOptions({ backends, strict, pins, precision, configs, mixedPrecision, dims, schedule, calibration, memory, keepWeights, tune, cache }: LoadOptions): EngineOptions {
  if (cache !== undefined && !(cache instanceof Uint8Array)) wrongOption('cache', 'a Uint8Array', cache);
  if (calibration !== undefined && typeof calibration !== 'string') wrongOption('calibration', 'a string', calibration);
  if (mixedPrecision !== undefined && !Array.isArray(mixedPrecision.samples)) wrongOption('mixedPrecision.samples', 'an array', mixedPrecision.samples);
  const mixed = mixedPrecision && { ...mixedPrecision, samples: mixedPrecision.samples.map(wireSample) };
  const given = Object.entries({ backends, strict, pins, precision, configs, mixedPrecision: mixed, dims, schedule, calibration, memory, keepWeights, tune, cache });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function wrongOption(name: string, expected: string, got: unknown): never {
  throw new KilimError('INVALID_VALUE', `the option \`${name}\` is not ${expected}`, { expected, got: typeof got });
}

function wireSample(sample: Record<string, TensorLike>): WireTensor[] {
  return Object.entries(sample).map(([name, tensor]) => {
    check(tensor);
    return toWire(name, tensor);
  });
}

/**
 * Measures the devices of this machine, about a second each. Keep the text, in `localStorage` for instance, and give it to `load`;
 * what was measured of a device or driver that is no longer there is ignored.
 */
export async function calibrate(options: PrepareOptions & { backends?: Backend[] } = {}): Promise<string> {
  const { engine, started } = await takeEngine(options);
  try {
    await started;
    return await engine.calibrate(options.backends ?? (await pickBackends()).backends);
  } finally {
    engine.close();
  }
}
