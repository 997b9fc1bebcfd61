// `kilim/ort` in the place of onnxruntime-web: the cases of fixtures/ort have the answers that onnxruntime-web gave, and what it has no
// answers for is here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Tensor } from '../dist/kilim/node.js';
import * as inNode from '../dist/kilim/node.ort.js';
import { FILES, answersIn } from '../fixtures/ort/page.mjs';
import { repository, www } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';
import { readTensor } from './support/values.mjs';

const fixtures = join(www, 'fixtures', 'ort');
const known = JSON.parse(readFileSync(join(fixtures, 'answers.json'), 'utf8'));
const language = references('language');

const here = packagePage({
  folders: [
    ['/models/', FILES],
    ['/fixtures/', fixtures],
    ['/language/', language],
    ['/common/', join(www, 'node_modules', 'onnxruntime-common', 'dist', 'esm')],
  ],
  opened: (page) =>
    page.evaluate(async () => {
      globalThis.ort = await import('/kilim/ort.js');
      globalThis.warned = [];
      console.warn = (...words) => warned.push(words.join(' '));
      globalThis.create = (name, options) => ort.InferenceSession.create(`/models/${encodeURIComponent(name)}`, options);
      globalThis.float = (dims, ...values) => new ort.Tensor('float32', values, dims);
      /** The message and the code of what a call throws. */
      globalThis.refusal = async (call) => {
        try {
          await call();
          return 'taken';
        } catch ({ code, message }) {
          return [code, message];
        }
      };
    }),
});
after(() => assert.deepEqual(here.problems, []));

for (const provider of ['wasm', 'webgpu']) {
  test(`answers are those of onnxruntime-web: ${provider}`, { timeout: 120_000 }, async () => {
    assert.deepEqual(await answersIn(here.page, '/kilim/ort.js', provider), known[provider]);
  });
}

test('the module has the names of onnxruntime-web, and no version that has files fetched', async () => {
  const seen = await here.page.evaluate(async () => {
    const common = await import('/common/index.js');
    const { env } = ort;
    Object.assign(env.wasm, { wasmPaths: '/somewhere/', proxy: true, wasmBinary: new ArrayBuffer(8) });
    env.logLevel = 'warning';
    return {
      missing: Object.keys(common).filter((name) => !(name in ort)),
      same: Object.keys(common).filter((name) => ort.default[name] !== ort[name]),
      versions: Object.keys(env.versions),
      flags: typeof env.webgpu,
    };
  });
  assert.deepEqual(seen, { missing: [], same: [], versions: ['common'], flags: 'object' });
});

test('outputs are written into tensors that are given, whatever copy of the class they are of', async () => {
  const seen = await here.page.evaluate(async () => {
    const { Tensor } = await import('/common/index.js');
    const session = await create('add', { executionProviders: ['cpu'] });
    const feeds = { x: new Tensor('float32', [1, 2], [1, 2]) };
    const own = float([1, 2], 0, 0);
    const foreign = new Tensor('float32', [0, 0], [1, 2]);
    const first = await session.run(feeds, { sum: own, total: null });
    const second = await session.run(feeds, { sum: foreign });
    const seen = [
      first.sum === own,
      [...own.data],
      first.total.data[0],
      [...foreign.data],
      Object.keys(second),
      second.sum instanceof ort.Tensor,
    ];
    seen.push((await refusal(() => session.run(feeds, { sum: float([2, 1], 0, 0) })))[1]);
    seen.push((await refusal(() => session.run(feeds, { sum: new ort.Tensor('int32', [0, 0], [1, 2]) })))[0]);
    await session.release();
    return seen;
  });
  assert.deepEqual(seen.slice(0, 6), [true, [11, 22], 33, [11, 22], ['sum'], true]);
  assert.match(seen[6], /OutputName: sum.* \{1,2\}, not \{2,1\}/);
  assert.equal(seen[7], 'DTYPE');
});

