// Where there is no page: workers of every kind, and the background of an extension.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { launch, open, repository, usualFlags, www } from './support/browser.mjs';
import { serve } from './support/server.mjs';

const dist = join(www, 'dist', 'kilim');

/** A module that answers each message by what a session computes in its thread, with the package's module `entry`. */
const answering = (entry, options = {}) => `
import { load } from '${entry}';

export async function answer() {
  try {
    const session = await load('/assets/digits.onnx', ${JSON.stringify({ backends: ['cpu'], ...options })});
    const { probabilities } = await session.run({ image: new Float32Array(784) });
    return [probabilities.dims.join(), session.report.worker];
  } catch (error) {
    return [error.name, error.code, error.message];
  }
}
`;

const SCRIPTS = new Map(
  Object.entries({
    'dedicated.js': "import { answer } from '/answers/index.js';\nonmessage = async () => postMessage(await answer());",
    'shared.js':
      "import { answer } from '/answers/index.js';\nonconnect = ({ ports: [port] }) => { port.onmessage = async () => port.postMessage(await answer()); };",
    'service.js':
      "import { answer } from '/answers/single.js';\nonmessage = ({ ports: [port] }) => void answer().then((said) => port.postMessage(said));",
    'usual.js':
      "import { answer } from '/answers/index.js';\nonmessage = ({ ports: [port] }) => void answer().then((said) => port.postMessage(said));",
  }).map(([name, text]) => [name, Buffer.from(text)]),
);
const ANSWERS = new Map(['index', 'single'].map((name) => [`${name}.js`, Buffer.from(answering(`/kilim/${name}.js`))]));

let browser;
let server;
before(async () => {
  browser = await launch();
});
before(async () => {
  server = await serve([
    ['/kilim/', dist],
    ['/assets/', join(repository, 'assets')],
    ['/answers/', ANSWERS],
    ['/scripts/', SCRIPTS],
  ]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** What a worker of the page answers, which `start` makes there. */
async function answerOf(start) {
  const { page, problems } = await open(browser, `${server.url}/empty`);
  const answer = await page.evaluate(start);
  await page.close();
  assert.deepEqual(problems, []);
  return answer;
}

test('in a dedicated worker a session has a worker of its own', { timeout: 60_000 }, async () => {
  const answer = await answerOf(async () => {
    const worker = new Worker('/scripts/dedicated.js', { type: 'module' });
    worker.postMessage('');
    return new Promise((resolve) => worker.addEventListener('message', ({ data }) => resolve(data)));
  });
  assert.deepEqual(answer, ['1,10', null]);
});

test('in a shared worker a session computes in its thread', { timeout: 60_000 }, async () => {
  const [dims, reason] = await answerOf(async () => {
    const { port } = new SharedWorker('/scripts/shared.js', { type: 'module' });
    port.postMessage('');
    return new Promise((resolve) => {
      port.onmessage = ({ data }) => resolve(data);
    });
  });
  assert.equal(dims, '1,10');
  assert.match(reason, /no `Worker`/);
});

for (const [script, expected] of [
  ['service.js', [/^1,10$/, /`kilim\/single` computes in the thread that imports it/]],
  ['usual.js', [/^KilimError$/, /^IO$/, /`kilim\/single`/]],
]) {
  test(`in a service worker that imports ${script === 'service.js' ? '`kilim/single`' : '`kilim`'}`, { timeout: 60_000 }, async () => {
    const { page } = await open(browser, `${server.url}/empty`);
    const answer = await page.evaluate(async (script) => {
      const { active, installing, waiting } = await navigator.serviceWorker.register(`/scripts/${script}`, { type: 'module' });
      const worker = active ?? installing ?? waiting;
      const channel = new MessageChannel();
      worker.postMessage('', [channel.port2]);
      return new Promise((resolve) => {
        channel.port1.onmessage = ({ data }) => resolve(data);
      });
    }, script);
    await page.close();
    assert.equal(answer.length, expected.length, String(answer));
    for (const [i, pattern] of expected.entries()) assert.match(answer[i], pattern);
  });
}

test("an extension's background and page", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kilim-extension-'));
  const [extension, profile] = ['extension', 'profile'].map((name) => join(folder, name));
  mkdirSync(extension);
  cpSync(dist, join(extension, 'kilim'), { recursive: true });
  cpSync(join(repository, 'assets', 'digits.onnx'), join(extension, 'assets', 'digits.onnx'));
  const files = {
    'manifest.json': JSON.stringify({
      manifest_version: 3,
      name: 'Kilim',
      version: '1',
      background: { service_worker: 'background.js', type: 'module' },
      content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'" },
    }),
    'background.js': `${answering('./kilim/single.js')}\nglobalThis.answer = answer;`,
    'page.js': `${answering('./kilim/index.js')}\nglobalThis.answer = answer;`,
    'page.html': '<!doctype html><script type="module" src="page.js"></script>',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(extension, name), text);
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: false,
    args: [...usualFlags(), '--headless=new', `--disable-extensions-except=${extension}`, `--load-extension=${extension}`],
  });
  try {
    const background = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker', { timeout: 30_000 }));
    const [dims, reason] = await background.evaluate(() => globalThis.answer());
    assert.equal(dims, '1,10', reason);
    const page = await context.newPage();
    await page.goto(new URL('page.html', background.url()).href);
    await page.waitForFunction(() => globalThis.answer);
    assert.deepEqual(await page.evaluate(() => globalThis.answer()), ['1,10', null]);
  } finally {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
