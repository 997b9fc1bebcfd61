// The installed package in pages that bundlers build. Vite has tests in ../install.test.mjs; where files are moved, assets.test.mjs.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repository } from '../support/browser.mjs';
import { model } from '../support/onnx.mjs';
import { rolldown } from 'rolldown';
import { example, projects, run } from '../support/project.mjs';
import { serve } from '../support/server.mjs';

const here = projects();

const scale = model({
  nodes: [['Scale', ['x'], ['y'], { domain: 'com.example', floats: { factor: 3 } }]],
  inputs: [['x', [2]]],
  outputs: [['y', [2]]],
});

/** What the page in `site` says, what nobody caught, and how often the model was fetched: once for each thread. */
async function answerIn(project, site, headers = {}, page = '') {
  writeFileSync(join(site, 'scale.onnx'), Uint8Array.from(scale));
  copyFileSync(join(project, 'operators.js'), join(site, 'operators.js'));
  const server = await serve([['/', site]], headers);
  try {
    const answer = await here.answerAt(`${server.url}/${page}`);
    return { ...answer, fetched: server.asked.filter((path) => path === '/scale.onnx').length };
  } finally {
    await server.close();
  }
}

/** For frameworks that write scripts and styles into their pages. */
const WITH_SCRIPTS = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'";
const ANSWER = { text: '100 runs in both threads', problems: [], fetched: 2 };

test('it works under webpack, which warns of nothing', { timeout: 300_000 }, async () => {
  const project = await here.install('shared', 'webpack');
  const said = JSON.parse(await run(project, process.execPath, ['build.js']));
  // The size of the binaries is no fault of a page.
  assert.deepEqual(
    said.filter((message) => !/size limit|performance/.test(message)),
    [],
  );
  copyFileSync(join(project, 'index.html'), join(project, 'dist', 'index.html'));
  assert.deepEqual(await answerIn(project, join(project, 'dist')), ANSWER);
});

test('it works where a bundler leaves addresses alone, with the files beside its output', { timeout: 300_000 }, async () => {
  const project = await here.install('shared', 'rolldown');
  const site = join(project, 'dist');
  const bundle = await rolldown({ input: join(project, 'main.js'), cwd: project });
  await bundle.write({ dir: site, format: 'esm' });
  await bundle.close();
  const files = join(project, 'node_modules', 'kilim', 'dist', 'kilim');
  for (const file of readdirSync(files).filter((name) => /^worker\..*\.js$|\.wasm$/.test(name)))
    copyFileSync(join(files, file), join(site, file));
  copyFileSync(join(project, 'index.html'), join(site, 'index.html'));
  assert.deepEqual(await answerIn(project, site), ANSWER);
});

test('it works under SvelteKit, which renders the page in Node first', { timeout: 300_000 }, async () => {
  const project = await here.install('shared', 'sveltekit');
  await run(project, process.execPath, [join('node_modules', 'vite', 'bin', 'vite.js'), 'build', '--logLevel', 'error']);
  assert.deepEqual(await answerIn(project, join(project, 'build'), { 'content-security-policy': WITH_SCRIPTS }), ANSWER);
});

test('it works under Nuxt, which renders the page in Node first', { timeout: 300_000 }, async () => {
  const project = await here.install('shared', 'nuxt');
  await run(project, process.execPath, [join('node_modules', 'nuxt', 'bin', 'nuxt.mjs'), 'generate'], { NUXT_TELEMETRY_DISABLED: '1' });
  const site = join(project, '.output', 'public');
  assert.deepEqual(await answerIn(project, site, { 'content-security-policy': WITH_SCRIPTS }), ANSWER);
});

test('it works under Angular, with the files in a folder that is served', { timeout: 300_000 }, async () => {
  const project = await here.install('shared', 'angular');
  await run(project, process.execPath, [join('node_modules', 'kilim', 'dist', 'kilim', 'node.cli.js'), 'copy', 'public/kilim']);
  const said = await run(project, process.execPath, [join('node_modules', '@angular', 'cli', 'bin', 'ng.js'), 'build']);
  assert.doesNotMatch(said, /warning/i);
  const site = join(project, 'dist', 'browser');
  assert.deepEqual(await answerIn(project, site, { 'content-security-policy': WITH_SCRIPTS }), ANSWER);
});

for (const bundler of ['webpack', 'turbopack']) {
  test(`it works under Next with ${bundler}`, { timeout: 300_000 }, async () => {
    const project = await next();
    const said = await run(project, process.execPath, [join('node_modules', 'next', 'dist', 'bin', 'next'), 'build', `--${bundler}`], {
      NEXT_TELEMETRY_DISABLED: '1',
    });
    assert.doesNotMatch(said, /warn|critical dependency/i);
    // A page that was rendered in Node has its answer in its text.
    assert.match(readFileSync(join(project, 'out', 'served.html'), 'utf8'), /<output id="served">1,10<\/output>/);
    const site = join(project, 'out');
    assert.deepEqual(await answerIn(project, site, { 'content-security-policy': WITH_SCRIPTS }, 'check.html'), ANSWER);
    // The example itself.
    const server = await serve([['/', site]], { 'content-security-policy': WITH_SCRIPTS });
    try {
      assert.match(await here.digitAt(`${server.url}/`, 7), /^7 \(\d+ %\)$/);
    } finally {
      await server.close();
    }
  });
}

let installed;
/** Installed once for both of its bundlers. */
const next = () =>
  (installed ??= here.install('shared', example('next'), 'next').then((project) => {
    copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'public', 'digits.onnx'));
    return project;
  }));