test('tensors on the device are taken in other dimensions, and as places for outputs', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const { Tensor: Foreign } = await import('/common/index.js');
    const session = await create('cache', { executionProviders: ['webgpu'], preferredOutputLocation: { 'present.key': 'gpu-buffer' } });
    const none = float([0, 2]);
    const { 'present.key': kept } = await session.run({ past: none, x: float([2, 2], 1, 2, 3, 4) });
    // The memory in a second tensor, of another copy of the class.
    const same = Foreign.fromGpuBuffer(kept.gpuBuffer, { dataType: 'float32', dims: [2, 2] });
    const x = float([1, 2], 5, 6);
    const run = session.run({ past: same, x }, { 'present.key': kept });
    x.data.fill(0);
    const { 'present.key': grown } = await run.catch(({ message }) => ({ 'present.key': message }));
    const place = (await session.run({ past: none, x: float([3, 2], 0, 0, 0, 0, 0, 0) }))['present.key'];
    const filled = await session.run({ past: same, x: float([1, 2], 5, 6) }, { 'present.key': place });
    const wide = Foreign.fromGpuBuffer(kept.gpuBuffer, { dataType: 'float32', dims: [1, 4] });
    const wrong = await refusal(() => session.run({ past: wide, x }));
    const narrow = Foreign.fromGpuBuffer(kept.gpuBuffer, { dataType: 'float32', dims: [2, 2] });
    const other = await create('add', { executionProviders: ['wasm'] });
    const crossed = await other.run({ x: narrow });
    const data = [...(await place.getData())];
    kept.dispose();
    const gone = await refusal(() => session.run({ past: same, x }));
    await Promise.all([session.release(), other.release()]);
    return { grown, filled: filled['present.key'] === place, data, wrong: wrong[1], crossed: [...crossed.sum.data], gone: gone[0] };
  });
  assert.match(seen.grown, /OutputName: present\.key.* \{3,2\}, not \{2,2\}/);
  assert.deepEqual([seen.filled, seen.data, seen.crossed, seen.gone], [true, [1, 2, 3, 4, 5, 6], [11, 22, 13, 24], 'STATE']);
  assert.match(seen.wrong, /Got invalid dimensions for input: past/);
});

test('buffers of the page are read and filled', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const { env, Tensor } = ort;
    const session = await create('add', { executionProviders: ['webgpu'] });
    const { COPY_SRC, COPY_DST, STORAGE, MAP_READ } = GPUBufferUsage;
    const own = await (await navigator.gpu.requestAdapter()).requestDevice();
    const bufferOf = (device, usage, ...values) => {
      const buffer = device.createBuffer({ size: 16, usage });
      device.queue.writeBuffer(buffer, 0, Float32Array.from(values));
      return Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [1, 2] });
    };
    const all = STORAGE | COPY_SRC | COPY_DST;
    const unknown = await refusal(() => session.run({ x: bufferOf(own, all, 1, 2) }));
    const device = await env.webgpu.device;
    const [x, sum] = [bufferOf(device, all, 1, 2), bufferOf(device, all, 0, 0)];
    const run = session.run({ x }, { sum, total: null });
    // What is written later is not what the run reads.
    device.queue.writeBuffer(x.gpuBuffer, 0, Float32Array.of(5, 5));
    const { total, sum: filled } = await run;
    const staging = device.createBuffer({ size: 8, usage: MAP_READ | COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(sum.gpuBuffer, 0, staging, 0, 8);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const data = [...new Float32Array(staging.getMappedRange())];
    const elsewhere = await refusal(() => session.run({ x: bufferOf(own, all, 1, 2) }));
    const closed = await refusal(() => session.run({ x: bufferOf(device, STORAGE | COPY_DST, 1, 2) }));
    const other = await create('add', { executionProviders: [{ name: 'webgpu', device: own }] });
    const taken = (await other.run({ x: bufferOf(own, all, 3, 4) })).total.data[0];
    const wrong = await refusal(() => {
      env.webgpu.device = {};
    });
    const same = (await env.webgpu.device) === own;
    await Promise.all([session.release(), other.release()]);
    return { unknown, total: total.data[0], place: filled === sum, data, elsewhere, closed, taken, wrong, same };
  });
  assert.deepEqual([seen.total, seen.place, seen.data, seen.taken, seen.same], [33, true, [11, 22], 37, true]);
  assert.match(seen.unknown[1], /input 'x': Kilim cannot tell which device/);
  for (const [code, message] of [seen.elsewhere, seen.closed]) {
    assert.equal(code, 'UNSUPPORTED');
    assert.match(message, /input 'x': the buffer cannot be copied/);
  }
  assert.match(seen.wrong[1], /Invalid GPU device set/);
});

