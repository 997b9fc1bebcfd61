// Tells which points of a build are passed by what most pages do. `cargo xtask build` runs it: the folder of the build that counts,
// `kilim.mjs` and `kilim.wasm`, in; out a line for each kind of run, its name and the numbers of the points.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { references } from '../../test/support/references.mjs';
import { BROUGHT } from './brought.mjs';
import { installGpu } from './gpu.mjs';
import { TRANSFORMERS } from './language.mjs';
import { PICTURES } from './models.mjs';
import { QUANTIZED } from './quantized.mjs';
import { TFLITE, TFLITE_QUANTIZED } from './tflite.mjs';

const [folder, out] = process.argv.slice(2);
const { createGlue } = await import(pathToFileURL(join(folder, 'kilim.mjs')));
const module = await WebAssembly.compile(readFileSync(join(folder, 'kilim.wasm')));
const BYTES = { float64: 8, int64: 8, uint64: 8, float32: 4, int32: 4, uint32: 4, float16: 2, bfloat16: 2, int16: 2, uint16: 2 };
const digits = readFileSync(new URL('../../../assets/digits.onnx', import.meta.url));

/** Points that one export tells of, each by a bit. */
const POINTS = 64;

/** What is passed while `work` has a new instance. */
async function passed(work) {
  let exports;
  const glue = createGlue((of) => (exports = of));
  const threads = WebAssembly.Module.imports(module).some(({ kind }) => kind === 'memory');
  await glue.init({ module_or_path: module });
  // The thread with the session does what it offers to others, who never come.
  if (threads) glue.setWorkers(1, () => undefined);
  await work(glue);
  return Object.entries(exports)
    .filter(([name]) => name.startsWith('passed '))
    .flatMap(([name, { value }]) => bits(value).map((bit) => POINTS * Number(name.slice(7)) + bit));
}

/** The bits of a 64-bit integer that are set. */
function bits(value) {
  const set = [];
  for (let bit = 0, rest = BigInt.asUintN(64, value); rest > 0n; bit++, rest >>= 1n) if (rest & 1n) set.push(bit);
  return set;
}

const zeros = ({ name, type }, dims) => {
  const length = dims.reduce((a, b) => a * b, 1) * (BYTES[type] ?? 1);
  return { kind: 'tensor', name, type, dims, bytes: new Uint8Array(length) };
};

/** What a picture gives: numbers that differ from place to place. */
const picture = (port, dims) => {
  const feed = zeros(port, dims);
  if (port.type === 'float32') new Float32Array(feed.bytes.buffer).forEach((_, i, floats) => (floats[i] = Math.sin(i * 0.37)));
  else feed.bytes.forEach((_, i, bytes) => (bytes[i] = (i * 37) % 251));
  return feed;
};

/** Models at addresses have names, those that are given as bytes have none. */
async function load(glue, bytes, options = {}, name = 'https://example.org/model.onnx') {
  const file = new glue.WasmFile(bytes.length);
  file.write(0, Uint8Array.from(bytes));
  return glue.WasmSession.load([file], [name], { backends: ['cpu'], pictures: () => Promise.reject(new Error('no pictures')), ...options });
}

/** Does what a page does with a session. A run is the dims of every input, or of each. */
async function use(glue, bytes, runs, options, fill = zeros) {
  const session = await load(glue, bytes, options);
  const [inputs] = [session.inputs(), session.outputs(), session.report()];
  for (const run of runs) {
    const feeds = inputs.map((port, i) => {
      const dims = Array.isArray(run?.[0]) ? run[i] : run;
      return fill(port, dims ?? (port.dims ?? []).map((d) => (typeof d === 'number' ? d : 2)));
    });
    await session.run(feeds, 60_000, () => false);
    session.revision();
    await session.run(feeds, undefined, undefined);
    JSON.parse((await session.profile(feeds, undefined, undefined))[1]);
  }
  session.report();
  session.free();
}

/** What goes wrong in pages: errors are told without another fetch. */
async function mistakes(glue) {
  const failed = async (attempt) =>
    attempt().then(
      () => {
        throw new Error(`this should have failed: ${attempt}`);
      },
      (error) => String(error.message),
    );
  for (const bytes of [Buffer.from('<!doctype html><html>'), digits.subarray(0, 500), Buffer.alloc(0)]) {
    await failed(() => load(glue, bytes));
    await failed(() => load(glue, bytes, {}, ''));
  }
  await failed(() => load(glue, digits, { backends: ['gpu'] }));
  (await load(glue, digits, {}, '')).free();
  const session = await load(glue, digits);
  const [port] = session.inputs();
  const right = zeros(port, [1, 1, 28, 28]);
  for (const feeds of [
    [],
    [zeros(port, [1, 1, 3])],
    [zeros(port, [1, 3, 28, 28])],
    [{ ...right, name: 'picture' }],
    [zeros({ ...port, type: 'int32' }, [1, 1, 28, 28])],
  ]) {
    await failed(async () => session.run(feeds, undefined, undefined));
  }
  // So short a run may end before it is asked to.
  await session.run([right], 60_000, () => true).catch(() => undefined);
  await session.run([right], 0, undefined).catch(() => undefined);
  session.abort();
  session.free();
}

