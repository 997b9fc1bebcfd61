import { env } from 'onnxruntime-common';
import type { InferenceSession } from 'onnxruntime-common';
import { KilimError } from '../index.js';
import type { Backend, LoadOptions, ModelSource } from '../index.js';
import { usePageDevice } from './page.js';
import { warnOnce } from './warn.js';

type Options = InferenceSession.SessionOptions;
type Provider = NonNullable<Options['executionProviders']>[number];

const LEVELS = ['disabled', 'basic', 'extended', 'layout', 'all'];
const MODES = ['sequential', 'parallel'];
/** Options that name files to write, which a page has none of. */
const FILES = ['optimizedModelFilePath', 'profileFilePrefix'] as const;

/**
 * Options of onnxruntime-web as options of `load`.
 * @throws KilimError `INVALID_VALUE` where onnxruntime-web would not take a value either.
 */
export function readSessionOptions(options: Options): LoadOptions {
  checkLevels(options);
  const providers = options.executionProviders ?? [];
  const backends = backendsOf(providers);
  const pins = providers.flatMap(forcedToCpu).map((name) => `node:${name}=cpu`);
  const dims = readDimensions(options.freeDimensionOverrides);
  for (const name of FILES) if (options[name] !== undefined) warnOnce(`the option \`${name}\` has no effect`);
  return {
    ...(backends && { backends }),
    ...(pins.length > 0 && { pins }),
    ...(dims && { dims }),
    ...(options.externalData && { externalData: readExternalData(options.externalData) }),
    ...(options.enableProfiling && { configs: (backends ?? ['cpu']).map((name) => `${name}:timers=on`) }),
    ...ownOptions(options.extra),
    threads: threads(),
  };
}

function checkLevels({ graphOptimizationLevel, executionMode, logSeverityLevel, logVerbosityLevel, enableGraphCapture }: Options): void {
  if (graphOptimizationLevel !== undefined && !LEVELS.includes(graphOptimizationLevel))
    throw invalid(`unsupported graph optimization level: ${graphOptimizationLevel}`);
  if (executionMode !== undefined && !MODES.includes(executionMode)) throw invalid(`unsupported execution mode: ${executionMode}`);
  checkLog('severity', logSeverityLevel);
  checkLog('verbosity', logVerbosityLevel);
  if (enableGraphCapture !== undefined && typeof enableGraphCapture !== 'boolean')
    throw invalid(`enableGraphCapture must be a boolean value: ${enableGraphCapture}`);
}

/** Levels of a log that is not written, refused where onnxruntime-web refuses them. */
export function checkLog(kind: 'severity' | 'verbosity', level: number | undefined): void {
  if (level !== undefined && (!Number.isInteger(level) || level < 0 || level > 4))
    throw invalid(`log ${kind} level is not valid: ${level}`);
}

export function invalid(message: string): KilimError {
  return new KilimError('INVALID_VALUE', message);
}

const nameOf = (provider: Provider): string => (typeof provider === 'string' ? provider : provider.name);

/** Nothing where Kilim is to choose. onnxruntime-web computes what it can on a GPU wherever in the list that stands, and the rest on the CPU. */
function backendsOf(providers: readonly Provider[]): Backend[] | undefined {
  const names = providers.map(nameOf);
  if (names.includes('webgpu')) return ['wgpu', 'cpu'];
  return names.includes('webgl') ? undefined : ['cpu'];
}

/** Nodes that an option of the provider keeps from the GPU. */
function forcedToCpu(provider: Provider): readonly string[] {
  if (typeof provider === 'string' || provider.name !== 'webgpu') return [];
  const { device, forceCpuNodeNames = [] } = provider as { device?: unknown; forceCpuNodeNames?: string | readonly string[] };
  if (device !== undefined) usePageDevice(device);
  return typeof forceCpuNodeNames === 'string' ? [forceCpuNodeNames] : forceCpuNodeNames;
}

function readDimensions(overrides: Options['freeDimensionOverrides']): Record<string, number> | undefined {
  if (!overrides) return undefined;
  for (const value of Object.values(overrides)) {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
      throw invalid(`free dimension override value must be a non-negative integer: ${value}`);
  }
  return { ...overrides };
}

/** Files by the names in the model, which may begin with `./` on either side. */
function readExternalData(files: NonNullable<Options['externalData']>): Record<string, ModelSource> {
  const read: Record<string, ModelSource> = {};
  for (const file of files) {
    const { path, data } = isDescribed(file) ? file : { path: file, data: file };
    if (typeof path !== 'string') throw invalid('externalData needs the path of each file, as the model names it');
    read[path.startsWith('./') ? path.slice(2) : path] = bytesOrAddress(data);
  }
  return read;
}

type File = NonNullable<Options['externalData']>[number];
type Described = Extract<File, { path: string }>;

function isDescribed(file: File): file is Described {
  return typeof file === 'object' && file !== null && 'path' in file && 'data' in file;
}

function bytesOrAddress(data: Described['data']): ModelSource {
  const shared = typeof SharedArrayBuffer !== 'undefined' && (data as unknown) instanceof SharedArrayBuffer;
  return shared ? new Uint8Array(data as unknown as SharedArrayBuffer) : (data as ModelSource);
}

type Own = Pick<LoadOptions, 'assets' | 'outputs'>;

/** What onnxruntime has no option for: `extra: { kilim: { assets, outputs } }`. `env.wasm.wasmPaths` names files of onnxruntime-web. */
function ownOptions(extra: Options['extra']): Own {
  const { assets, outputs } = (extra?.['kilim'] ?? {}) as Own;
  return { ...(assets !== undefined && { assets }), ...(outputs !== undefined && { outputs }) };
}

/** What `env.wasm.numThreads` says, and otherwise as many as onnxruntime-web would start. */
function threads(): number {
  const { numThreads } = env.wasm;
  if (typeof numThreads === 'number' && Number.isInteger(numThreads) && numThreads > 0) return numThreads;
  if (!globalThis.crossOriginIsolated) return 1;
  return Math.min(4, Math.ceil((globalThis.navigator.hardwareConcurrency || 1) / 2));
}
