// onnxruntime-web, for ONNX.

export async function open(bytes, { gpu, threads }) {
  const ort = await import(`../../modules/onnxruntime-web/dist/ort.${gpu ? 'webgpu' : 'wasm'}.min.mjs`);
  ort.env.logLevel = 'error';
  ort.env.wasm.numThreads = threads;
  const session = await ort.InferenceSession.create(bytes, {
    executionProviders: [gpu ? 'webgpu' : 'wasm'],
    graphOptimizationLevel: 'all',
  });
  return {
    inputs: session.inputMetadata.map(({ name, type, shape }) => ({ name, type, dims: shape })),
    async run(feeds) {
      const tensors = feeds.map(({ name, type, data, dims }) => [name, new ort.Tensor(type, data, dims)]);
      const outputs = await session.run(Object.fromEntries(tensors));
      return Promise.all(
        session.outputNames.map(async (name) => ({ name, dims: outputs[name].dims, data: await outputs[name].getData() })),
      );
    },
  };
}
