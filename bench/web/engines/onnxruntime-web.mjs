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

/** The caches of a model of onnxruntime-genai's builder: names of inputs and outputs, heads and their size. */
function caches({ num_hidden_layers, num_key_value_heads: heads, head_size: size, inputs, outputs }) {
  return Array.from({ length: num_hidden_layers }, (_, layer) =>
    ['key', 'value'].map((what) => {
      const name = (pattern) => pattern.replace('%d', layer);
      return { input: name(inputs[`past_${what}_names`]), output: name(outputs[`present_${what}_names`]), heads, size };
    }),
  ).flat();
}

/** The caches of a model by itself, by the names that exporters give them. */
const named = (session) =>
  session.inputMetadata
    .filter(({ name }) => name.startsWith('past_key_values.'))
    .map(({ name, shape: [, heads, , size] }) => ({ input: name, output: name.replace('past_key_values', 'present'), heads, size }));

/** A language model: its caches are fed back as they come. The word of the largest score is the next. */
export async function openDecoder({ model, data, genai }, where) {
  const ort = await runtime(where);
  const decoder = genai && JSON.parse(genai).model.decoder;
  const session = await ort.InferenceSession.create(model, {
    executionProviders: [where.gpu ? 'webgpu' : 'wasm'],
    graphOptimizationLevel: 'all',
    externalData: Object.entries(data).map(([path, data]) => ({ path, data })),
  });
  const pairs = decoder ? caches(decoder) : named(session);
  const { input_ids: ids, attention_mask: mask } = decoder?.inputs ?? { input_ids: 'input_ids', attention_mask: 'attention_mask' };
  const logits = decoder?.outputs.logits ?? 'logits';
  const masked = session.inputNames.includes(mask);
  let past;
  let length;
  let last;
  const step = async (words) => {
    length += words.length;
    const numbers = (list) => new ort.Tensor('int64', BigInt64Array.from(list, BigInt), [1, list.length]);
    const feeds = { [ids]: numbers(words), ...(masked ? { [mask]: numbers(Array(length).fill(1)) } : {}), ...past };
    const outputs = await session.run(feeds);
    past = Object.fromEntries(pairs.map(({ input, output }) => [input, outputs[output]]));
    const scores = (await outputs[logits].getData()).subarray(-outputs[logits].dims.at(-1));
    last = scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));
    return last;
  };
  return {
    start(words) {
      length = 0;
      const empty = ({ heads, size }) => new ort.Tensor('float32', new Float32Array(), [1, heads, 0, size]);
      past = Object.fromEntries(pairs.map((pair) => [pair.input, empty(pair)]));
      return step(words);
    },
    next: () => step([last]),
  };
}
