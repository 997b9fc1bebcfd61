// Large files are read where they lie: in pages from blobs, in Node from the disk.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import * as kilim from '../dist/kilim/node.js';
import { www } from './support/folders.mjs';
import { SIDE, products } from './support/large.mjs';
import { packagePage } from './support/page.mjs';

const root = mkdtempSync(join(tmpdir(), 'kilim-apart-'));
const folder = join(root, 'models');
mkdirSync(folder);
const at = (name) => join(folder, name);
const OUTSIDE = 'outside.onnx.data';

before(() => {
  const outside = products({ location: OUTSIDE });
  writeFileSync(at('whole.onnx'), products().bytes);
  writeFileSync(at('open.onnx'), products({ rows: 'n' }).bytes);
  writeFileSync(at('outside.onnx'), outside.bytes);
  writeFileSync(at(OUTSIDE), outside.weights);
});
after(() => rmSync(root, { recursive: true, force: true }));

const ISOLATED = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
const here = packagePage({ folders: [['/models/', folder]], headers: ISOLATED });
const options = { backends: ['cpu'], variant: 'simd' };
const input = { x0: { type: 'float32', dims: [1, SIDE], data: Float32Array.from({ length: SIDE }, (_, i) => (i % 7) - 3) } };

/** What a model gives that is in memory as a whole. */
let expected;
async function outputs(session) {
  const { x3 } = await session.run(input);
  session.close();
  return [...x3.data];
}
before(async () => {
  expected = await outputs(await kilim.load(at('whole.onnx'), { ...options, worker: false }));
  assert.ok(expected.every(Number.isFinite) && new Set(expected).size > SIDE / 2);
});

for (const name of ['whole.onnx', 'open.onnx', 'outside.onnx'])
  test(`Node reads ${name} from the disk`, async () => {
    const seen = [];
    const onProgress = ({ phase, loaded, total }) => phase === 'download' && seen.push([loaded, total]);
    assert.deepEqual(await outputs(await kilim.load(at(name), { ...options, onProgress })), expected);
    assert.ok(seen.every(([loaded, total]) => loaded === total));
  });

test('Node holds weights once', () => {
  const program = `
    import { load } from ${JSON.stringify(pathToFileURL(join(www, 'dist', 'kilim', 'node.js')))};
    const options = { backends: ['cpu'], variant: 'simd' };
    await load(${JSON.stringify(join(www, '..', 'assets', 'digits.onnx'))}, options);
    const before = process.resourceUsage().maxRSS;
    const session = await load(${JSON.stringify(at('many.onnx'))}, options);
    console.log(process.resourceUsage().maxRSS - before);
    session.close();
    process.exit();`;
  const { bytes } = products({ layers: 8 });
  writeFileSync(at('many.onnx'), bytes);
  const held = 1024 * Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' }));
  assert.ok(held < 1.4 * bytes.length, `${held} bytes for a file of ${bytes.length}`);
});

test('a file that changes is an error of its own', async () => {
  writeFileSync(at('changed.onnx'), products({ rows: 'n' }).bytes);
  const session = await kilim.load(at('changed.onnx'), options);
  appendFileSync(at('changed.onnx'), '!');
  await assert.rejects(session.run(input), { code: 'IO', message: /changed since the model was loaded/, hint: /anew/ });
  session.close();
});

test('limits and hashes hold', async () => {
  await assert.rejects(kilim.load(at('whole.onnx'), { ...options, limits: { fileBytes: 1000 } }), { code: 'LIMIT', hint: /fileBytes/ });
  const integrity = `sha256-${'A'.repeat(43)}=`;
  await assert.rejects(kilim.load(at('whole.onnx'), { ...options, integrity }), { code: 'IO', message: /integrity/ });
});

for (const kind of ['URL', 'File', 'Response', 'ReadableStream', 'Uint8Array'])
  test(`a page reads a ${kind} in its worker`, async () => {
    const given = await here.page.evaluate(
      async ([kind, dims, data]) => {
        const fetched = await fetch('/models/whole.onnx');
        const sources = {
          URL: async () => '/models/whole.onnx',
          File: async () => new File([await fetched.blob()], 'whole.onnx'),
          Response: async () => fetched,
          ReadableStream: async () => fetched.body,
          Uint8Array: async () => new Uint8Array(await fetched.arrayBuffer()),
        };
        const session = await kilim.load(await sources[kind](), { backends: ['cpu'], variant: 'simd', worker: true });
        const { x3 } = await session.run({ x0: { type: 'float32', dims, data: Float32Array.from(data) } });
        session.close();
        return [...x3.data];
      },
      [kind, input.x0.dims, [...input.x0.data]],
    );
    assert.deepEqual(given, expected);
  });

test('several threads pack what one of them reads', async () => {
  const { device, outputs } = await here.page.evaluate(
    async ([dims, row]) => {
      const session = await kilim.load('/models/open.onnx', { backends: ['cpu'], worker: true, threads: 2 });
      const outputs = [];
      for (const rows of [1, 16, 1]) {
        const data = Float32Array.from({ length: rows * dims[1] }, (_, i) => row[i % dims[1]]);
        const { x3 } = await session.run({ x0: { type: 'float32', dims: [rows, dims[1]], data } });
        outputs.push([...x3.data]);
      }
      session.close();
      return { device: session.report.backends[0].device, outputs };
    },
    [input.x0.dims, [...input.x0.data]],
  );
  assert.match(device, /2 threads/);
  for (const output of outputs) {
    const largest = Math.max(...output.map((value, i) => Math.abs(value - expected[i % SIDE])));
    assert.ok(largest < 1e-3, `${output.length / SIDE} rows: ${largest}`);
  }
});

test('a page reads weights beside a model, in its worker and in its thread', async () => {
  const given = await here.page.evaluate(
    async ([name, dims, data]) => {
      const outputs = [];
      for (const worker of [true, false]) {
        const externalData = { [name]: `/models/${name}` };
        const session = await kilim.load('/models/outside.onnx', { backends: ['cpu'], variant: 'simd', worker, externalData });
        const { x3 } = await session.run({ x0: { type: 'float32', dims, data: Float32Array.from(data) } });
        session.close();
        outputs.push([...x3.data]);
      }
      return outputs;
    },
    [OUTSIDE, input.x0.dims, [...input.x0.data]],
  );
  assert.deepEqual(given, [expected, expected]);
});

test('a chosen file that changes is an error in a page', async () => {
  writeFileSync(at('chosen.onnx'), products({ rows: 'n' }).bytes);
  await here.page.evaluate(() => document.body.append(Object.assign(document.createElement('input'), { type: 'file' })));
  await here.page.setInputFiles('input', at('chosen.onnx'));
  await here.page.evaluate(async () => {
    const [file] = document.querySelector('input').files;
    globalThis.chosen = await kilim.load(file, { backends: ['cpu'], variant: 'simd', worker: true });
  });
  appendFileSync(at('chosen.onnx'), '!');
  const failure = await here.page.evaluate(
    ([dims, data]) => failureOf(chosen.run({ x0: { type: 'float32', dims, data: Float32Array.from(data) } })),
    [input.x0.dims, [...input.x0.data]],
  );
  assert.equal(failure.code, 'IO', JSON.stringify(failure));
  assert.match(failure.message, /cannot be read any more/);
});
