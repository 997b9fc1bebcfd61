/**
 * Kilim runs neural networks in the browser.
 *
 *     const session = await load('model.onnx');
 *     const { scores } = await session.run({ image: pixels });
 */
import { onAbort } from './abort.js';
import { BLOBS } from './apart.js';
import { broughtBy } from './backends.js';
import { compileBinary, ownBinary } from './binary.js';
import { reasonOf } from './describe.js';
import { variantFor } from './detect.js';
import type { Variant } from './detect.js';
import type { Files, Kept, Repository } from './downloads.js';
import { downloads } from './entries.js';
import { KilimError, aborted, toKilimError } from './errors.js';
import { absolute } from './fetch.js';
import { addressOf, folderOf } from './assets.js';
import { createEngineHere } from './here.js';
import type { Place } from './here.js';
import { importersOf } from './importers.js';
import { importable } from './importable.js';
import type { Importable } from './importable.js';
import { createNearbyEngine } from './nearby.js';
import { withNeighbours } from './neighbours.js';
import { mostFileBytes } from './limits.js';
import { engineOptions, readLoadOptions } from './options.js';
import type { HubOptions, LoadOptions, PrepareOptions } from './options.js';
import { pickBackends } from './pick.js';
import type { Backend, Binary, Engine, LoadRequest, Progress, WasmSource } from './protocol.js';
import { createRemoteEngine } from './remote.js';
import { Session } from './session.js';
import type { AnyModel } from './session.js';
import type { ModelTypes } from './values.js';
import { readSource, toWireSource } from './source.js';
import type { ModelSource, Reading, WireSource } from './source.js';

export { registerBackend } from './backends.js';
export type {
  AskedNode,
  AskedTensor,
  BackendOption,
  BackendPart,
  BackendSettings,
  Change,
  Choice,
  ConnectedNodes,
  ConnectedTensor,
  Grade,
  Half,
  HeldTensor,
  Layout,
  NewNode,
  PageBackend,
  PartNode,
  PartTensor,
  PreparedPart,
  Quantized,
  Speed,
  Task,
} from './backend/types.js';
export { registerImporter } from './importers.js';
export type { ModelMetadata } from './metadata.js';
export type { DraftAttribute, DraftBody, DraftInput, DraftNode, ImportedFile, ModelDraft, PageImporter } from './importer.js';
export { Decoder } from './decoder.js';
export type { DecoderFiles, Sampling } from './decoder.js';
export { DeviceTensor } from './device.js';
export { KilimError } from './errors.js';
export type { ErrorCode, ErrorContext } from './errors.js';
export type { Feed, FeedOf, Port } from './feeds.js';
export type { Attributes, InputInfo, Operator, OperatorShader, OutputInfo, TensorInfo } from './operators.js';
export type { Limits } from './limits.js';
export type { HubOptions, LoadOptions, MixedPrecision, PrepareOptions, ProfileOptions, RunOptions } from './options.js';
export type { Repository } from './downloads.js';
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
export type { HeardPart, HeardWindow, SpeechFiles, WindowOptions } from './speaking.js';
export { fromNumbers, toNumbers } from './tensor.js';
export type { ArrayOf, DType, Elements, GivenArrayOf, TensorLike, TypedArray } from './tensor.js';
export { Tensor } from './tensor-from.js';
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
  let keepFound: Kept['keepFound'];
  let brought: Awaited<ReturnType<typeof broughtBy>>;
  let importers: Awaited<ReturnType<typeof importersOf>>;
  try {
    module = operators === undefined ? undefined : await importable(operators);
    brought = await broughtBy(options.backends, options.assets);
    importers = await importersOf(options.assets);
    const own = module;
    const readers = importers && { by: importers.by, modules: importers.modules };
    const others = brought && { by: brought.by, modules: brought.modules };
    const reading = async (): Promise<LoadRequest> => {
      const onBytes = (loaded: number, total: number | undefined) => report({ phase: 'download', loaded, total });
      const read = async (from: ModelSource): Promise<WireSource> => toWireSource(from, { onBytes, most: fileBytes, signal, blobs });
      const fileBytes = mostFileBytes(options);
      const blobs = BLOBS && options.worker !== false;
      const external: Record<string, WireSource> = {};
      for (const [name, from] of Object.entries(options.externalData ?? {})) external[name] = await read(from);
      const model = await read(source);
      const files: Kept = { source: model, external: withNeighbours(model, external) };
      const more = (from: WireSource, other: Partial<Reading>) =>
        readSource(from, { onBytes, most: fileBytes, signal, ...other, blobs: false });
      const large = (from: WireSource, other: Partial<Reading>) => readSource(from, { onBytes, most: fileBytes, signal, ...other, blobs });
      const { found, ...kept } = isManaged(files, options) ? await (await downloads()).download(files, options, more, large) : files;
      keepFound = kept.keepFound;
      return {
        own: options.wasm === undefined,
        source: kept.source,
        external: kept.external,
        fileBytes,
        painter: painterOf(options),
        ...(own && { operators: own.href }),
        ...(others && { brought: others }),
        ...(readers && { importers: readers }),
        options: engineOptions(found ? { ...options, cache: found } : options),
      };
    };
    const loading = Promise.all([
      started.then(() => report({ phase: 'runtime', loaded: 1, total: 1 })),
      reading().then((request) => engine.load(request, report, signal)),
    ]);
    const [, loaded] = await Promise.race([loading, refused]);
    keepFound?.(engine);
    return new Session<M>(engine, loaded, oneThread);
  } catch (error) {
    engine.close();
    throw signal?.aborted ? aborted(signal) : error;
  } finally {
    stopListening();
    module?.release();
    brought?.release();
    importers?.release();
  }
}

/**
 * Lists a repository of the Hugging Face hub, for files beside models: labels, settings, tokenizers.
 *
 *     const repository = await openHub('hf:owner/name', { revision: 'main' });
 *     const labels = new TextDecoder().decode(await repository.read('labels.txt'));
 *
 * @throws KilimError `IO` where there is none, or no network and nothing is kept; `INVALID_VALUE` for an address that is none; `ABORTED`.
 */
export async function openHub(address: string, options: HubOptions = {}): Promise<Repository> {
  try {
    const settings = readLoadOptions('openHub', options);
    const { signal } = settings;
    const read = (from: WireSource, more: Partial<Reading>) =>
      readSource(from, { onBytes: () => undefined, most: Infinity, signal, ...more, blobs: false });
    return await (await downloads()).openRepository(String(address), settings, read);
  } catch (error) {
    throw toKilimError(error);
  }
}

/** Where the module that brings pictures to a GPU lies; empty where nothing says it: scripts that are no modules have no address. */
function painterOf({ assets }: LoadOptions): string {
  try {
    return addressOf('painter.js', () => new URL('./painter.js', import.meta.url), assets);
  } catch {
    return '';
  }
}

/** Whether files are more than read: kept, held against a hash, or looked up on a hub. */
function isManaged({ source, external }: Files, { cache, integrity }: LoadOptions): boolean {
  const isHub = (file: WireSource) => 'url' in file && file.url.startsWith('hf:');
  return cache === true || integrity !== undefined || [source, ...Object.values(external)].some(isHub);
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
    return 'the page is not cross-origin isolated: serve it with the headers `Cross-Origin-Opener-Policy: same-origin` and `Cross-Origin-Embedder-Policy: require-corp`, or use `kilim/isolation`';
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
