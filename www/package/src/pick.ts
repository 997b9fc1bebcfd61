import type { Picked } from './protocol.js';

/** The parts of WebGPU's types that are read here. */
interface Gpu {
  requestAdapter(): Promise<{ info?: { isFallbackAdapter?: boolean } } | null>;
}

/** WebGPU where the browser has it on a real GPU, and the CPU. */
export async function pickBackends(): Promise<Picked> {
  const reason = await whyNoGpu();
  return reason === null ? { backends: ['wgpu', 'cpu'], skipped: [] } : { backends: ['cpu'], skipped: [{ backend: 'wgpu', reason }] };
}

async function whyNoGpu(): Promise<string | null> {
  const gpu = (globalThis.navigator as { gpu?: Gpu } | undefined)?.gpu;
  // Engines outside of browsers know no secure contexts.
  const secure = (globalThis as { isSecureContext?: boolean }).isSecureContext;
  if (!gpu) return secure === undefined ? 'this JavaScript engine has no WebGPU' : secure ? 'this browser has no WebGPU' : 'WebGPU needs a page served over https';
  const adapter = await gpu.requestAdapter().catch(() => null);
  if (!adapter) return 'the browser offers no WebGPU adapter';
  return adapter.info?.isFallbackAdapter ? 'the only WebGPU adapter is a software one, slower than the CPU backend' : null;
}