test('what cannot be had is refused by name', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const gpu = { executionProviders: [{ name: 'webgpu', forceCpuNodeNames: ['node0'], preferredLayout: 'NHWC' }] };
    const session = await create('add', gpu);
    const seen = {
      ml: await refusal(() => create('add', { ...gpu, preferredOutputLocation: 'ml-tensor' })),
      noGpu: await refusal(() => create('add', { executionProviders: ['wasm'], preferredOutputLocation: { sum: 'gpu-buffer' } })),
      webnn: await refusal(() => create('add', { executionProviders: [{ name: 'webnn', deviceType: 'npu' }] })),
      mixed: await refusal(async () => (await create('add', { executionProviders: ['webnn', 'wasm'] })).release()),
      // Forces nothing, and takes what there is.
      webgl: await refusal(async () => (await create('add', { executionProviders: ['webgl'] })).release()),
    };
    const works = (await session.run({ x: float([1, 2], 1, 2) })).total.data[0];
    await session.release();
    return { ...seen, works, warned };
  });
  assert.match(seen.ml[1], /"ml-tensor" is not supported without using WebNN/);
  assert.match(seen.noGpu[1], /"gpu-buffer" is not supported without using WebGPU/);
  assert.match(seen.webnn[1], /no available backend found\. ERR: \[webnn\] backend not found\./);
  assert.deepEqual([seen.mixed, seen.webgl, seen.works], ['taken', 'taken', 33]);
  assert.ok(
    seen.warned.some((words) => /"webnn".* not available/.test(words)),
    seen.warned.join('\n'),
  );
});

test('a session is released when the runs before are done, and packed elements go in and out', async () => {
  const seen = await here.page.evaluate(async () => {
    const session = await create('add', {});
    const runs = [1, 2, 3].map((i) => session.run({ x: float([1, 2], i, i) }, ['total']));
    const released = session.release();
    const totals = (await Promise.all(runs)).map(({ total }) => total.data[0]);
    await released;
    const packed = {};
    for (const type of ['int4', 'uint4']) {
      const narrow = await create(`identity ${type}`, {});
      const { y } = await narrow.run({ x: new ort.Tensor(type, Uint8Array.of(0x21, 0x0f), [1, 3]) });
      packed[type] = [y.type, y.dims, [...y.data]];
      await narrow.release();
    }
    return { totals, packed };
  });
  assert.deepEqual(seen.totals, [32, 34, 36]);
  for (const type of ['int4', 'uint4']) assert.deepEqual(seen.packed[type], [type, [1, 3], [0x21, 0x0f]]);
});

test('profiles are written to the console', async () => {
  const seen = await here.page.evaluate(async () => {
    const [log, table] = [console.log, console.table];
    const written = [];
    console.log = (words) => written.push(words);
    console.table = (rows) => written.push(rows.map(({ node, op, backend }) => [node, op, backend]));
    const session = await create('add', { enableProfiling: true });
    session.startProfiling();
    for (let i = 0; i < 3; i++) await session.run({ x: float([1, 2], 1, 2) });
    session.endProfiling();
    session.endProfiling();
    await session.release();
    Object.assign(console, { log, table });
    return written;
  });
  assert.equal(seen[0], 'kilim/ort: nodes, in milliseconds of all 3 runs');
  assert.equal(seen.length, 2);
  assert.ok(seen[1].some(([node, op]) => node === 'node0' && op === 'Add'));
});

