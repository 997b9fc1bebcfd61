import { env } from 'onnxruntime-common';
import type { Backend, InferenceSession } from 'onnxruntime-common';
import { KilimError, load } from '../index.js';
import type { LoadOptions, ModelSource, Session } from '../index.js';
import { failure } from './failures.js';
import { Handler } from './handler.js';
import { readSessionOptions } from './options.js';
import { keptOutputs } from './outputs.js';
import { warnOnce } from './warn.js';

type Options = InferenceSession.SessionOptions;

/** Names of execution providers, and onnxruntime-web's priorities: what is 10 is taken where none is named, what is negative never is. */
export const BACKENDS = [
  ['webgpu', 5],
  ['cpu', 10],
  ['wasm', 10],
  ['webgl', -10],
] as const;

/** The one backend behind all names. */
export const backend: Backend = {
  async init(name: string): Promise<void> {
    if (name === 'webgpu') await requireGpu();
  },
  async createInferenceSessionHandler(model: string | Uint8Array, options: Options = {}) {
    const session = await open(model, options);
    try {
      return new Handler(session, { kept: keptOutputs(session.outputs, options), profiled: options.enableProfiling === true });
    } catch (error) {
      session.close();
      throw error;
    }
  },
};

interface Gpu {
  requestAdapter(options: object): Promise<object | null>;
}

/** Fails in onnxruntime-web's words where there is no WebGPU. */
async function requireGpu(): Promise<void> {
  const { gpu } = (globalThis.navigator ?? {}) as { gpu?: Gpu };
  if (!gpu) throw new KilimError('DEVICE', 'WebGPU is not supported in current environment');
  const { powerPreference, forceFallbackAdapter } = env.webgpu;
  if (powerPreference !== undefined && powerPreference !== 'low-power' && powerPreference !== 'high-performance')
    throw new KilimError('INVALID_VALUE', `Invalid powerPreference setting: "${powerPreference}"`);
  if (forceFallbackAdapter !== undefined && typeof forceFallbackAdapter !== 'boolean')
    throw new KilimError('INVALID_VALUE', `Invalid forceFallbackAdapter setting: "${forceFallbackAdapter}"`);
  const adapter = await gpu.requestAdapter({ powerPreference, forceFallbackAdapter });
  if (!adapter) throw new KilimError('DEVICE', 'Failed to get GPU adapter. The browser offers none.');
}

async function open(model: string | Uint8Array, options: Options): Promise<Session> {
  const given = readSessionOptions(options);
  try {
    return await load(model, given).catch((error: unknown) => openWithKnown(model, given, error));
  } catch (error) {
    throw fileFailure(error) ?? failure('create', error);
  }
}

/** Passes over names of nodes and dimensions that the model has not, as onnxruntime does, where they may be what `error` is about. */
async function openWithKnown(source: ModelSource, { pins, dims, ...options }: LoadOptions, error: unknown): Promise<Session> {
  if (!(error instanceof KilimError) || error.code !== 'INVALID_VALUE' || !(pins || dims)) throw error;
  if (pins) warnOnce(`\`forceCpuNodeNames\` has no effect: ${error.message}`);
  const session = await load(source, options);
  const names = new Set<unknown>(session.inputs.flatMap((port) => port.dims ?? []));
  const known = Object.entries(dims ?? {}).filter(([name]) => names.has(name));
  if (known.length === 0) return session;
  session.close();
  return load(source, { ...options, dims: Object.fromEntries(known) });
}

/** The error of a file that cannot be read, in the words of onnxruntime-web. */
function fileFailure(error: unknown): KilimError | undefined {
  if (!(error instanceof KilimError) || error.code !== 'IO') return undefined;
  const { got, hint } = error;
  const parts = { ...(got !== undefined && { got }), ...(hint !== undefined && { hint }) };
  return new KilimError('IO', `failed to load external data file: ${error.summary}`, parts, error);
}