/** The cases of a kind whose names match, with inputs of zeros. What cannot be run so is left out. */
async function cases(glue, kind, names) {
  const files = references(kind);
  for (const { path, model = 'model.onnx', name } of JSON.parse(files.get('index.json')).cases) {
    if (!names.test(name)) continue;
    await use(glue, files.get(`${path}/${model}`), [undefined]).catch(() => undefined);
  }
}

/** Decoders with experts, which are large and few: pages with them fetch what they alone need. */
const EXPERTS = /moe|gptoss/;

/** Texts: recorded decoders take the sizes of their inputs from one step to the next, so that caches grow. */
async function texts(glue, kind) {
  const files = references(kind);
  for (const { path, model, files: recorded, data_sets: steps } of JSON.parse(files.get('index.json')).cases) {
    if (EXPERTS.test(path)) continue;
    const session = await load(glue, files.get(`${path}/${model}`));
    const ports = session.inputs();
    for (let step = 0; step < steps; step++) {
      const dims = (i) => JSON.parse(/\[.*?\]/.exec(recorded[`test_data_set_${step}/input_${i}.pb`])[0]);
      await session.run(
        ports.map((port, i) => zeros(port, dims(i))),
        undefined,
        undefined,
      );
    }
    session.free();
  }
}

/** What the builder's settings say of a model whose first layer has caches of windows. */
const WINDOWS = JSON.stringify({
  model: {
    eos_token_id: [1, 2],
    decoder: { head_size: 16, num_key_value_heads: 1, sliding_window: { window_size: 8, layers: [0], cache_slack: 0 } },
  },
  search: { do_sample: true, top_k: 5, top_p: 0.9 },
});

/** Words of recorded decoders, the best ones and drawn ones, and a text that begins as the one before. */
async function words(glue) {
  const files = references('language');
  const settings = JSON.stringify({ num_attention_heads: 1, head_dim: 16, eos_token_id: [1, 2] });
  for (const { path } of JSON.parse(files.get('index.json')).cases) {
    if (EXPERTS.test(path)) continue;
    const session = await load(glue, files.get(`${path}/model.onnx`));
    const windows = session.inputs().some(({ dims }) => dims?.includes('past_sliding_length'));
    const drawn = JSON.stringify({ do_sample: true, top_k: 5, top_p: 0.9 });
    const { sampling } = JSON.parse(session.openDecoder(windows ? WINDOWS : undefined, settings, drawn));
    for (const chosen of [sampling, { ...sampling, temperature: 0, topK: 0, topP: 1 }]) {
      await session.startText(Uint32Array.of(4, 5, 6), JSON.stringify(chosen));
      for (let word = 0; word < 3; word++) await session.nextWord(() => false);
    }
    session.free();
  }
}

/** Words of decoders that bring their tokenizers. */
async function inside(glue) {
  const files = references('ggml');
  for (const { path } of JSON.parse(files.get('index.json')).cases) {
    const model = files.get(`${path}/model.gguf`);
    if (model === undefined) continue;
    const session = await load(glue, model);
    const { sampling } = JSON.parse(session.openDecoder(undefined, undefined, undefined, model));
    await session.startText(Uint32Array.of(4, 5, 6), JSON.stringify(sampling));
    for (let word = 0; word < 3; word++) await session.nextWord(() => false);
    session.free();
  }
}

/** A window of each model of speech. */
async function speech(glue) {
  const files = references('speech');
  for (const { path } of JSON.parse(files.get('index.json')).cases) {
    const text = (name) => Buffer.from(files.get(`${path}/${name}`)).toString();
    const preprocessor = text('preprocessor_config.json');
    const logMel = path.startsWith('whisper') ? { logMel: preprocessor } : {};
    const encoder = await load(glue, files.get(`${path}/encoder_model.onnx`), logMel);
    const heard = (port) => {
      const feed = picture(
        port,
        port.dims.map((d, i) => (typeof d === 'number' ? d : i ? 20_000 : 1)),
      );
      if (port.type === 'int64') new BigInt64Array(feed.bytes.buffer).fill(1n);
      return feed;
    };
    const feeds = encoder.inputs().map(heard);
    const [source] = await encoder.run(feeds, undefined, undefined);
    const decoding = await load(glue, files.get(`${path}/decoder_model_merged.onnx`), { lastOnly: { logits: 1 } });
    const { times } = JSON.parse(decoding.openSpeech(text('config.json'), text('generation_config.json'), preprocessor));
    for (const wanted of times ? [{}, { language: 'en', times: true }] : [{}]) {
      const made = { ...source, bytes: source.bytes.slice() };
      await decoding.hearWindow([made], 20_000, JSON.stringify(wanted), () => false);
    }
    decoding.nextWindow(new Float32Array(600_000), false);
    encoder.free();
    decoding.free();
  }
}

