// What `npm pack` makes, installed like any package: in a plain page, and under Vite, built and served.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { open, repository, www } from './support/browser.mjs';
import { projects, run } from './support/project.mjs';
import { serve } from './support/server.mjs';

const tools = join(www, 'node_modules');
const here = projects();

async function install(name) {
  const project = await here.install(name);
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'digits.onnx'));
  return project;
}

const ANSWER = { text: 'float32 [1,10]', problems: [] };

test('the installed package works in a plain page', async () => {
  const server = await serve([['/', await install('plain')]]);
  try {
    assert.deepEqual(await here.answerAt(`${server.url}/`), ANSWER);
  } finally {
    await server.close();
  }
});

test('it works from another origin, as on a CDN', async () => {
  const project = join(here.folder, 'plain');
  const cdn = await serve([['/', join(project, 'node_modules')]], { 'access-control-allow-origin': '*' });
  const policy = `script-src ${cdn.url} 'wasm-unsafe-eval'; worker-src blob: ${cdn.url}; connect-src 'self' ${cdn.url}`;
  const server = await serve([['/', project]], { 'content-security-policy': policy });
  const { page, problems } = await open(here.browser, `${server.url}/empty`);
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
  await run(project, process.execPath, [join(tools, 'typescript/bin/tsc')]);
  await run(project, process.execPath, [join(tools, 'vite/bin/vite.js'), 'build', '--logLevel', 'error']);
  const server = await serve([['/', join(project, 'dist')]]);
  try {
    assert.deepEqual(await here.answerAt(`${server.url}/`), ANSWER);
  } finally {
    await server.close();
  }
});

test('it works under Vite, as served while developing', async () => {
  const { createServer } = await import('vite');
  const server = await createServer({ root: join(here.folder, 'vite'), logLevel: 'error', server: { port: 0, host: '127.0.0.1' } });
  await server.listen();
  try {
    assert.deepEqual(await here.answerAt(server.resolvedUrls.local[0]), ANSWER);
  } finally {
    await server.close();
  }
});
