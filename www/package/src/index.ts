/**
 * Kilim runs neural networks in the browser.
 *
 *     const session = await load('model.onnx');
 *     const { scores } = await session.run({ image: pixels });
 */
import { onAbort } from './abort.js';
import { compileBinary, ownBinary } from './binary.js';
import { reasonOf } from './describe.js';
import { variantFor } from './detect.js';
import type { Variant } from './detect.js';
import { KilimError, aborted, toKilimError } from './errors.js';
import { absolute } from './fetch.js';
import { folderOf } from './assets.js';
import { createEngineHere } from './here.js';
import type { Place } from './here.js';
import { importable } from './importable.js';
import type { Importable } from './importable.js';
import { createNearbyEngine } from './nearby.js';
import { withNeighbours } from './neighbours.js';
import { engineOptions, mostFileBytes, readLoadOptions } from './options.js';
import type { LoadOptions, PrepareOptions } from './options.js';
import { pickBackends } from './pick.js';
import type { Backend, Binary, Engine, LoadRequest, Progress, WasmSource } from './protocol.js';
import { createRemoteEngine } from './remote.js';
import { Session } from './session.js';
import type { AnyModel } from './session.js';
import type { ModelTypes } from './values.js';
import { toWireSource } from './source.js';
import type { ModelSource, WireSource } from './source.js';

export { Decoder } from './decoder.js';
export type { DecoderFiles, Sampling } from './decoder.js';
export { DeviceTensor } from './device.js';
export { KilimError } from './errors.js';
export type { ErrorCode, ErrorContext } from './errors.js';
export type { Feed, FeedOf, Port } from './feeds.js';
export type { Attributes, InputInfo, Operator, OperatorShader, OutputInfo, TensorInfo } from './operators.js';
export type { Limits, LoadOptions, MixedPrecision, PrepareOptions, RunOptions } from './options.js';
export { pickBackends } from './pick.js';
export type { Backend, Picked, Progress, Schedule, WasmSource } from './protocol.js';
export type {
  BackendReport,
  CrossingReport,
  MemoryPlan,
  NodeReport,
  NodeTime,
  PlannedTensor,
  PrecisionReport,
  Report,
  TuningReport,
} from './report.js';
export { Session } from './session.js';
export type { ModelMap, ModelTypes, Value } from './values.js';
export type { AnyModel, Profile } from './session.js';
export type { ModelSource } from './source.js';
export type { Agreement, NodeCheck, OutputCheck, Verification, VerifyOptions } from './verify.js';
export { SpeechDecoder } from './speaking.js';
export type { HeardWindow, SpeechFiles, WindowOptions } from './speaking.js';
export { Tensor, fromNumbers, toNumbers } from './tensor.js';
export type { ArrayOf, DType, Elements, GivenArrayOf, TensorLike, TypedArray } from './tensor.js';
export { detectVariant } from './detect.js';
export type { Variant } from './detect.js';

/**
 * Loads a model and makes it ready to run. Bytes must stay as they are until it is loaded. `M` are the types of its inputs and outputs, which
 * `npx kilim types` writes.
 *
 *     const session = await load('model.onnx', { backends: ['wgpu', 'cpu'] });
 *
 * @throws KilimError with the codes of the model (`UNKNOWN_FORMAT`, `INVALID_MODEL`, `UNSUPPORTED`, …), `IO` where bytes
 * cannot be read, `INVALID_VALUE` for options that are none, `ABORTED`.
 */
export async function load<M extends ModelTypes = AnyModel>(source: ModelSource, options: LoadOptions = {}): Promise<Session<M>> {
  try {
    return await loadWith(source, readLoadOptions('load', options));
  } catch (error) {
    throw toKilimError(error);
  }
}

async function loadWith<M extends ModelTypes>(source: ModelSource, options: LoadOptions): Promise<Session<M>> {
  const { signal, operators } = options;
  if (signal?.aborted) throw aborted(signal);
  const { report, refused } = progressOf(options.onProgress);
  report({ phase: 'runtime', loaded: 0, total: 1 });
  const { engine, started, oneThread } = await takeEngine(options);
  const stopListening = onAbort(signal, () => engine.close());
  let module: Importable | undefined;
  try {
    module = operators === undefined ? undefined : await importable(operators);
    const own = module;
    const reading = async (): Promise<LoadRequest> => {
      const onBytes = (loaded: number, total: number | undefined) => report({ phase: 'download', loaded, total });
      const read = async (from: ModelSource): Promise<WireSource> => toWireSource(from, { onBytes, most: fileBytes, signal });
      const fileBytes = mostFileBytes(options);
      const external: Record<string, WireSource> = {};
      for (const [name, from] of Object.entries(options.externalData ?? {})) external[name] = await read(from);
      const model = await read(source);
      return {
        own: options.wasm === undefined,
        source: model,
        external: withNeighbours(model, external),
        fileBytes,
        ...(own && { operators: own.href }),
        options: engineOptions(options),
      };
    };
    const loading = Promise.all([
      started.then(() => report({ phase: 'runtime', loaded: 1, total: 1 })),
      reading().then((request) => engine.load(request, report, signal)),
    ]);
    const [, loaded] = await Promise.race([loading, refused]);
    return new Session<M>(engine, loaded, oneThread);
  } catch (error) {
    engine.close();
    throw signal?.aborted ? aborted(signal) : error;
  } finally {
    stopListening();
    module?.release();
  }
}