test('a run of some outputs computes nothing for others, and a session of chosen outputs holds nothing for them', async () => {
  // Two heads with weights of their own on one trunk.
  const weights = (name) => tensor(name, [64, 64], { floats: Array.from({ length: 64 * 64 }, (_, i) => (i % 7) / 7) });
  const bytes = model({
    nodes: [
      ['Exp', ['x'], ['trunk']],
      ['MatMul', ['trunk', 'w'], ['wanted']],
      ['MatMul', ['trunk', 'v'], ['hidden']],
      ['Sin', ['hidden'], ['other']],
    ],
    inputs: [['x', [1, 64]]],
    outputs: [
      ['wanted', [1, 64]],
      ['other', [1, 64]],
    ],
    initializers: [weights('w'), weights('v')],
  });
  const seen = await here.page.evaluate(async (bytes) => {
    const [log, table] = [console.log, console.table];
    const tables = [];
    Object.assign(console, { log: () => {}, table: (rows) => tables.push(rows.map(({ op }) => op).sort()) });
    const given = [];
    const names = [];
    for (const extra of [{}, { kilim: { outputs: ['wan*'] } }]) {
      const session = await ort.InferenceSession.create(Uint8Array.from(bytes), { enableProfiling: true, extra });
      const { wanted } = await session.run({ x: float([1, 64], ...Array(64).fill(0.5)) }, ['wanted']);
      given.push([...wanted.data]);
      names.push(session.outputNames);
      session.endProfiling();
      await session.release();
    }
    Object.assign(console, { log, table });
    const absent = await refusal(() => ort.InferenceSession.create(Uint8Array.from(bytes), { extra: { kilim: { outputs: ['nope'] } } }));
    const held = [];
    for (const outputs of [undefined, ['wanted']]) {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...(outputs && { outputs }) });
      held.push(session.report.backends[0].constantBytes);
      session.close();
    }
    return { tables, given, names, absent, held };
  }, bytes);
  assert.deepEqual(seen.tables, [
    ['Exp', 'MatMul'],
    ['Exp', 'MatMul'],
  ]);
  assert.deepEqual(seen.given[1], seen.given[0]);
  assert.deepEqual(seen.names, [['wanted', 'other'], ['wanted']]);
  assert.match(seen.absent[1], /nope/);
  assert.equal(seen.held[0], 2 * seen.held[1]);
});

test('a language model with its caches has the words of onnxruntime', { timeout: 60_000 }, async () => {
  const entry = JSON.parse(language.get('index.json')).cases.find(({ name }) => name === 'llama-fp16');
  const steps = Array.from({ length: entry.data_sets }, (_, step) => `${entry.path}/test_data_set_${step}`);
  const read = (path) => {
    const tensor = readTensor(Tensor, language.get(path));
    return { dims: tensor.dims, data: [...tensor.toNumbers()] };
  };
  const given = steps.map((step) => [0, 1, 2].map((i) => read(`${step}/input_${i}.pb`)));
  const seen = await here.page.evaluate(
    async ([path, given]) => {
      const session = await ort.InferenceSession.create(path, { executionProviders: ['wasm'] });
      const pasts = session.inputMetadata.filter(({ name }) => name.startsWith('past'));
      const words = session.inputNames.filter((name) => !name.startsWith('past'));
      let caches = Object.fromEntries(
        pasts.map(({ name, type, shape }) => [name, new ort.Tensor(type, new Uint16Array(), [1, shape[1], 0, 16])]),
      );
      const logits = [];
      for (const tensors of given) {
        const feeds = Object.fromEntries(tensors.map(({ dims, data }, i) => [words[i], new ort.Tensor('int64', data, dims)]));
        const outputs = await session.run({ ...feeds, ...caches });
        caches = Object.fromEntries(pasts.map(({ name }) => [name, outputs[name.replace('past_key_values', 'present')]]));
        logits.push([...outputs.logits.data].map(Number));
      }
      await session.release();
      return logits;
    },
    [`/language/${entry.path}/model.onnx`, given],
  );
  for (const [step, folder] of steps.entries()) {
    for (const [i, want] of read(`${folder}/output_0.pb`).data.entries()) {
      const difference = Math.abs(seen[step][i] - want);
      assert.ok(difference <= entry.atol + entry.rtol * Math.abs(want), `step ${step}, ${i}: ${seen[step][i]}, not ${want}`);
    }
  }
});

test('`extra` says where the files of the package are', async () => {
  const model = join(repository, 'assets', 'digits.onnx');
  const at = (assets) => inNode.InferenceSession.create(model, { extra: { kilim: { assets } } });
  const { outputNames } = await at(join(www, 'dist', 'kilim'));
  assert.deepEqual(outputNames, ['probabilities']);
  await assert.rejects(at(join(www, 'test')), { code: 'IO', message: /`assets: / });
});

test('outside of a page a path is one of the file system', async () => {
  const { InferenceSession } = inNode;
  const session = await InferenceSession.create(join(repository, 'assets', 'digits.onnx'));
  const { probabilities } = await session.run({ image: new inNode.Tensor('float32', new Float32Array(784), [1, 1, 28, 28]) });
  assert.deepEqual([session.inputNames, probabilities.dims, probabilities.type], [['image'], [1, 10], 'float32']);
  await session.release();
  await assert.rejects(InferenceSession.create('absent.onnx'), /failed to load external data file: .*absent\.onnx/);
  await assert.rejects(InferenceSession.create(FILES.get('add'), { executionProviders: ['webgpu'] }), /no available backend found/);
});
