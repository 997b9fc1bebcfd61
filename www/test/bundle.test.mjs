// `npx kilim bundle`: pages with these models need no other files than it puts there.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { run } from './support/project.mjs';
import { references } from './support/references.mjs';
import { serve } from './support/server.mjs';

const dist = join(www, 'dist', 'kilim');
const MODELS = {
  'det.onnx': model({ nodes: [['Det', ['x'], ['y']]], inputs: [['x', ['N', 2, 2]]], outputs: [['y', ['N']]] }),
  'add.tflite': references('tflite').get('add_int8/model.tflite'),
  'net.param': references('ncnn').get('network/model.param'),
  'net.bin': references('ncnn').get('network/model.bin'),
};

let browser;
let folder;
before(async () => {
  browser = await launch();
});
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'kilim-bundle-'));
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const bundle = (...args) => run(folder, process.execPath, [join(dist, 'node.cli.js'), 'bundle', ...args]);

test('pages with these models find all that they need', { timeout: 120_000 }, async () => {
  for (const [name, bytes] of Object.entries(MODELS)) writeFileSync(join(folder, name), Uint8Array.from(bytes));
  const models = ['det.onnx', 'add.tflite', 'net.param'];
  const said = await bundle(...models, '--out', 'all', '--builds', 'relaxed');
  assert.match(said, /^file +kB +brotli {2}why\n/);
  assert.match(said, /\nkilim\.relaxed\.tflite\.wasm +\d+\.\d +\d+\.\d {2}add\.tflite takes it while it is loaded\n/);
  assert.match(said, /\na page, relaxed +\d+\.\d +\d+\.\d$/m);
  const files = readdirSync(join(folder, 'all'));
  for (const part of ['gpu', 'shaders', 'threads', 'pictures', 'whole'])
    assert.ok(!files.some((name) => name.includes(part)), String(files));
  // Of the package's own folder there is nothing but the module.
  const module = new Map([['index.js', readFileSync(join(dist, 'index.js'))]]);
  const server = await serve([
    ['/kilim/', module],
    ['/all/', join(folder, 'all')],
    ['/models/', folder],
  ]);
  try {
    const { page, problems } = await open(browser, `${server.url}/empty`);
    const seen = await page.evaluate(async (models) => {
      const { Tensor, load } = await import('/kilim/index.js');
      const seen = [];
      for (const model of models) {
        const session = await load(`/models/${model}`, { assets: '/all', backends: ['cpu'], worker: true, variant: 'relaxed' });
        const sizes = (dims) => dims.map((dim) => (typeof dim === 'number' ? dim : 2));
        const feeds = session.inputs.map(({ name, type, dims }) => [name, new Tensor(type, sizes(dims))]);
        seen.push(Object.keys(await session.run(Object.fromEntries(feeds))).length);
        session.close();
      }
      return seen;
    }, models);
    await page.close();
    assert.ok(seen.length === 3 && seen.every((outputs) => outputs > 0), String(seen));
    assert.deepEqual(problems, []);
  } finally {
    await server.close();
  }
});

test('it takes what is asked for, and refuses what is not known', { timeout: 60_000 }, async () => {
  const digits = join(repository, 'assets', 'digits.onnx');
  await bundle(digits, '--out', 'one', '--builds', 'simd', '--backends', 'wgpu,webnn,cpu', '--dims', 'N=4');
  const files = readdirSync(join(folder, 'one'));
  assert.deepEqual(
    files.filter((name) => !name.startsWith('kilim.simd.')),
    ['backend.js', 'painter.js', 'webnn.js', 'worker.simd.js'],
  );
  assert.ok(
    ['gpu', 'shaders'].every((part) => files.includes(`kilim.simd.${part}.wasm`)),
    String(files),
  );
  const failure = (...args) =>
    bundle(...args).then(
      () => '',
      ({ stderr }) => stderr,
    );
  assert.match(await failure(digits, '--out', 'x', '--builds', 'avx'), /`avx` is not known here: expected simd, relaxed, threads/);
  assert.match(await failure(digits), /bundle is not called so: expected npx kilim bundle MODEL… --out DIR/);
  assert.match(await failure('none.onnx', '--out', 'x'), /none\.onnx/);
});

test('models of a format that only a module of the user knows are bundled and described', { timeout: 60_000 }, async () => {
  writeFileSync(join(folder, 'net.chain'), 'chain 1\nscale 2\nrelu\n');
  copyFileSync(join(www, 'fixtures', 'shared', 'importer.js'), join(folder, 'chain.mjs'));
  const options = ['--builds', 'simd', '--importer', 'chain.mjs'];
  await assert.rejects(bundle('net.chain', '--out', 'x'), ({ stderr }) => /net\.chain/.test(stderr));
  await assert.rejects(bundle('net.chain', '--out', 'x', '--importer', 'none.mjs'), ({ stderr }) => /importer `none`/.test(stderr));
  const said = await bundle('net.chain', '--out', 'chain', ...options);
  assert.match(said, /\nimporter\.js .*between Kilim and chain\.mjs\n/);
  assert.match(said, /\nkilim\.simd\.brought\.wasm .*net\.chain takes it while it is loaded\n/);
  await run(folder, process.execPath, [join(dist, 'node.cli.js'), 'types', 'net.chain', '--importer', 'chain.mjs']);
  assert.match(readFileSync(join(folder, 'net.types.ts'), 'utf8'), /interface Net /);
  const server = await serve([
    ['/kilim/', new Map([['index.js', readFileSync(join(dist, 'index.js'))]])],
    ['/chain/', join(folder, 'chain')],
    ['/models/', folder],
  ]);
  const { page, problems } = await open(browser, `${server.url}/empty`);
  const seen = await page.evaluate(async () => {
    const { load, registerImporter } = await import('/kilim/index.js');
    registerImporter('chain', '/models/chain.mjs');
    const session = await load('/models/net.chain', { assets: '/chain', backends: ['cpu'], worker: true, variant: 'simd' });
    const { y } = await session.run({ x: { type: 'float32', dims: [3], data: Float32Array.of(1, -1, 2) } });
    session.close();
    return [...y.data];
  });
  await page.close();
  await server.close();
  assert.deepEqual([seen, problems], [[2, 0, 4], []]);
});
