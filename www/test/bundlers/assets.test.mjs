// Pages whose bundlers move the package's modules away from its files, which lie where `npx kilim copy` puts them.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'vite';
import { open } from '../support/browser.mjs';
import { model } from '../support/onnx.mjs';
import { projects, run } from '../support/project.mjs';
import { serve } from '../support/server.mjs';

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

test('threads, and files on another origin', { timeout: 60_000 }, async () => {
  const project = await made();
  const module = new Map(
    ['index.js', 'local.js'].map((name) => [name, readFileSync(join(project, 'node_modules/kilim/dist/kilim', name))]),
  );
  const foreign = {
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'cross-origin-embedder-policy': 'require-corp',
  };
  const other = await serve([['/files/', join(project, 'kilim')]], foreign);
  const server = await serve(
    [
      ['/module/', module],
      ['/kilim/', join(project, 'kilim')],
      ['/', project],
    ],
    {
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'content-security-policy': `script-src 'self' ${other.url} 'wasm-unsafe-eval'; worker-src 'self' ${other.url} blob:; connect-src 'self' ${other.url}`,
    },
  );
  const { page, problems } = await open(here.browser, `${server.url}/empty`);
  try {
    const seen = await page.evaluate(
      async (places) => {
        const { load } = await import('/module/index.js');
        const seen = [];
        for (const assets of places) {
          const session = await load('/scale.onnx', { assets, backends: ['cpu'], worker: true, threads: 2, operators: '/operators.js' });
          const { y } = await session.run({ x: [1, 2] });
          seen.push([[...y.data], session.report.backends[0].device, session.report.oneThread]);
          session.close();
        }
        return seen;
      },
      ['/kilim', `${other.url}/files/`],
    );
    assert.equal(seen.length, 2);
    for (const [data, device, oneThread] of seen) {
      assert.deepEqual([data, oneThread], [[3, 6], null]);
      assert.match(device, /2 threads$/);
    }
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
    await Promise.all([server.close(), other.close()]);
  }
});

test('a program that esbuild makes one file of', { timeout: 60_000 }, async () => {
  const project = await made();
  const text = `import { load } from 'kilim';
    const operators = 'file://' + process.cwd() + '/operators.js';
    for (const worker of [true, false]) {
      load('scale.onnx', { assets: 'node_modules/kilim/dist/kilim', operators, worker })
        .then((session) => session.run({ x: [1, 2] }))
        .then(({ y }) => console.log(y.data.join()), (error) => console.log(error.message));
    }`;
  writeFileSync(join(project, 'program.js'), text);
  for (const [format, end] of [
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ]) {
    await bin(
      project,
      'esbuild',
      'program.js',
      '--bundle',
      '--platform=node',
      `--format=${format}`,
      '--log-level=error',
      `--outfile=program.${end}`,
    );
    assert.equal(await run(project, process.execPath, [`program.${end}`]), '3,6\n3,6\n', format);
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
