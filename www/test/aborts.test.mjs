// Aborts reach a worker that computes, whatever the page allows, and the session goes on.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { serve } from './support/server.mjs';

const product = [...model({ nodes: [['MatMul', ['x', 'x'], ['y']]], inputs: [['x', ['N', 'N']]], outputs: [['y', ['N', 'N']]] })];

const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'";
const PAGES = {
  'an isolated page': { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' },
  'a page whose workers read blobs': { 'content-security-policy': `${POLICY} blob:` },
};

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Milliseconds of a whole product, of one that is aborted after `delay`, and what comes of the run that waits behind that. */
async function aborting([bytes, delay]) {
  const kilim = await import('/kilim/index.js');
  const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], worker: true });
  const size = 2048;
  const x = new kilim.Tensor('float32', [size, size]);
  const timed = async (call) => {
    const began = performance.now();
    const code = await call().then(
      () => 'done',
      ({ code }) => code,
    );
    return [performance.now() - began, code];
  };
  const small = new kilim.Tensor('float32', [1, 1], new Float32Array([3]));
  await session.run({ x: small });
  const whole = await timed(() => session.run({ x }, { signal: new AbortController().signal }));
  const [stopped, next] = await Promise.all([
    timed(() => session.run({ x }, { signal: AbortSignal.timeout(delay) })),
    timed(() => session.run({ x: small })),
  ]);
  const { y } = await session.run({ x: small });
  session.close();
  const kept = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], worker: true, keepWeights: true });
  const others = {};
  for (const call of ['profile', 'verify']) {
    const [aborted, after] = await Promise.all([
      timed(() => kept[call]({ x }, { signal: AbortSignal.timeout(delay) })),
      timed(() => kept.run({ x: small })),
    ]);
    others[call] = [aborted[1], after[1], after[0]];
  }
  kept.close();
  return { isolated: globalThis.crossOriginIsolated, whole, stopped, next, others, y: [...y.data] };
}

for (const [what, headers] of Object.entries(PAGES)) {
  test(`a product is stopped in ${what}`, { timeout: 120_000 }, async () => {
    const server = await serve([['/kilim/', join(www, 'dist', 'kilim')]], headers);
    const { page, problems } = await open(browser, `${server.url}/empty`);
    const seen = await page.evaluate(aborting, [product, 100]).finally(() => Promise.all([page.close(), server.close()]));
    assert.equal(seen.isolated, what === 'an isolated page');
    assert.deepEqual([seen.whole[1], seen.stopped[1], seen.next[1]], ['done', 'ABORTED', 'done']);
    assert.deepEqual(seen.y, [9]);
    // The worker is free long before the product would have been done.
    assert.ok(seen.next[0] < seen.whole[0] / 2 + 150, JSON.stringify(seen));
    for (const [call, [code, next, took]] of Object.entries(seen.others)) {
      assert.deepEqual([code, next], ['ABORTED', 'done'], call);
      assert.ok(took < seen.whole[0] / 2 + 150, JSON.stringify(seen));
    }
    assert.deepEqual(problems, []);
  });
}
