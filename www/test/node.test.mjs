// The package in programs, as it is installed: Node, and what runs its modules, too.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repository } from './support/browser.mjs';
import { alphabet, bigrams, tokenizer } from './support/language.mjs';
import { model } from './support/onnx.mjs';
import { projects, run } from './support/project.mjs';
import { references } from './support/references.mjs';

const here = projects({ pages: false });
const ggml = references('ggml');
const outside = bigrams(alphabet, { location: 'model.onnx.data' });
const square = { inputs: [['x', ['N', 'N']]], outputs: [['y', ['N', 'N']]] };
const MODELS = {
  'two.onnx': model({
    nodes: [
      ['MatMul', ['x', 'x'], ['y']],
      ['Add', ['x', 'x'], ['sum']],
    ],
    inputs: square.inputs,
    outputs: [...square.outputs, ['sum', ['N', 'N']]],
  }),
  'product.onnx': model({ nodes: [['MatMul', ['x', 'x'], ['y']]], ...square }),
  'determinant.onnx': model({ nodes: [['Det', ['x'], ['d']]], inputs: [['x', ['N', 2, 2]]], outputs: [['d', ['N']]] }),
  'scale.onnx': model({
    nodes: [['Scale', ['x'], ['y'], { domain: 'com.example', floats: { factor: 3 } }]],
    inputs: [['x', [2]]],
    outputs: [['y', [2]]],
  }),
  'words.gguf': ggml.get('words-joined/model.gguf'),
  'words.json': ggml.get('words-joined/words.json'),
  'letters/model.onnx': bigrams(alphabet).bytes,
  'outside/model.onnx': outside.bytes,
  'outside/model.onnx.data': outside.table,
  'letters/tokenizer.json': tokenizer(),
  'letters/config.json': JSON.stringify({ max_position_embeddings: 64, num_attention_heads: 1, hidden_size: 16 }),
};

/** Puts the models into a project. */
function addModels(project) {
  for (const folder of ['letters', 'outside']) mkdirSync(join(project, 'models', folder), { recursive: true });
  // A path may have what means something else in an address.
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'models', 'digits #1.onnx'));
  for (const [name, bytes] of Object.entries(MODELS))
    writeFileSync(join(project, 'models', name), typeof bytes === 'string' ? bytes : Uint8Array.from(bytes));
  return project;
}

let making;
const programs = () => (making ??= here.install('node').then(addModels));

/** What a program of the fixture prints as JSON. A program that does not end by itself fails. */
async function answerOf(program, [host, ...args] = [process.execPath], project = programs()) {
  return JSON.parse(await run(await project, host, [...args, program], {}, { timeout: 60_000 }));
}

function sameFromEverywhere(answers) {
  const all = Object.entries(answers);
  assert.equal(all.length, 18);
  const [[, [, , first]]] = all;
  assert.ok(Math.abs(first.reduce((sum, value) => sum + value) - 1) < 1e-5, String(first));
  for (const [what, [type, dims, data, reason]] of all) {
    assert.deepEqual([type, dims, reason], ['float32', [1, 10], null], what);
    assert.deepEqual(data, first, what);
  }
}

test('models come from paths, addresses, bytes and streams, and the program ends by itself', { timeout: 120_000 }, async () => {
  sameFromEverywhere(await answerOf('sources.mjs'));
});

test('sessions can do what they can in pages, and failures are typed', { timeout: 120_000 }, async () => {
  const { freeAfter, threads, ...seen } = await answerOf('abilities.mjs');
  const misplaced = /^KilimError IO: .*`npx kilim copy .*`assets: /;
  assert.deepEqual(
    { ...seen, missing: '', folder: '', misplaced: '', misplacedWorker: '' },
    {
      'operators, worker: true': [3, -6],
      'operators, worker: false': [3, -6],
      'rare, worker: true': [-1],
      'rare, worker: false': [-1],
      kept: [1, 4, 0, 1],
      asked: [['sum'], ['sum'], 'KilimError INPUT: no output fits `nope`, which `outputs` names: expected y, sum'],
      aborted: 'KilimError ABORTED: the call was aborted',
      shared: true,
      calibrated: true,
      missing: '',
      folder: '',
      misplaced: '',
      misplacedWorker: '',
    },
  );
  // The product that was stopped takes longer than this.
  assert.ok(freeAfter < 300, `${freeAfter} ms`);
  assert.match(threads, /^2 threads$|no relaxed SIMD/);
  assert.match(seen.missing, /^KilimError IO: .*none\.onnx/);
  assert.match(seen.folder, /^KilimError IO: .*it is no file/);
  assert.match(seen.misplaced, misplaced);
  assert.match(seen.misplacedWorker, misplaced);
});

test('texts come from folders and GGUF files, and onnxruntime has its interface', { timeout: 60_000 }, async () => {
  const { goes_on: goesOn } = JSON.parse(String(MODELS['words.json']));
  assert.deepEqual(await answerOf('words.mjs'), ['cdef', 9, true, goesOn]);
});

test('CommonJS can require it, where Node requires modules', { timeout: 60_000 }, async (t) => {
  if (!process.features.require_module) return t.skip('this version of Node requires no modules');
  assert.equal(await answerOf('required.cjs', [process.execPath, '--no-warnings']), 9);
});

let equipping;
/** The fixture's programs beside those who run modules of Node, too; why not, where they cannot be had. */
const equipped = () =>
  (equipping ??= here.install('node', 'runtimes').then(
    (project) => ({ project }),
    (error) => ({ why: `npm has no Bun and Deno for this machine: ${String(error.stderr ?? error).slice(0, 200)}` }),
  ));

for (const [name, ...host] of [
  ['deno', 'run', '--allow-all'],
  ['bun', 'run'],
]) {
  test(`it works in ${name}, and the program ends by itself`, { timeout: 180_000 }, async (t) => {
    const { project, why } = await equipped();
    if (why) return t.skip(why);
    const bin = join(project, 'node_modules', '.bin', name);
    sameFromEverywhere(await answerOf('sources.mjs', [bin, ...host], addModels(project)));
  });
}

test('WebGPU is used in deno where it is named, in a worker as in the program', { timeout: 180_000 }, async (t) => {
  const { project, why } = await equipped();
  if (why) return t.skip(why);
  const found = await answerOf('gpu.mjs', [join(project, 'node_modules', '.bin', 'deno'), 'run', '--allow-all'], project);
  if (/there is no GPU|no WebGPU/.test(found.program)) t.diagnostic(found.program);
  else assert.deepEqual(found.program, ['wgpu', 1, 2, 0, 1]);
  assert.deepEqual(found.worker, found.program);
});

const faulty = process.versions.v8.startsWith('11.3.');
test('where products of bytes lose their sum, no build takes them', { skip: !faulty && 'this Node adds them right' }, () => {
  const entry = JSON.stringify(new URL('../dist/kilim/index.js', import.meta.url).href);
  const program = `import(${entry}).then((kilim) => console.log(kilim.detectVariant()))`;
  const found = execFileSync(process.execPath, ['--experimental-wasm-relaxed-simd', '-e', program], { encoding: 'utf8' });
  assert.equal(found.trim(), 'simd');
});
