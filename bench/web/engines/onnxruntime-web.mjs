// onnxruntime-web, for ONNX.

async function runtime({ gpu, threads }) {
  const ort = await import(`../../modules/onnxruntime-web/dist/ort.${gpu ? 'webgpu' : 'wasm'}.min.mjs`);
  ort.env.logLevel = 'error';
  ort.env.wasm.numThreads = threads;
  return ort;
}

export async function open(bytes, where) {
  const { gpu } = where;
  const ort = await runtime(where);
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

/** A language model of onnxruntime-genai's builder: its caches are fed back as they come. The word of the largest score is the next. */
export async function openDecoder({ model, data, genai }, where) {
  const ort = await runtime(where);
  const { decoder, vocab_size: vocabulary } = JSON.parse(genai).model;
  const session = await ort.InferenceSession.create(model, {
    executionProviders: [where.gpu ? 'webgpu' : 'wasm'],
    graphOptimizationLevel: 'all',
    externalData: Object.entries(data).map(([path, data]) => ({ path, data })),
  });
  const pairs = [];
  for (let layer = 0; layer < decoder.num_hidden_layers; layer++) {
    for (const what of ['key', 'value']) {
      const name = (pattern) => pattern.replace('%d', layer);
      pairs.push([name(decoder.inputs[`past_${what}_names`]), name(decoder.outputs[`present_${what}_names`])]);
    }
  }
  let past;
  let length;
  let last;
  const step = async (words) => {
    length += words.length;
    const numbers = (list) => new ort.Tensor('int64', BigInt64Array.from(list, BigInt), [1, list.length]);
    const feeds = { [decoder.inputs.input_ids]: numbers(words), [decoder.inputs.attention_mask]: numbers(Array(length).fill(1)), ...past };
    const outputs = await session.run(feeds);
    past = Object.fromEntries(pairs.map(([input, output]) => [input, outputs[output]]));
    const scores = (await outputs[decoder.outputs.logits].getData()).subarray(-vocabulary);
    last = scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));
    return last;
  };
  return {
    start(words) {
      length = 0;
      const shape = [1, decoder.num_key_value_heads, 0, decoder.head_size];
      past = Object.fromEntries(pairs.map(([input]) => [input, new ort.Tensor('float32', new Float32Array(), shape)]));
      return step(words);
    },
    next: () => step([last]),
  };
}
