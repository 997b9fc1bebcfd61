// Pages whose bundlers move the package's modules away from its files, which lie where `npx kilim copy` puts them.
import assert from 'node:assert/strict';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'vite';
import { model } from './support/onnx.mjs';
import { projects, run } from './support/project.mjs';
import { serve } from './support/server.mjs';

const here = projects();
const ANSWER = { text: '100 runs in both threads', problems: [] };
const scale = model({
  nodes: [['Scale', ['x'], ['y'], { domain: 'com.example', floats: { factor: 3 } }]],
  inputs: [['x', [2]]],
  outputs: [['y', [2]]],
});

let making;
/** The project, with the package's files in `kilim`. */
const made = () =>
  (making ??= (async () => {
    const project = await here.install('shared', 'assets');
    // Parcel asks for every package by name.
    const manifest = JSON.parse(await run(project, 'npm', ['pkg', 'get'], {}, { shell: process.platform === 'win32' }));
    manifest.dependencies.kilim = '*';
    writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(project, 'scale.onnx'), Uint8Array.from(scale));
    assert.match(await bin(project, 'kilim', 'copy', 'kilim'), /^\d+ files, \d+\.\d MB, are in kilim;/);
    return project;
  })());

/** A program of the project's packages. */
function bin(project, name, ...args) {
  const [program, ...first] = process.platform === 'win32' ? [`${name}.cmd`] : [name];
  return run(project, join(project, 'node_modules', '.bin', program), [...first, ...args], {}, { shell: process.platform === 'win32' });
}

/** What a page says that has `script`, with the files of the project beside it. */
async function answerOf(project, script, folder = project) {
  const html = `<!doctype html><output id="answer"></output><script ${script}></script>`;
  const page = new Map([['index.html', Buffer.from(html)]]);
  const mounts = [['/kilim/', join(project, 'kilim')], ...['scale.onnx', 'operators.js'].map((name) => [`/${name}`, join(project, name)])];
  const server = await serve([['/page/', page], ...mounts, ['/', folder]]);
  try {
    return await here.answerAt(`${server.url}/page/index.html`);
  } finally {
    await server.close();
  }
}

const bundled = (project, ...args) => bin(project, 'esbuild', 'main.js', '--bundle', '--log-level=warning', ...args);

test('esbuild, one module', { timeout: 120_000 }, async () => {
  const project = await made();
  assert.equal(await bundled(project, '--format=esm', '--outfile=esm/main.js'), '');
  assert.deepEqual(await answerOf(project, 'type="module" src="/esm/main.js"'), ANSWER);
});

test('esbuild, several modules', { timeout: 60_000 }, async () => {
  const project = await made();
  await bundled(project, '--format=esm', '--splitting', '--minify', '--outdir=split');
  assert.deepEqual(await answerOf(project, 'type="module" src="/split/main.js"'), ANSWER);
});

test('esbuild, a script without modules', { timeout: 60_000 }, async () => {
  const project = await made();
  await bundled(project, '--format=iife', '--outfile=iife/main.js');
  assert.deepEqual(await answerOf(project, 'defer src="/iife/main.js"'), ANSWER);
});

test('Rollup', { timeout: 60_000 }, async () => {
  const project = await made();
  await bin(project, 'rollup', '--config', '--silent');
  assert.deepEqual(await answerOf(project, 'type="module" src="/rollup/main.js"'), ANSWER);
});

test('Parcel', { timeout: 120_000 }, async () => {
  const project = await made();
  await bin(project, 'parcel', 'build', 'index.html', '--dist-dir', 'parcel', '--no-cache', '--no-source-maps', '--log-level', 'error');
  const site = join(project, 'parcel');
  for (const name of ['scale.onnx', 'operators.js']) copyFileSync(join(project, name), join(site, name));
  // Parcel's pages have a map of modules in their text.
  const policy = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";
  const server = await serve(
    [
      ['/kilim/', join(project, 'kilim')],
      ['/', site],
    ],
    { 'content-security-policy': policy },
  );
  try {
    assert.deepEqual(await here.answerAt(`${server.url}/`), ANSWER);
  } finally {
    await server.close();
  }
});

test('a library that Vite builds, in a page with an import map', { timeout: 60_000 }, async () => {
  const project = await made();
  const lib = { entry: 'usual.js', formats: ['es'], fileName: 'library' };
  await build({ root: project, logLevel: 'error', build: { lib, outDir: 'library', rolldownOptions: { external: ['kilim'] } } });
  const site = join(project, 'library');
  const map = '<script type="importmap">{ "imports": { "kilim": "/node_modules/kilim/dist/kilim/index.js" } }</script>';
  const html = `<!doctype html><output id="answer"></output>${map}<script type="module" src="/library/library.js"></script>`;
  writeFileSync(join(site, 'index.html'), html);
  const policy = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";
  const server = await serve([['/', project]], { 'content-security-policy': policy });
  try {
    assert.deepEqual(await here.answerAt(`${server.url}/library/index.html`), ANSWER);
  } finally {
    await server.close();
  }
});

test('where the files are not found, the error names the option that says where they are', { timeout: 60_000 }, async () => {
  const project = await made();
  await bin(project, 'esbuild', 'usual.js', '--bundle', '--format=iife', '--log-level=error', '--outfile=usual/script.js');
  await bin(project, 'esbuild', 'usual.js', '--bundle', '--format=esm', '--log-level=error', '--outfile=usual/module.js');
  for (const script of ['defer src="/usual/script.js"', 'type="module" src="/usual/module.js"', 'type="module" src="/rollup/usual.js"']) {
    const { text, problems } = await answerOf(project, script);
    assert.match(text, /^KilimError: .*`npx kilim copy public\/kilim`.*`assets: '\/kilim\/'`/, script);
    assert.deepEqual(problems, []);
  }
});
