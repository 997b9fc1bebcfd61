// The runtime in parts: pages fetch the core, and the parts that their models and backends need.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { graph, model } from './support/onnx.mjs';
import { references } from './support/references.mjs';
import { serve } from './support/server.mjs';
import { TRANSFORMERS } from '../scripts/profile/language.mjs';
import { TFLITE_QUANTIZED } from '../scripts/profile/tflite.mjs';

const dist = join(www, 'dist', 'kilim');
const { needs } = await import('../pkg/kilim.simd.needs.js');
const PART = /^kilim\.simd\.(\w+)\.wasm$/;
const PARTS = readdirSync(dist).flatMap((name) => PART.exec(name)?.[1] ?? []);
const EVERY = PARTS.filter((part) => part !== 'whole');
const digits = [...readFileSync(join(repository, 'assets', 'digits.onnx'))];
/** A model with an operator that hardly any page needs. */
const determinant = model({ nodes: [['Det', ['x'], ['y']]], inputs: [['x', ['N', 2, 2]]], outputs: [['y', ['N']]] });

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** A page on a server of its own, what it says, and the files of the runtime that were asked for. */
async function inPage(mounts, work, argument, prepare = async () => {}) {
  const server = await serve([...mounts, ['/kilim/', dist]]);
  const { page } = await open(browser, `${server.url}/empty`);
  await prepare(page);
  await page.evaluate(async () => {
    globalThis.kilim = await import('/kilim/index.js');
    globalThis.attempt = async (bytes, feeds, options) => {
      try {
        const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], variant: 'simd', worker: true, ...options });
        const outputs = await session.run(feeds(session.inputs));
        session.close();
        return Object.values(outputs).map(({ dims, data }) => [dims, Array.from(data, Number)]);
      } catch ({ code, message }) {
        return { code, message };
      }
    };
    globalThis.zeros = (inputs) =>
      Object.fromEntries(
        inputs.map(({ name, type, dims }) => [
          name,
          new kilim.Tensor(
            type,
            dims.map((d) => (typeof d === 'number' ? d : 1)),
          ),
        ]),
      );
    globalThis.matrices = () => ({ x: new kilim.Tensor('float32', [2, 2, 2], Float32Array.of(1, 2, 3, 4, 5, 6, 7, 9)) });
  });
  const seen = await page.evaluate(work, argument).finally(() => Promise.all([page.close(), server.close()]));
  const fetched = server.asked.filter((path) => path.endsWith('.wasm')).map((path) => path.split('/').pop());
  return { seen, fetched: fetched.sort() };
}

/** The files of the core and of these parts. */
const filesOf = (parts) => ['kilim.simd.wasm', ...Array.from(new Set(parts), (part) => `kilim.simd.${part}.wasm`)].sort();
/** The files of what no model did that the package was built with. */
const rareOf = (fetched) => fetched.filter((name) => name.includes('.rare'));

const DETERMINANTS = [[[2], [-2, 3]]];

test('a network for pictures needs the core alone', async () => {
  const { seen, fetched } = await inPage([], (bytes) => attempt(bytes, zeros), digits);
  assert.deepEqual(seen[0][0], [1, 10]);
  assert.deepEqual(fetched, ['kilim.simd.wasm']);
  // A model at an address has a name, which errors tell.
  const served = await inPage([['/assets/', join(repository, 'assets')]], async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], variant: 'simd', worker: true });
    const { probabilities } = await session.run(zeros(session.inputs));
    session.close();
    return probabilities.dims;
  });
  assert.deepEqual(served, { seen: [1, 10], fetched: ['kilim.simd.wasm'] });
});

test('what else is called for is fetched, once for a session', async () => {
  const { seen, fetched } = await inPage(
    [],
    async (bytes) => {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], variant: 'simd', worker: true });
      const runs = [];
      for (let i = 0; i < 3; i++) runs.push((await session.run(matrices())).y);
      session.close();
      return runs.map(({ dims, data }) => [dims, Array.from(data, Math.round)]);
    },
    determinant,
  );
  assert.deepEqual(seen, [...DETERMINANTS, ...DETERMINANTS, ...DETERMINANTS]);
  assert.equal(new Set(fetched).size, fetched.length, String(fetched));
  assert.ok(fetched.length > 1 && !fetched.includes('kilim.simd.gpu.wasm'), String(fetched));
});