const profile = {
  core: await passed(async (glue) => {
    for (const [, bytes, runs] of PICTURES) await use(glue, bytes, runs);
    await use(glue, digits, [
      [1, 1, 28, 28],
      [3, 1, 28, 28],
    ]);
    await mistakes(glue);
  }),
  tflite_pictures: await passed(async (glue) => {
    for (const [, bytes, dims] of TFLITE) await use(glue, bytes, [dims], {}, picture);
  }),
  tflite: await passed((glue) => cases(glue, 'tflite', /./)),
  quantized_pictures: await passed(async (glue) => {
    for (const [, bytes, runs] of QUANTIZED) await use(glue, bytes, runs, {}, picture);
  }),
  tflite_quantized: await passed(async (glue) => {
    for (const [, bytes, dims] of TFLITE_QUANTIZED) await use(glue, bytes, [dims], {}, picture);
  }),
  quantized: await passed(async (glue) => {
    await cases(glue, 'opsets', /quantize|qlinear|integer/);
    await cases(glue, 'microsoft', /quantize|qlinear|integer/);
  }),
  language: await passed(async (glue) => {
    await cases(
      glue,
      'opsets',
      /^(gather|where|expand|shape|range|cumsum|less|greater|equal|not|and|pow|sqrt|erf|reduce|layer|trilu|cast|constant|squeeze|unsqueeze|slice|split|concat|topk|tile|scatter|nonzero|if|loop|attention|rms|rotary)/,
    );
    // What models with a recurrent state, experts, caches of integers or pictures have is fetched by pages with such models alone.
    await cases(
      glue,
      'microsoft',
      /^(?!linear_attention|m_rotary|gated|group_norm|skip_group|bias_split|gemm_|moe|group_query_attention_\d_bits).*(attention|rotary|norm|gelu|matmul_\d_bits|gather_block|embed)/,
    );
    await texts(glue, 'language');
  }),
  gguf: await passed(async (glue) => {
    await texts(glue, 'gguf');
    await inside(glue);
  }),
};
profile.brought = await passed(async (glue) => {
  const options = { backends: ['page', 'cpu'], brought: [BROUGHT] };
  for (const [name, bytes, runs] of PICTURES) {
    await use(glue, bytes, runs, options);
    if (!name.startsWith('dense')) await use(glue, bytes, runs, { ...options, pins: ['op:Conv=page'] });
  }
  // A backend without help has to take all, or says what it does not.
  await use(glue, digits, [[1, 1, 28, 28]], { backends: ['page'], brought: [BROUGHT] }).catch((error) => String(error.message));
});
profile.transformers = await passed(async (glue) => {
  for (const [bytes, runs] of TRANSFORMERS) await use(glue, bytes, runs);
});
profile.text = await passed(words);
profile.speech = await passed(speech);
installGpu();
const gpu = { backends: ['wgpu', 'cpu'] };
profile.gpu = await passed(async (glue) => {
  for (const [, bytes, runs] of PICTURES) await use(glue, bytes, runs, gpu);
  await use(
    glue,
    digits,
    [
      [1, 1, 28, 28],
      [3, 1, 28, 28],
    ],
    gpu,
  );
});
profile.gpu_tflite = await passed(async (glue) => {
  for (const [, bytes, dims] of TFLITE) await use(glue, bytes, [dims], gpu);
});
profile.gpu_quantized = await passed(async (glue) => {
  for (const [, bytes, runs] of QUANTIZED) await use(glue, bytes, runs, gpu, picture);
  for (const [, bytes, dims] of TFLITE_QUANTIZED) await use(glue, bytes, [dims], gpu, picture);
});
profile.gpu_transformers = await passed(async (glue) => {
  for (const [bytes, runs] of TRANSFORMERS) await use(glue, bytes, runs, gpu);
});
writeFileSync(
  out,
  Object.entries(profile)
    .map(([kind, points]) => `${kind} ${points.join(' ')}\n`)
    .join(''),
);
for (const [kind, points] of Object.entries(profile)) console.log(`${kind}: ${points.length} points`);
