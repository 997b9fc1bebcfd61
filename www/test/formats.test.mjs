// Every format in a page, from the bytes of its files: what a model gives, and which parts of the runtime the page fetches for it.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { references } from './support/references.mjs';
import { serve } from './support/server.mjs';
import { RECORDING, SAID, sound } from './support/tones.mjs';
import { stored } from './support/zip.mjs';

const dist = join(www, 'dist', 'kilim');
/** The parts that read one format. */
const OWN = ['gguf', 'mnn', 'ncnn', 'pnnx', 'tengine', 'tflite', 'tnn'];

/** A package of onert: what is in it, and a Circle model. */
function packaged(files) {
  const manifest = JSON.stringify({ models: ['model.circle'], 'model-types': ['circle'] });
  const archive = stored({ 'metadata/MANIFEST': Buffer.from(manifest), 'model.circle': files.get('instance_norm/model.circle') });
  return new Map(files).set('instance_norm/model.zip', archive);
}

/** A format, the kind and name of a case, the file that is opened, files beside it that have to be named, and the parts of its own. */
const FORMATS = [
  { format: 'onnx', kind: 'opsets', name: 'mul_7', model: 'model.onnx', parts: [] },
  { format: 'ort', kind: 'ort', name: 'network_fixed', model: 'model.ort', parts: [] },
  { format: 'tflite', kind: 'tflite', name: 'add_int8', model: 'model.tflite', parts: ['tflite'] },
  { format: 'circle', kind: 'circle', name: 'instance_norm', model: 'model.circle', parts: ['tflite'] },
  { format: 'nnpackage', kind: 'circle', name: 'instance_norm', model: 'model.zip', parts: [], change: packaged },
  { format: 'gguf', kind: 'gguf', name: 'llama-f32', model: 'model.gguf', parts: ['gguf'] },
  { format: 'safetensors', kind: 'safetensors', name: 'gemma-bf16', model: 'config.json', beside: ['model.safetensors'], parts: ['gguf'] },
  { format: 'ncnn, text', kind: 'ncnn', name: 'network', model: 'model.param', parts: ['ncnn'] },
  { format: 'ncnn, words', kind: 'ncnn', name: 'network_binary', model: 'model.param', parts: ['ncnn'] },
  { format: 'pnnx', kind: 'pnnx', name: 'converted_picture', model: 'model.pnnx.param', parts: ['pnnx'] },
  { format: 'mnn', kind: 'mnn', name: 'network', model: 'model.mnn', parts: ['mnn'] },
  { format: 'tnn', kind: 'tnn', name: 'other_axes', model: 'model.tnnproto', parts: ['tnn'] },
  { format: 'tengine', kind: 'tengine', name: 'convolutions', model: 'model.tmfile', parts: ['tengine'] },
];

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** What `work` says in a page on a server of its own, and the parts of some formats that were asked for. */
async function inPage(mounts, work, argument) {
  const server = await serve([...mounts, ['/kilim/', dist], ['/support/', join(www, 'test', 'support')]]);
  const { page } = await open(browser, `${server.url}/empty`);
  const seen = await page.evaluate(work, argument).finally(() => Promise.all([page.close(), server.close()]));
  const fetched = OWN.filter((part) => server.asked.includes(`/kilim/kilim.simd.${part}.wasm`));
  return { seen, fetched };
}

/** Runs in the page: what is wrong with the outputs of a case. */
async function wrongOf({ folder, model, beside, rtol, atol }) {
  const kilim = await import('/kilim/index.js');
  const { differs, readValue } = await import('/support/values.mjs');
  const read = async (name) => {
    const response = await fetch(`${folder}/test_data_set_0/${name}`);
    return response.ok ? new Uint8Array(await response.arrayBuffer()) : undefined;
  };
  const externalData = Object.fromEntries(beside.map((name) => [name, `${folder}/${name}`]));
  const options = { backends: ['cpu'], variant: 'simd', worker: true, externalData };
  const session = await kilim.load(`${folder}/${model}`, options);
  try {
    const feeds = {};
    for (const [i, port] of session.inputs.entries()) {
      const bytes = await read(`input_${i}.pb`);
      if (bytes) feeds[port.name] = readValue(kilim.Tensor, bytes, port);
    }
    const given = await session.run(feeds);
    const wrong = [];
    for (const [i, port] of session.outputs.entries()) {
      const want = readValue(kilim.Tensor, await read(`output_${i}.pb`), port);
      wrong.push(differs(given[port.name], want, { rtol, atol }));
    }
    return wrong;
  } finally {
    session.close();
  }
}

for (const { format, kind, name, model, parts, beside = [], change = (files) => files } of FORMATS) {
  test(`${format}: a model runs, and its importer is fetched for it`, async () => {
    const files = references(kind);
    const { rtol, atol } = JSON.parse(files.get('index.json')).cases.find((entry) => entry.name === name);
    const request = { folder: `/cases/${name}`, model, beside, rtol, atol };
    const { seen, fetched } = await inPage([['/cases/', change(files)]], wrongOf, request);
    assert.ok(seen.length > 0);
    const wrong = seen.filter(Boolean);
    assert.deepEqual(wrong, []);
    assert.deepEqual(fetched, parts);
  });
}

test('ggml: a model hears, and its importer is fetched for it', async () => {
  const { seen, fetched } = await inPage(
    [['/whisper/', references('whisper')]],
    async (samples) => {
      const { loadSpeech } = await import('/kilim/speech.js');
      const model = await loadSpeech('/whisper/floats/ggml-model.bin', { backends: ['cpu'], variant: 'simd', worker: true });
      const { text } = await model.transcribe(Float32Array.from(samples));
      model.close();
      return text;
    },
    [...sound(RECORDING)],
  );
  assert.equal(seen, SAID);
  assert.deepEqual(fetched, ['gguf']);
});
