// A GPU that computes nothing: what runs on one pass of the runtime is known without one.

const LIMITS = {
  maxTextureDimension1D: 8192,
  maxTextureDimension2D: 8192,
  maxTextureDimension3D: 2048,
  maxTextureArrayLayers: 256,
  maxBindGroups: 4,
  maxBindGroupsPlusVertexBuffers: 24,
  maxBindingsPerBindGroup: 1000,
  maxDynamicUniformBuffersPerPipelineLayout: 8,
  maxDynamicStorageBuffersPerPipelineLayout: 4,
  maxSampledTexturesPerShaderStage: 16,
  maxSamplersPerShaderStage: 16,
  maxStorageBuffersPerShaderStage: 8,
  maxStorageTexturesPerShaderStage: 4,
  maxUniformBuffersPerShaderStage: 12,
  maxUniformBufferBindingSize: 65536,
  maxStorageBufferBindingSize: 1 << 30,
  minUniformBufferOffsetAlignment: 256,
  minStorageBufferOffsetAlignment: 256,
  maxVertexBuffers: 8,
  maxBufferSize: 1 << 30,
  maxVertexAttributes: 16,
  maxVertexBufferArrayStride: 2048,
  maxInterStageShaderVariables: 16,
  maxColorAttachments: 8,
  maxColorAttachmentBytesPerSample: 32,
  maxComputeWorkgroupStorageSize: 32768,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupsPerDimension: 65535,
};
const info = {
  vendor: 'none',
  architecture: 'none',
  device: '',
  description: '',
  subgroupMinSize: 4,
  subgroupMaxSize: 64,
  isFallbackAdapter: false,
};

/** Has whatever is asked for: methods that do nothing and give such an object again. */
function anything(own = {}) {
  const made = (...args) => anything({ label: args[0]?.label ?? '' });
  return new Proxy(own, { get: (of, name) => (name in of ? of[name] : name === 'then' || typeof name === 'symbol' ? undefined : made) });
}

function buffer({ size, label }) {
  const bytes = new ArrayBuffer(size);
  return anything({
    size,
    label,
    mapAsync: async () => undefined,
    getMappedRange: (offset = 0, length = size - offset) =>
      offset === 0 && length === size ? bytes : bytes.slice(offset, offset + length),
  });
}

/** Puts the GPU into place, where pages have theirs. */
export function installGpu() {
  class GPUValidationError extends Error {}
  class GPUOutOfMemoryError extends Error {}
  const features = new Set(['shader-f16', 'timestamp-query']);
  const queue = anything({ onSubmittedWorkDone: async () => undefined });
  const requestDevice = async () =>
    anything({
      features,
      limits: LIMITS,
      queue,
      lost: new Promise(() => {}),
      createBuffer: buffer,
      popErrorScope: async () => null,
      createShaderModule: () => anything({ getCompilationInfo: async () => ({ messages: [] }) }),
    });
  const adapter = anything({ features, limits: LIMITS, info, isFallbackAdapter: false, requestDevice });
  const gpu = anything({ requestAdapter: async () => adapter });
  Object.defineProperty(globalThis, 'navigator', { value: { gpu }, configurable: true });
  Object.assign(globalThis, { GPUValidationError, GPUOutOfMemoryError, WorkerGlobalScope: Object });
}