test("a TFLite model needs its part, and the GPU's backend the GPU's", async () => {
  const files = references('tflite');
  const file = [...files.get('add_int8/model.tflite')];
  const tflite = await inPage([], (bytes) => attempt(bytes, zeros), file);
  assert.ok(Array.isArray(tflite.seen), JSON.stringify(tflite.seen));
  assert.ok(tflite.fetched.includes('kilim.simd.tflite.wasm'), String(tflite.fetched));
  assert.deepEqual(rareOf(tflite.fetched), []);
  const network = references('ncnn');
  const [param, weights] = ['param', 'bin'].map((end) => [...network.get(`network/model.${end}`)]);
  const beside = new Map(['param', 'bin'].map((end) => [`model.${end}`, network.get(`network/model.${end}`)]));
  const ncnn = await inPage([], ([param, weights]) => attempt(param, zeros, { externalData: { 'model.bin': Uint8Array.from(weights) } }), [
    param,
    weights,
  ]);
  assert.ok(Array.isArray(ncnn.seen), JSON.stringify(ncnn.seen));
  assert.ok(ncnn.fetched.includes('kilim.simd.ncnn.wasm'), String(ncnn.fetched));
  const decoder = await inPage([], (bytes) => attempt(bytes, zeros), [...references('gguf').get('llama-f32/model.gguf')]);
  assert.ok(decoder.fetched.includes('kilim.simd.gguf.wasm'), String(decoder.fetched));
  assert.deepEqual(rareOf(decoder.fetched), []);
  // The weights of a network at an address lie beside it.
  const found = await inPage([['/network/', beside]], async () => {
    const session = await kilim.load('/network/model.param', { backends: ['cpu'], variant: 'simd', worker: true });
    const outputs = await session.run(zeros(session.inputs));
    session.close();
    return Object.values(outputs).map(({ dims, data }) => [dims, Array.from(data, Number)]);
  });
  assert.deepEqual(found.seen, ncnn.seen);
  const plain = [...references('mnn').get('network/model.mnn')];
  const mnn = await inPage([], (bytes) => attempt(bytes, zeros), plain);
  assert.ok(Array.isArray(mnn.seen), JSON.stringify(mnn.seen));
  assert.ok(mnn.fetched.includes('kilim.simd.mnn.wasm'), String(mnn.fetched));
  assert.ok(!mnn.fetched.includes('kilim.simd.ncnn.wasm'), String(mnn.fetched));
  const others = [
    ['tnn', 'other_axes/model.tnnproto', { 'model.tnnmodel': [...references('tnn').get('other_axes/model.tnnmodel')] }],
    ['tengine', 'convolutions/model.tmfile', {}],
  ];
  for (const [format, file, beside] of others) {
    const seen = await inPage(
      [],
      ([model, files]) => {
        const externalData = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Uint8Array.from(bytes)]));
        return attempt(model, zeros, { externalData });
      },
      [[...references(format).get(file)], beside],
    );
    assert.ok(Array.isArray(seen.seen), JSON.stringify(seen.seen));
    assert.ok(seen.fetched.includes(`kilim.simd.${format}.wasm`), String(seen.fetched));
  }
  // The file is looked at before the runtime reads it.
  const broken = await inPage([], (bytes) => attempt(bytes, zeros), file.slice(0, 64));
  assert.equal(broken.seen.code, 'INVALID_MODEL', JSON.stringify(broken.seen));
  const gpu = await inPage([], (bytes) => attempt(bytes, zeros, { backends: ['wgpu', 'cpu'] }), digits);
  assert.deepEqual(gpu.seen[0][0], [1, 10]);
  assert.ok(gpu.fetched.includes('kilim.simd.gpu.wasm'), String(gpu.fetched));
  assert.ok(!['shaders', 'gpu_rare'].some((part) => gpu.fetched.includes(`kilim.simd.${part}.wasm`)), String(gpu.fetched));
  const triangle = model({ nodes: [['Trilu', ['x'], ['y']]], inputs: [['x', ['N', 2, 2]]], outputs: [['y', ['N', 2, 2]]] });
  const rare = await inPage([], (bytes) => attempt(bytes, matrices, { backends: ['wgpu', 'cpu'] }), triangle);
  assert.deepEqual(rare.seen, [
    [
      [2, 2, 2],
      [1, 2, 0, 4, 5, 6, 0, 9],
    ],
  ]);
  assert.ok(rare.fetched.includes('kilim.simd.gpu_rare.wasm'), String(rare.fetched));
});

// What `scripts/pages.mjs` weighs is what pages fetch.
test('a page fetches the parts of its models and backends, and hardly more', async () => {
  const relu = model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', ['N', 2, 2]]], outputs: [['y', ['N', 2, 2]]] });
  // An encoder whose inputs have fixed sizes.
  const [, , [fixedEncoder]] = TRANSFORMERS;
  const [[, quantised]] = TFLITE_QUANTIZED;
  const kinds = [
    ['pictures on WebGPU', digits, { backends: ['wgpu', 'cpu'] }, ['gpu']],
    ['layers on a backend of the page', relu, { backends: ['own', 'cpu'] }, ['brought']],
    ['quantised TFLite', [...quantised], {}, ['tflite_quantized']],
    ['language', [...fixedEncoder], {}, ['language']],
    ['language on WebGPU', [...fixedEncoder], { backends: ['wgpu', 'cpu'] }, ['gpu', 'language', 'gpu_language']],
  ];
  for (const [kind, bytes, options, needed] of kinds) {
    const { seen, fetched } = await inPage(
      [['/shared/', join(www, 'fixtures', 'shared')]],
      ([bytes, options]) => {
        kilim.registerBackend('own', new URL('/shared/backend.js', location.href));
        return attempt(bytes, zeros, options);
      },
      [bytes, options],
    );
    assert.ok(Array.isArray(seen), `${kind}: ${JSON.stringify(seen)}`);
    const expected = filesOf(needed.flatMap((kind) => needs[kind]));
    const left = expected.filter((file) => !fetched.includes(file));
    const more = fetched.filter((file) => !expected.includes(file));
    // What fewer than half of the models of a kind enter one of them may.
    assert.ok(left.length === 0 && more.length <= 1 && more.every((file) => file.includes('.common')), `${kind}: ${left} ${more}`);
  }
});

