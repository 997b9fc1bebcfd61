// LiteRT.js, for TFLite.

export async function open(bytes, { gpu, threads }) {
  const package_ = new URL('../../modules/@litertjs/core/', import.meta.url).href;
  const { Tensor, loadAndCompile, loadLiteRt } = await import(`${package_}dist/index.js`);
  await loadLiteRt(`${package_}wasm/`, { threads: threads > 1 });
  const model = await loadAndCompile(bytes, gpu ? { accelerator: 'webgpu' } : { accelerator: 'wasm', cpuOptions: { numThreads: threads } });
  const made = model.getOutputDetails();
  return {
    inputs: model.getInputDetails().map(({ name, dtype, shape }) => ({ name, type: dtype, dims: [...shape] })),
    async run(feeds) {
      const tensors = feeds.map(({ data, dims }) => new Tensor(data, dims));
      const outputs = await model.run(tensors);
      for (const tensor of tensors) tensor.delete();
      return Promise.all(
        outputs.map(async (output, i) => {
          const host = await output.moveTo('wasm');
          const data = host.toTypedArray().slice();
          host.delete();
          return { name: made[i].name, dims: [...made[i].shape], data };
        }),
      );
    },
  };
}