/** Tells `onProgress`. What that throws ends the load, whichever thread it is told from. */
function progressOf(onProgress: LoadOptions['onProgress']): { report(progress: Progress): void; refused: Promise<never> } {
  let refuse!: (error: KilimError) => void;
  const refused = new Promise<never>((_resolve, reject) => {
    refuse = reject;
  });
  refused.catch(() => undefined);
  const report = (progress: Progress) => {
    try {
      onProgress?.(progress);
    } catch (thrown) {
      refuse(new KilimError('INVALID_VALUE', `\`onProgress\` threw: ${reasonOf(thrown)}`, {}, thrown));
    }
  };
  return { report, refused };
}

/** A runtime, and when it has been made ready. */
interface Started {
  engine: Engine;
  started: Promise<void>;
  /** Why there is one thread, where more were asked for. */
  oneThread: string | undefined;
}

let prepared: { key: string; running: Promise<Started> } | undefined;

/**
 * Fetches and compiles the runtime ahead of time; the next `load` with the same options takes it.
 *
 *     await prepare({ threads: 4 });
 *     const session = await load('model.onnx', { threads: 4 });
 */
export async function prepare(options: PrepareOptions = {}): Promise<void> {
  const given = readLoadOptions('prepare', options);
  const key = engineKey(given);
  if (prepared?.key !== key) prepared = { key, running: startEngine(given) };
  const kept = prepared;
  try {
    const { engine, started } = await kept.running;
    await started.catch((error) => {
      engine.close();
      throw error;
    });
  } catch (error) {
    if (prepared === kept) prepared = undefined;
    throw toKilimError(error);
  }
}

async function takeEngine(options: LoadOptions): Promise<Started> {
  const kept = prepared;
  if (kept === undefined || options.wasm !== undefined || kept.key !== engineKey(options)) return startEngine(options);
  prepared = undefined;
  return kept.running;
}

function engineKey({ worker, variant, threads, assets }: PrepareOptions): string {
  return `${worker} ${variant} ${threads} ${assets}`;
}

/** The engine that the option `worker` chooses. */
function createEngine(worker: boolean | undefined, place: Place): Engine | Promise<Engine> {
  if (worker === undefined) return createNearbyEngine(place);
  return worker ? createRemoteEngine(place) : createEngineHere(place.variant);
}

async function startEngine({
  worker,
  wasm,
  variant,
  threads = 1,
  assets: folder,
}: Pick<LoadOptions, 'worker' | 'wasm' | 'variant' | 'threads' | 'assets'>): Promise<Started> {
  const build = variant ?? (wasm === undefined ? variantFor(worker === false ? 1 : threads) : 'simd');
  if (build === undefined) {
    throw new KilimError('NO_BACKEND', 'this browser has no WebAssembly SIMD', {
      hint: 'Chrome 91, Firefox 89, Safari 16.4 and newer have it',
    });
  }
  const assets = folder && folderOf(folder);
  const binary = wasm === undefined ? ownBinary(build, assets) : givenBinary(wasm);
  // Whoever waits for it learns of a failure; nobody need wait.
  binary.catch(() => undefined);
  const engine = await createEngine(worker, { variant: build, threads, assets });
  const started = engine.start(binary).then(() => undefined);
  started.catch(() => undefined);
  return { engine, started, oneThread: threads > 1 ? whyOneThread(worker, build) : undefined };
}

/** A binary of the caller's. What has an address has its parts beside it. */
async function givenBinary(wasm: WasmSource): Promise<Binary> {
  const address = typeof wasm === 'string' ? absolute(wasm) : wasm;
  const beside = address instanceof Response ? address.url : address instanceof URL ? address.href : '';
  const module = await compileBinary(() => address);
  return beside === '' ? { module } : { module, beside };
}

function whyOneThread(worker: boolean | undefined, build: Variant): string | undefined {
  if (worker === false) return 'the session computes in the calling thread';
  if (build === 'threads') return undefined;
  if (globalThis.crossOriginIsolated === undefined)
    return 'this JavaScript engine has no workers with memory in common, or no relaxed SIMD';
  if (!globalThis.crossOriginIsolated) {
    return 'the page is not cross-origin isolated: serve it with the headers `Cross-Origin-Opener-Policy: same-origin` and `Cross-Origin-Embedder-Policy: require-corp`';
  }
  return `the build \`${build}\` has one`;
}

/**
 * Measures the devices of this machine, about a second each. Keep the text, in `localStorage` for instance, and give it to `load`;
 * what was measured of a device or driver that is no longer there is ignored.
 *
 *     const calibration = await calibrate({ backends: ['cpu'] });
 *     const session = await load('model.onnx', { calibration });
 */
export async function calibrate(options: PrepareOptions & { backends?: Backend[] } = {}): Promise<string> {
  try {
    const given = readLoadOptions('calibrate', options);
    const { engine, started } = await takeEngine(given);
    try {
      await started;
      return await engine.calibrate(given.backends ?? (await pickBackends()).backends);
    } finally {
      engine.close();
    }
  } catch (error) {
    throw toKilimError(error);
  }
}
