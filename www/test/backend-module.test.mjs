// What a backend in a WebAssembly module can do beside running nodes: it answers in JSON.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const modules = mkdtempSync(join(tmpdir(), 'kilim-module-'));
const here = packagePage({ folders: [['/modules/', modules]] });
after(() => rmSync(modules, { recursive: true }));

const rectified = model({
  nodes: [['Relu', ['x'], ['y']]],
  inputs: [['x', [2, 3]]],
  outputs: [['y', [2, 3]]],
});

const DESCRIPTION = {
  device: 'a sample in WebAssembly',
  timers: true,
  options: { pace: { kind: ['slow', 'fast'], initial: 'slow', meaning: 'how it goes' } },
  operators: [{ domain: 'com.example', name: 'Rectify' }],
  speed: { kernelStart: 0, transferStart: 0, flopsPerSecond: 1e15, bytesPerSecond: 1e15, transferBytesPerSecond: 1e15 },
};
// The sample looks for the operator's name, and finds it among the attributes.
const RECTIFY = { name: 'r', domain: 'com.example', op: 'Rectify', attributes: { op: 'Relu' }, inputs: [0], outputs: [1] };

let written = 0;

/** The address of the sample with functions that answer with these texts, and with `more` functions. */
async function module(answers, more = '') {
  const { default: binaryen } = await import('../../tools/node_modules/binaryen/index.js');
  const text = readFileSync(join(www, 'fixtures', 'shared', 'backend.wat'), 'utf8');
  // The sample lends what is behind the first kilobyte, of the first page as long as nothing is large.
  let at = 65536;
  const functions = Object.entries(answers).map(([name, answer]) => {
    const place = at;
    at += 2048;
    const data = JSON.stringify(answer).replaceAll(/[\\"]/g, '\\$&');
    const parameters = name === 'kilim_describe' ? '' : '(param i32)';
    return `(data (i32.const ${place}) "${data}\\00") (func (export "${name}") ${parameters} (result i32) (i32.const ${place}))`;
  });
  const wat = text
    .replace('(func (export "kilim_describe") (result i32) (i32.const 48))', `${functions.join('\n')} ${more}`)
    .replace('(memory (export "memory") 1)', '(memory (export "memory") 2)');
  const name = `${written++}.wasm`;
  writeFileSync(join(modules, name), binaryen.parseText(wat).emitBinary());
  return `/modules/${name}`;
}

const ran = (address, options = {}) =>
  here.page.evaluate(
    async ({ bytes, address, options }) => {
      kilim.registerBackend('mine', address);
      try {
        const session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], ...options });
        const { outputs, nodes: times } = await session.profile({
          x: { type: 'float32', dims: [2, 3], data: Float32Array.of(1, -2, 3, -4, 5, -6) },
        });
        const { nodes, tuning } = session.report;
        session.close();
        return { y: [...outputs.y.data], at: nodes.map(({ op, backend }) => `${op} ${backend}`), times, tuning };
      } catch ({ code, message }) {
        return { code, message };
      }
    },
    { bytes: [...rectified], address, options },
  );

test('a WebAssembly module merges nodes, has options, algorithms and timers', async () => {
  const answers = {
    kilim_describe: DESCRIPTION,
    kilim_optimise: [{ replace: [0], with: RECTIFY }],
    kilim_infer: [{ type: 'float32', dims: [2, 3] }],
    kilim_choice: { class: 'rectify', algorithms: ['one', 'other'] },
  };
  const timer = '(func (export "kilim_times") (param $part i32) (param $to i32) (f64.store (local.get $to) (f64.const 0.5)))';
  const { y, at, times, tuning } = await ran(await module(answers, timer), { configs: ['mine:pace=fast'], tune: true });
  assert.deepEqual(y, [1, 0, 3, 0, 5, 0]);
  assert.deepEqual(at, ['Rectify mine']);
  assert.deepEqual(
    times.map(({ op, seconds }) => [op, seconds]),
    [['Rectify', 0.5]],
  );
  assert.deepEqual(
    tuning.map((t) => [t.class, t.times.map(({ algorithm }) => algorithm)]),
    [['rectify', ['one', 'other']]],
  );
  assert.equal((await ran(await module(answers, timer), { configs: ['mine:pace=late'] })).code, 'INVALID_VALUE');
  assert.equal((await ran(await module({ ...answers, kilim_schedule: [0, 1, 2, 3, 4, 5, 6, 7, 8] }, timer))).code, 'STATE');
  const untimed = await ran(await module(answers));
  assert.match(untimed.message, /malformed/);
  const lost = '(func (export "kilim_is_lost") (result i32) (i32.const 1)) (func (export "kilim_reopen") (result i32) (i32.const 32))';
  assert.match((await ran(await module(answers, `${timer} ${lost}`))).message, /`mine` failed: only Relu/);
});

test('what a WebAssembly module has learnt goes to another session', async () => {
  const cache =
    '(func (export "kilim_save_cache") (result i32) (i32.const 32)) (func (export "kilim_load_cache") (param i32) (result i32) ';
  const [kept, refused] = [await module({}, `${cache} (i32.const 0))`), await module({}, `${cache} (i32.const 32))`)];
  const found = await here.page.evaluate(
    async ({ bytes, addresses }) => {
      let cache;
      const said = [];
      for (const address of addresses) {
        kilim.registerBackend('mine', address);
        const session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], worker: false, ...(cache && { cache }) });
        cache = await session.saveCache();
        said.push([new TextDecoder().decode(cache).includes('only Relu'), session.report.cache]);
        session.close();
      }
      return said;
    },
    { bytes: [...rectified], addresses: [kept, kept, refused] },
  );
  assert.deepEqual(found.slice(0, 2), [
    [true, null],
    [true, null],
  ]);
  assert.match(found[2][1], /only Relu/);
});

test('what a WebAssembly module answers is JSON', async () => {
  const text = await module({}, '(func (export "kilim_optimise") (param i32) (result i32) (i32.const 32))');
  const { code, message } = await ran(text, { pins: ['op:Relu=mine'] });
  assert.equal(code, 'INVALID_VALUE');
  assert.match(message, /`kilim_optimise` .* is no JSON/);
});
