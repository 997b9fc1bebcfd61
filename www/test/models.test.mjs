// Real models in the page, on both backends, against the reference outputs of their own runtimes.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repository } from './support/browser.mjs';
import { readNpz } from './support/npz.mjs';
import { packagePage } from './support/page.mjs';

const folder = join(process.env.KILIM_SHARED ?? join(repository, '..', 'shared'), 'models');
const manifest = join(folder, 'manifest.json');
const skip = existsSync(manifest) ? false : `${manifest} is not there`;
const FILES = [
  'version-RFB-320_simplified.onnx',
  'silero_vad.onnx',
  'super_resolution.onnx',
  'angle_net.onnx',
  'mnist.onnx',
  'greedy_loop.onnx',
  'kws_ref_model_float32.tflite',
  'pretrainedResnet.tflite',
  'trained_lstm.tflite',
  'nanodet_320.mnn',
  'angle_net.mnn',
  'squeezenet_v1.1.param',
  'RFB-320.param',
  'nanodet_sim_opt.tnnproto',
  'mnist_half.tnnproto',
  'mnist.tmfile',
];
/** What must run on the backend that is asked for; elsewhere some of a model may be cheaper. */
const KEPT = { 'trained_lstm.tflite': 'LSTM' };
const variants = skip
  ? []
  : JSON.parse(readFileSync(manifest)).models.flatMap(({ name, variants }) => variants.map((variant) => ({ name, ...variant })));

/** What the page fetches: the arrays of the case that is being run. */
const arrays = new Map();
const here = packagePage({
  folders: [['/models/', folder]],
  opened: (page) => page.route('**/arrays/*', (route) => route.fulfill({ body: arrays.get(new URL(route.request().url()).pathname) })),
  skip,
});

/** An array of a case, put where the page can fetch it. */
function offer(model, { name, file, key }) {
  const { type, dims, bytes } = readNpz(join(folder, model, file))[key];
  const url = `/arrays/${arrays.size}`;
  arrays.set(url, bytes);
  return { name, type, dims, url };
}

/** Runs in the page: the largest difference of each output from its reference, and what the reference's largest value is. */
async function compare({ url, inputs, outputs, backends }) {
  const kilim = await import('/kilim/index.js');
  const array = async ({ type, dims, url }) => {
    const { data } = new kilim.Tensor(type, dims);
    new Uint8Array(data.buffer).set(new Uint8Array(await (await fetch(url)).arrayBuffer()));
    return new kilim.Tensor(type, dims, data);
  };
  const session = await kilim.load(url, { backends });
  try {
    const feeds = {};
    for (const input of inputs) feeds[input.name] = await array(input);
    const given = await session.run(feeds);
    const worst = [];
    for (const output of outputs) {
      const reference = (await array(output)).toNumbers();
      const result = given[output.name];
      const values = result.toNumbers();
      let [difference, largest] = [0, 0];
      reference.forEach((r, i) => {
        const apart = Math.abs(values[i] - r);
        difference = Number.isNaN(apart) ? Infinity : Math.max(difference, apart);
        largest = Math.max(largest, Math.abs(r));
      });
      worst.push({ name: output.name, dims: [...result.dims], expected: output.dims, difference, largest });
    }
    return { worst, nodes: session.report.nodes.map(({ op, backend }) => ({ op, backend })) };
  } finally {
    session.close();
  }
}

for (const file of FILES) {
  for (const backends of [['cpu'], ['wgpu', 'cpu']]) {
    test(`${file} on ${backends[0]}`, { skip, timeout: 180_000 }, async () => {
      const variant = variants.find(({ files }) => files.at(-1) === file);
      assert.ok(variant, `the manifest lists no ${file}`);
      const [{ inputs, outputs }] = variant.cases;
      arrays.clear();
      const request = {
        url: `/models/${variant.name}/${file}`,
        inputs: inputs.map((input) => offer(variant.name, input)),
        outputs: outputs.map((output) => offer(variant.name, output)),
        backends,
      };
      const { worst, nodes } = await here.page.evaluate(compare, request);
      const there = nodes.filter(({ op, backend }) => op === (KEPT[file] ?? op) && backend === backends[0]);
      assert.ok(there.length > 0, JSON.stringify(nodes));
      const tolerance = variant.tolerance === 'exact' ? 0 : variant.tolerance;
      assert.equal(typeof tolerance, 'number');
      for (const { name, dims, expected, difference, largest } of worst) {
        assert.deepEqual(dims, expected, name);
        assert.ok(difference <= tolerance * largest, `${name}: ${difference} of ${largest}, tolerance ${tolerance}`);
      }
    });
  }
}
