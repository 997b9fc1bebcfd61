// What `npm pack` makes, installed like any package: in a plain page, and under Vite, built and served.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launch, open, repository, www } from './support/browser.mjs';
import { serve } from './support/server.mjs';

const run = promisify(execFile);
const tools = join(www, 'node_modules');
let browser;
let folder;
let tarball;

before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), 'kilim-install-'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: www, shell: process.platform === 'win32' });
  const [packed] = Object.values(JSON.parse(stdout));
  tarball = join(folder, packed.filename);
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** A copy of a fixture with the package installed from the tarball. */
async function install(name) {
  const project = join(folder, name);
  cpSync(join(www, 'fixtures', name), project, { recursive: true });
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'digits.onnx'));
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: `fixture-${name}`, private: true, type: 'module' }));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project, shell: process.platform === 'win32' });
  return project;
}

async function answerAt(url) {
  const { page, problems } = await open(browser, url);
  const answer = page.locator('#answer');
  await page.waitForFunction(() => document.getElementById('answer').textContent, null, { timeout: 60_000 });
  const text = await answer.textContent();
  await page.close();
  assert.deepEqual(problems, []);
  return text;
}

test('the installed package works in a plain page', async () => {
  const server = await serve([['/', await install('plain')]]);
  try {
    assert.equal(await answerAt(`${server.url}/`), 'float32 [1,10]');
  } finally {
    await server.close();
  }
});

test('it works from another origin, as on a CDN', async () => {
  const project = join(folder, 'plain');
  const cdn = await serve([['/', join(project, 'node_modules')]], { 'access-control-allow-origin': '*' });
  const policy = `script-src ${cdn.url} 'wasm-unsafe-eval'; worker-src blob: ${cdn.url}; connect-src 'self' ${cdn.url}`;
  const server = await serve([['/', project]], { 'content-security-policy': policy });
  const { page, problems } = await open(browser, `${server.url}/empty`);
  try {
    const answers = await page.evaluate(async (url) => {
      const { load } = await import(url);
      const answers = [];
      for (const worker of [true, false]) {
        const session = await load('/digits.onnx', { backends: ['cpu'], worker });
        const { probabilities } = await session.run({ image: new Float32Array(28 * 28) });
        answers.push(`${probabilities.type} [${probabilities.dims}]`);
        session.close();
      }
      return answers;
    }, `${cdn.url}/kilim/dist/kilim/index.js`);
    assert.deepEqual(answers, ['float32 [1,10]', 'float32 [1,10]']);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
    await Promise.all([cdn.close(), server.close()]);
  }
});

test('its types hold, and it works under Vite, built', async () => {
  const project = await install('vite');
  await run(process.execPath, [join(tools, 'typescript/bin/tsc'), '-p', project]);
  await run(process.execPath, [join(tools, 'vite/bin/vite.js'), 'build', '--logLevel', 'error'], { cwd: project });
  const server = await serve([['/', join(project, 'dist')]]);
  try {
    assert.equal(await answerAt(`${server.url}/`), 'float32 [1,10]');
  } finally {
    await server.close();
  }
});

test('it works under Vite, as served while developing', async () => {
  const { createServer } = await import('vite');
  const server = await createServer({ root: join(folder, 'vite'), logLevel: 'error', server: { port: 0, host: '127.0.0.1' } });
  await server.listen();
  try {
    assert.equal(await answerAt(server.resolvedUrls.local[0]), 'float32 [1,10]');
  } finally {
    await server.close();
  }
});