test('what a file shows to be needed comes before the runtime calls for it', async () => {
  // Its description makes it look like a language model, which it is not.
  const described = [(6 << 3) | 2, 9, ...Buffer.from('attention'), ...digits];
  const { seen, fetched } = await inPage([], (bytes) => attempt(bytes, zeros), described);
  assert.deepEqual(seen[0][0], [1, 10]);
  assert.deepEqual(fetched, filesOf(needs.language));
});

test("in the page's thread, which cannot wait, all parts come with the runtime", async () => {
  const { seen, fetched } = await inPage([], (bytes) => attempt(bytes, matrices, { worker: false }), determinant);
  assert.deepEqual(
    seen.map(([dims, data]) => [dims, data.map(Math.round)]),
    DETERMINANTS,
  );
  assert.deepEqual(fetched, filesOf(EVERY));
});

test('a control-flow model whose branch is rare runs when the branch is taken', async () => {
  const branch = (op) => graph({ nodes: [[op, ['x'], ['z']]], inputs: [], outputs: [['z', ['N']]] });
  const sum = graph({
    nodes: [['ReduceSum', ['x', 'axes'], ['z'], { int: { keepdims: 0 } }]],
    inputs: [],
    outputs: [['z', ['N']]],
    initializers: [],
  });
  const bytes = model({
    nodes: [
      ['Constant', [], ['axes'], { ints: { value_ints: [1, 2] } }],
      ['If', ['c'], ['y'], { graphs: { then_branch: branch('Det'), else_branch: sum } }],
    ],
    inputs: [
      ['x', ['N', 2, 2]],
      ['c', [], 'bool'],
    ],
    outputs: [['y', ['N']]],
  });
  const { seen } = await inPage(
    [],
    async (bytes) => {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], variant: 'simd', worker: true });
      const results = [];
      for (const c of [0, 1, 0])
        results.push(
          Array.from((await session.run({ ...matrices(), c: new kilim.Tensor('bool', [], Uint8Array.of(c)) })).y.data, Math.round),
        );
      session.close();
      return results;
    },
    bytes,
  );
  assert.deepEqual(seen, [
    [10, 27],
    [-2, 3],
    [10, 27],
  ]);
});

test('a part that is not there, or of another build, is an error that says so; other models run', async () => {
  const BESIDE = /kilim\.simd\.(\w+)\.wasm$/;
  const missing = (page) => page.route(BESIDE, (route) => route.fulfill({ status: 404, body: 'not here' }));
  // Parts of the build with relaxed SIMD.
  const foreign = (page) =>
    page.route(BESIDE, (route) => {
      const [, part] = BESIDE.exec(route.request().url());
      return route.fulfill({ path: join(dist, `kilim.relaxed.${part}.wasm`), contentType: 'application/wasm' });
    });
  for (const [prepare, says] of [
    [missing, /kilim\.simd\.\w+\.wasm.*404/],
    [foreign, /part `\w+` does not fit.*one version/],
  ]) {
    for (const worker of [true, false]) {
      const { seen } = await inPage(
        [],
        async ([bytes, digits, worker]) => [await attempt(bytes, matrices, { worker }), await attempt(digits, zeros)],
        [determinant, digits, worker],
        prepare,
      );
      const [failed, other] = seen;
      assert.equal(failed.code, 'IO', JSON.stringify(failed));
      if (worker) assert.match(failed.message, says);
      assert.deepEqual(other[0][0], [1, 10]);
    }
  }
});

test('a core from elsewhere has its parts beside it', async () => {
  const { seen, fetched } = await inPage(
    [['/elsewhere/', dist]],
    (bytes) => attempt(bytes, matrices, { wasm: '/elsewhere/kilim.simd.wasm?v=1' }),
    determinant,
  );
  assert.deepEqual(
    seen.map(([dims, data]) => [dims, data.map(Math.round)]),
    DETERMINANTS,
  );
  assert.ok(fetched.length > 1, String(fetched));
});

test('the build of one file fetches no parts', async () => {
  for (const worker of [true, false]) {
    const { seen, fetched } = await inPage(
      [],
      ([bytes, worker]) => attempt(bytes, matrices, { wasm: '/kilim/kilim.simd.whole.wasm', worker }),
      [determinant, worker],
    );
    assert.deepEqual(
      seen.map(([dims, data]) => [dims, data.map(Math.round)]),
      DETERMINANTS,
    );
    assert.deepEqual(fetched, ['kilim.simd.whole.wasm']);
  }
});
