// Tells which points of a build are passed by what most pages do. `cargo xtask build` runs it: the folder of the build that counts,
// `kilim.mjs` and `kilim.wasm`, in; out a line for each run, its kind and the numbers of the points.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { references } from '../../test/support/references.mjs';
import { stored } from '../../test/support/zip.mjs';
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

/** A line for each run: its kind, and the points that it passed. */
const lines = [];
/** Kinds, each with the number of its runs, and of those that failed. */
const counts = {};

/** The runs of a kind, in an instance of their own: `work` has each `run` do something. A run that fails, which none may that is `needed`, is left out. */
async function runs(kind, work, { needed = true } = {}) {
  let exports;
  const glue = createGlue((of) => (exports = of));
  const threads = WebAssembly.Module.imports(module).some(({ kind }) => kind === 'memory');
  await glue.init({ module_or_path: module });
  // The thread with the session does what it offers to others, who never come: a worker finds nothing to do.
  if (threads) {
    glue.setWorkers(1, () => undefined);
    glue.help(1);
  }
  const counters = Object.entries(exports).filter(([name]) => name.startsWith('passed '));
  const count = (counts[kind] ??= { runs: 0, left: 0 });
  const tell = () => {
    const points = counters.flatMap(([name, { value }]) => bits(value).map((bit) => POINTS * Number(name.slice(7)) + bit));
    lines.push(`${kind} ${points.join(' ')}\n`);
    for (const [, counter] of counters) counter.value = 0n;
    count.runs++;
  };
  // What every instance does when it starts is the core's.
  if (kind === 'core') tell();
  await work(glue, async (once) => {
    for (const [, counter] of counters) counter.value = 0n;
    try {
      await once();
    } catch (error) {
      if (needed) throw error;
      count.left++;
      return;
    }
    tell();
  });
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

const OPTIONS = { backends: ['cpu'], pictures: () => Promise.reject(new Error('no pictures')) };

function fileOf(glue, bytes) {
  const file = new glue.WasmFile(bytes.length);
  file.write(0, Uint8Array.from(bytes));
  return file;
}

/** Models at addresses have names, those that are given as bytes have none. */
async function load(glue, bytes, options = {}, name = 'https://example.org/model.onnx') {
  return glue.WasmSession.load([fileOf(glue, bytes)], [name], { ...OPTIONS, ...options });
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
  // A FlatBuffer's begin without what MNN's has: importers of the page are asked of it.
  fileOf(glue, Uint8Array.of(16, ...new Array(99).fill(0))).isKnown('net.own');
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

/** Decoders with experts, which are large and few: pages with them fetch what they alone need. */
const EXPERTS = /moe|gptoss/;

/** The cases of a kind of references that `wanted` names, with zeros of the recorded sizes: all steps of each, the first ones of `steps`. */
async function cases(kind, of, { wanted = /./, left = /^$/, steps = 1, change = (files) => files } = {}) {
  const files = references(of);
  const { cases } = JSON.parse(files.get('index.json'));
  await runs(
    kind,
    async (glue, run) => {
      for (const { path, name, model = 'model.onnx', beside = [], files: recorded, data_sets } of cases) {
        if (!wanted.test(name) || left.test(name)) continue;
        await run(async () => {
          const names = [model, ...beside];
          const own = change(new Map(names.map((name) => [name, files.get(`${path}/${name}`)])));
          const session = await glue.WasmSession.load(
            [...own.values()].map((bytes) => fileOf(glue, bytes)),
            [...own.keys()],
            OPTIONS,
          );
          const ports = session.inputs();
          for (let step = 0; step < Math.min(steps, data_sets); step++) {
            const dims = (i) => JSON.parse(/\[.*?\]/.exec(recorded[`test_data_set_${step}/input_${i}.pb`])[0]);
            await session.run(
              ports.map((port, i) => zeros(port, dims(i))),
              undefined,
              undefined,
            );
          }
          session.free();
        });
      }
    },
    { needed: false },
  );
}

/** A package of onert as an archive. */
function packaged(files) {
  const manifest = JSON.stringify({ models: ['model.circle'], 'model-types': ['circle'] });
  return new Map([['model.zip', stored({ 'metadata/MANIFEST': Buffer.from(manifest), 'model.circle': files.get('model.circle') })]]);
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
async function words(glue, run) {
  const files = references('language');
  const settings = JSON.stringify({ num_attention_heads: 1, head_dim: 16, eos_token_id: [1, 2] });
  for (const { path } of JSON.parse(files.get('index.json')).cases) {
    if (EXPERTS.test(path)) continue;
    await run(async () => {
      const session = await load(glue, files.get(`${path}/model.onnx`));
      const windows = session.inputs().some(({ dims }) => dims?.includes('past_sliding_length'));
      const drawn = JSON.stringify({ do_sample: true, top_k: 5, top_p: 0.9 });
      const { sampling } = JSON.parse(session.openDecoder(windows ? WINDOWS : undefined, settings, drawn));
      for (const chosen of [sampling, { ...sampling, temperature: 0, topK: 0, topP: 1 }]) {
        await session.startText(Uint32Array.of(4, 5, 6), JSON.stringify(chosen));
        for (let word = 0; word < 3; word++) await session.nextWord(() => false);
      }
      session.free();
    });
  }
}

/** Words of decoders that bring their tokenizers. */
async function inside(glue, run) {
  const files = references('ggml');
  for (const { path } of JSON.parse(files.get('index.json')).cases) {
    const model = files.get(`${path}/model.gguf`);
    if (model === undefined) continue;
    await run(async () => {
      const session = await load(glue, model);
      const { sampling } = JSON.parse(session.openDecoder(undefined, undefined, undefined, model));
      await session.startText(Uint32Array.of(4, 5, 6), JSON.stringify(sampling));
      for (let word = 0; word < 3; word++) await session.nextWord(() => false);
      session.free();
    });
  }
}

/** A window of each model of speech. */
async function speech(glue, run) {
  const files = references('speech');
  for (const { path } of JSON.parse(files.get('index.json')).cases) await run(() => hear(glue, files, path));
}

async function hear(glue, files, path) {
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

const DIGITS = [
  [1, 1, 28, 28],
  [3, 1, 28, 28],
];
await runs('core', (glue, run) =>
  run(async () => {
    for (const [, bytes, sizes] of PICTURES) await use(glue, bytes, sizes);
    await use(glue, digits, DIGITS);
    await mistakes(glue);
  }),
);
await runs('tflite', async (glue, run) => {
  for (const [, bytes, dims] of TFLITE) await run(() => use(glue, bytes, [dims], {}, picture));
});
await runs('quantized', async (glue, run) => {
  for (const [, bytes, sizes] of QUANTIZED) await run(() => use(glue, bytes, sizes, {}, picture));
});
await runs('tflite_quantized', async (glue, run) => {
  for (const [, bytes, dims] of TFLITE_QUANTIZED) await run(() => use(glue, bytes, [dims], {}, picture));
});
await runs('language', async (glue, run) => {
  for (const [bytes, sizes] of TRANSFORMERS) await run(() => use(glue, bytes, sizes));
});
// Recorded decoders take the sizes of their inputs from one step to the next, so that caches grow.
await cases('decoders', 'language', { left: EXPERTS, steps: Infinity });
await cases('experts', 'language', { wanted: EXPERTS, steps: Infinity });
await cases('gguf', 'gguf', { steps: Infinity });
await runs('gguf', inside);
await cases('safetensors', 'safetensors', { steps: Infinity });
for (const kind of ['circle', 'frameworks', 'microsoft', 'mnn', 'ncnn', 'opsets', 'ort', 'pnnx', 'rules', 'tengine', 'tnn'])
  await cases(kind, kind);
await cases('tflite_cases', 'tflite');
await cases('nnpackage', 'circle', { wanted: /^instance_norm$/, change: packaged });
await runs('ggml', async (glue, run) => {
  for (const [path, bytes] of references('whisper')) {
    if (path.endsWith('.bin')) await run(async () => (await load(glue, bytes, {}, 'ggml-model.bin')).free());
  }
});
await runs('text', words);
await runs('speech', speech);
await runs('brought', async (glue, run) => {
  const options = { backends: ['page', 'cpu'], brought: [BROUGHT] };
  for (const [name, bytes, sizes] of PICTURES) {
    await run(() => use(glue, bytes, sizes, options));
    if (!name.startsWith('dense')) await run(() => use(glue, bytes, sizes, { ...options, pins: ['op:Conv=page'] }));
  }
  // A backend without help has to take all, or says what it does not.
  await run(() =>
    use(glue, digits, DIGITS.slice(0, 1), { backends: ['page'], brought: [BROUGHT] }).catch((error) => String(error.message)),
  );
});
installGpu();
const gpu = { backends: ['wgpu', 'cpu'] };
await runs('gpu', async (glue, run) => {
  for (const [, bytes, sizes] of PICTURES) await run(() => use(glue, bytes, sizes, gpu));
  await run(() => use(glue, digits, DIGITS, gpu));
});
await runs('gpu_tflite', async (glue, run) => {
  for (const [, bytes, dims] of TFLITE) await run(() => use(glue, bytes, [dims], gpu));
});
await runs('gpu_quantized', async (glue, run) => {
  for (const [, bytes, sizes] of QUANTIZED) await run(() => use(glue, bytes, sizes, gpu, picture));
  for (const [, bytes, dims] of TFLITE_QUANTIZED) await run(() => use(glue, bytes, [dims], gpu, picture));
});
await runs('gpu_language', async (glue, run) => {
  for (const [bytes, sizes] of TRANSFORMERS) await run(() => use(glue, bytes, sizes, gpu));
});
writeFileSync(out, lines.join(''));
for (const [kind, { runs, left }] of Object.entries(counts)) console.log(`${kind}: ${runs} runs${left ? `, ${left} left out` : ''}`);
