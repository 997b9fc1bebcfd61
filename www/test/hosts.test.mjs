// Where the package cannot have what it usually has: no worker, no network, another origin, no browser at all.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import * as inNode from '../dist/kilim/node.js';
import { launch, open, repository, www } from './support/browser.mjs';
import { serve } from './support/server.mjs';

const MOUNTS = [
  ['/kilim/', join(www, 'dist', 'kilim')],
  ['/assets/', join(repository, 'assets')],
];
const digits = join(repository, 'assets', 'digits.onnx');

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** Opens a page on a server of its own; `use` gets both, and gives what the test is about. */
async function onPage(headers, use) {
  const server = await serve(MOUNTS, headers);
  const { page } = await open(browser, `${server.url}/empty`);
  try {
    await page.evaluate(() => {
      globalThis.told = ({ name, code, message, hint }) => ({ name, code, message, hint });
      /** What a session says and where it is, or its error. */
      globalThis.attempt = async (kilim, model, options) => {
        try {
          const session = await kilim.load(model, { backends: ['cpu'], ...options });
          const { probabilities } = await session.run({ image: new Float32Array(784) });
          // Another shape makes another report.
          await session.run({ image: new kilim.Tensor('float32', [2, 1, 28, 28]) });
          const { worker } = session.report;
          session.close();
          return { dims: probabilities.dims, worker };
        } catch (error) {
          return told(error);
        }
      };
    });
    return await use(page, server);
  } finally {
    await page.close();
    await server.close();
  }
}

const attempt = (page, model, options) =>
  page.evaluate(async ([model, options]) => attempt(await import('/kilim/index.js'), model, options), [model, options]);

test('without workers, by the policy, the calling thread computes and the report says why', async () => {
  const headers = {
    'content-security-policy': "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'none'; connect-src 'self'",
  };
  const [usual, prepared, wanted, local] = await onPage(headers, async (page) => [
    await attempt(page, '/assets/digits.onnx', {}),
    await page.evaluate(async () => {
      const kilim = await import('/kilim/index.js');
      await kilim.prepare();
      return attempt(kilim, '/assets/digits.onnx', {});
    }),
    await attempt(page, '/assets/digits.onnx', { worker: true }),
    await attempt(page, '/assets/digits.onnx', { worker: false }),
  ]);
  for (const { dims, worker } of [usual, prepared]) {
    assert.deepEqual(dims, [1, 10]);
    assert.match(worker, /content security policy .*`worker-src`/);
  }
  assert.deepEqual([wanted.name, wanted.code], ['KilimError', 'IO']);
  assert.match(wanted.message, /`worker-src`.*`worker: false`/);
  assert.deepEqual(local, { dims: [1, 10], worker: null });
});

test('without a network the error says so, and the next load tries again', async () => {
  const seen = await onPage({}, async (page) => {
    await page.evaluate(() => import('/kilim/index.js'));
    const seen = [];
    for (const options of [{}, { worker: true }, { worker: false }]) {
      await page.context().setOffline(true);
      const offline = await attempt(page, '/assets/digits.onnx', options);
      await page.context().setOffline(false);
      seen.push([offline, await attempt(page, '/assets/digits.onnx', options)]);
    }
    return seen;
  });
  for (const [offline, online] of seen) {
    assert.deepEqual([offline.name, offline.code], ['KilimError', 'IO']);
    assert.match(offline.message, /offline/);
    assert.deepEqual(online.dims, [1, 10], JSON.stringify(online));
  }
});

test('what another origin does not allow is an error with a hint at CORS', async () => {
  const headers = { 'content-security-policy': "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'" };
  const refused = await onPage(headers, (page) =>
    onPage({}, (_page, other) => Promise.all([true, false].map((worker) => attempt(page, `${other.url}/assets/digits.onnx`, { worker })))),
  );
  for (const { code, message, hint } of refused) {
    assert.equal(code, 'IO');
    assert.match(hint, /CORS/);
    assert.ok(message.includes(hint) && message.includes('/assets/digits.onnx'), message);
  }
});

test("a worker's script that is not there is an error", async () => {
  const failed = await onPage({}, async (page) => {
    await page.route('**/worker.*.js', (route) => route.fulfill({ status: 404, body: 'not here' }));
    return attempt(page, '/assets/digits.onnx', {});
  });
  assert.equal(failed.code, 'IO');
  assert.match(failed.message, /worker's script could not be loaded; .*`npx kilim copy .*`.*`assets: /);
});

test('many calls of one signal, or of none, are no reason for Node to warn', async () => {
  const warnings = [];
  const listener = (warning) => warnings.push(String(warning));
  process.on('warning', listener);
  const session = await inNode.load(pathToFileURL(digits), { backends: ['cpu'] });
  const image = new Float32Array(784);
  const controller = new AbortController();
  const runs = [controller.signal, undefined].flatMap((signal) =>
    Array.from({ length: 20 }, () => session.run({ image }, signal ? { signal } : {})),
  );
  const last = session.run({ image }, { signal: controller.signal });
  await Promise.all(runs);
  controller.abort();
  await last.catch(({ code }) => assert.equal(code, 'ABORTED'));
  await assert.rejects(session.run({ image }, { signal: controller.signal }), { code: 'ABORTED' });
  await new Promise((resolve) => setTimeout(resolve, 50));
  session.close();
  process.off('warning', listener);
  assert.deepEqual(warnings, []);
});
