// Threads in a page: workers that all sessions share, where the page is cross-origin isolated.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { serve } from './support/server.mjs';

const product = [...model({ nodes: [['MatMul', ['x', 'x'], ['y']]], inputs: [['x', ['N', 'N']]], outputs: [['y', ['N', 'N']]] })];
const ISOLATED = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** What `work` gives in a page with these headers, where `load(threads)` loads a product and `square(n)` makes a matrix. */
async function inPage(headers, work, look = async () => {}) {
  const server = await serve([['/kilim/', join(www, 'dist', 'kilim')]], headers);
  const { page, problems } = await open(browser, `${server.url}/empty`);
  try {
    return await workedIn(page, work, look);
  } finally {
    await page.close();
    await server.close();
    assert.deepEqual(problems, []);
  }
}

async function workedIn(page, work, look) {
  await page.evaluate(async (bytes) => {
    globalThis.kilim = await import('/kilim/index.js');
    globalThis.sessions = [];
    globalThis.load = async (threads) => {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], worker: true, threads });
      sessions.push(session);
      return session;
    };
    globalThis.square = (n) =>
      new kilim.Tensor(
        'float32',
        [n, n],
        Float32Array.from({ length: n * n }, (_, i) => ((i * 7919) % 1000) / 1000 - 0.5),
      );
    globalThis.device = (session) => session.report.backends.find(({ id }) => id === 'cpu').device;
  }, product);
  const seen = await page.evaluate(work);
  await look(page);
  await page.evaluate(() => sessions.forEach((session) => session.close()));
  for (let i = 0; i < 100 && page.workers().length > 0; i++) await page.waitForTimeout(50);
  assert.equal(page.workers().length, 0, 'workers are left');
  return seen;
}

test('sessions of an isolated page share threads and give what one thread gives', { timeout: 120_000 }, async () => {
  const seen = await inPage(ISOLATED, async () => {
    await Promise.all([1, 2, 3].map(load));
    sessions.sort((a, b) => device(a).localeCompare(device(b)));
    const devices = sessions.map(device);
    const results = [];
    for (const n of [1, 7, 130, 400]) {
      const outputs = await Promise.all(sessions.map((session) => session.run({ x: square(n) })));
      const [one, two, three] = outputs.map(({ y }) => y.data);
      results.push(two.every((v, i) => Math.abs(v - one[i]) <= 1e-4) && three.every((v, i) => v === two[i]));
    }
    // From run to run the bytes are the same, whoever computes beside it.
    const want = (await sessions[1].run({ x: square(300) })).y.data;
    let same = 0;
    for (let i = 0; i < 100; i++) {
      const [a, b] = await Promise.all([sessions[1].run({ x: square(300) }), sessions[2].run({ x: square(301) })]);
      same += a.y.data.every((v, k) => v === want[k]) && b.y.data.length === 301 * 301;
    }
    return { devices, results, same, why: sessions.map(({ report }) => report.oneThread) };
  });
  assert.deepEqual(
    seen.devices.map((device) => /(\d) thread/.exec(device)?.[1]),
    ['1', '2', '3'],
  );
  assert.deepEqual(seen.results, [true, true, true, true]);
  assert.equal(seen.same, 100);
  assert.deepEqual(seen.why, [null, null, null]);
});

test('a session that is closed while others compute takes nothing from them', { timeout: 120_000 }, async () => {
  const ran = await inPage(ISOLATED, async () => {
    const [kept, other] = [await load(2), await load(2)];
    let ran = 0;
    const running = other.run({ x: square(1500) }).then(
      () => 'done',
      ({ code }) => code,
    );
    ran += (await kept.run({ x: square(200) })).y.data.length === 200 * 200;
    other.close();
    const ended = await running;
    for (let i = 0; i < 20; i++) ran += (await kept.run({ x: square(200) })).y.data.length === 200 * 200;
    const aborted = await kept.run({ x: square(2000) }, { signal: AbortSignal.timeout(50) }).then(
      () => 'done',
      ({ code }) => code,
    );
    ran += (await kept.run({ x: square(200) })).y.data.length === 200 * 200;
    return { ran, ended, aborted };
  });
  assert.deepEqual(ran, { ran: 22, ended: 'STATE', aborted: 'ABORTED' });
});

test('all workers wait for calls of every session, whoever came last', { timeout: 60_000 }, async () => {
  let waiting;
  await inPage(
    ISOLATED,
    async () => {
      for (const threads of [2, 3, 4]) await (await load(threads)).run({ x: square(200) });
    },
    async (page) => {
      await page.waitForTimeout(500);
      const crew = page.workers().filter((worker) => worker.url().includes('worker.crew'));
      // One that waits for a call runs no script until it is called.
      const idle = crew.map((worker) =>
        Promise.race([worker.evaluate(() => 'idle').catch(() => 'ended'), page.waitForTimeout(1000).then(() => 'waits')]),
      );
      waiting = await Promise.all(idle);
    },
  );
  assert.deepEqual(waiting, ['waits', 'waits', 'waits']);
});

test('in a page that is not isolated there is one thread', { timeout: 60_000 }, async () => {
  const [text, why, asked] = await inPage({}, async () => {
    const session = await load(4);
    await session.run({ x: square(100) });
    return [device(session), session.report.oneThread, (await load(1)).report.oneThread];
  });
  assert.match(text, /1 thread$/);
  assert.match(why, /not cross-origin isolated: .*Cross-Origin-Opener-Policy/);
  assert.equal(asked, null);
});
