// When sessions end: closed, disposed of, or dropped; and whose the memory of their inputs is meanwhile.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const add = [
  ...model({
    nodes: [['Add', ['x', 'w'], ['y']]],
    inputs: [['x', ['N', 2]]],
    outputs: [['y', ['N', 2]]],
    initializers: [tensor('w', [2], { floats: [10, 20] })],
  }),
];

const here = packagePage({
  flags: ['--js-flags=--expose-gc'],
  opened: (page) =>
    page.evaluate((add) => {
      globalThis.open = (options) => kilim.load(Uint8Array.from(add), { backends: ['cpu'], ...options });
      globalThis.rows = (count, value) => new kilim.Tensor('float32', [count, 2], new Float32Array(2 * count).fill(value));
      /** Collects garbage, and gives those who are told of it the time. */
      globalThis.collect = async () => {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 50));
      };
    }, add),
});
after(() => assert.deepEqual(here.problems, []));

test('workers of dropped sessions end', { timeout: 60_000 }, async () => {
  const ran = await here.page.evaluate(async () => {
    let ran = 0;
    for (let i = 0; i < 20; i++) {
      const session = await open({ worker: true });
      ran += (await session.run({ x: rows(1, i) })).y.data[0] === i + 10;
    }
    return ran;
  });
  assert.equal(ran, 20);
  assert.ok(here.page.workers().length > 0);
  for (let i = 0; i < 100 && here.page.workers().length > 0; i++) await here.page.evaluate(() => collect());
  assert.equal(here.page.workers().length, 0);
});

test('a session that nobody has any more is not collected while it computes', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const calls = [];
    for (const options of [
      { worker: true, keepWeights: true },
      { worker: false, keepWeights: true },
    ]) {
      for (const call of ['run', 'verify', 'saveCache', 'profile']) {
        const session = await open(options);
        calls.push(
          session[call]({ x: rows(1 << 20, 1) }).then(
            () => 'done',
            ({ code }) => code,
          ),
        );
      }
    }
    let left = calls.length;
    for (const call of calls) call.then(() => left--);
    while (left > 0) await collect();
    return Promise.all(calls);
  });
  assert.deepEqual(
    seen,
    Array.from({ length: 8 }, () => 'done'),
  );
});

test('a block ends the sessions that it uses', async () => {
  const seen = await here.page.evaluate(async () => {
    const session = await open({ worker: true });
    const other = await open({ worker: true });
    session[Symbol.dispose]();
    await other[Symbol.asyncDispose]();
    return Promise.all([session, other].map((closed) => closed.run({ x: rows(1, 1) }).catch(({ code }) => code)));
  });
  assert.deepEqual(seen, ['STATE', 'STATE']);
});

for (const worker of [true, false, undefined]) {
  const where = worker === undefined ? 'by default' : worker ? 'in the worker' : 'in the page';

  test(`closing rejects all that is under way, ${where}`, async () => {
    const seen = await here.page.evaluate(async (worker) => {
      const session = await open({ worker });
      const calls = [
        session.run({ x: rows(1 << 18, 1) }),
        session.saveCache(),
        session.profile({ x: rows(1, 1) }),
        session.run({ x: rows(1, 1) }),
      ];
      session.close();
      session.close();
      const codes = await Promise.all(
        calls.map((call) =>
          call.then(
            () => 'done',
            ({ code }) => code,
          ),
        ),
      );
      // The thread goes on with others.
      const next = await open({ worker });
      const { y } = await next.run({ x: rows(1, 5) });
      next.close();
      return { codes, y: [...y.data] };
    }, worker);
    assert.deepEqual(seen, { codes: ['STATE', 'STATE', 'STATE', 'STATE'], y: [15, 25] });
  });

  test(`closing while a model loads, ${where}`, async () => {
    const code = await here.page.evaluate(async (worker) => {
      const controller = new AbortController();
      const loading = open({ worker, signal: controller.signal });
      controller.abort();
      return loading.then(
        () => 'loaded',
        ({ code }) => code,
      );
    }, worker);
    assert.equal(code, 'ABORTED');
  });

  test(`inputs are the caller's again as soon as a call has returned, ${where}`, async () => {
    const sums = await here.page.evaluate(async (worker) => {
      const session = await open({ worker, keepWeights: true });
      const runs = [];
      // The first is made at once, the others wait; small and large ones.
      for (const count of [1, 1, 1 << 16, 1]) {
        const x = rows(count, 1);
        runs.push(session.run({ x }));
        x.data.fill(1000);
        x.dims[0] = 7;
      }
      const x = rows(1, 1);
      const profile = session.profile({ x });
      x.data.fill(1000);
      const sums = [...(await Promise.all(runs)), (await profile).outputs].map(({ y }) =>
        y.data.every((value, i) => value === (i % 2 ? 21 : 11)),
      );
      session.close();
      return sums;
    }, worker);
    assert.deepEqual(sums, [true, true, true, true, true]);
  });
}

test('a small model whose runs came to the page reads its inputs at once, too', async () => {
  const fixed = [...model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2]]], outputs: [['y', [2]]] })];
  const seen = await here.page.evaluate(async (bytes) => {
    const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'] });
    for (let i = 0; i < 30; i++) {
      await session.run({ x: [1, 2] });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const wrong = [];
    const { now } = performance;
    for (const slow of [false, true]) {
      let leaps = 0;
      // Slow: the run in the page is given up, and made anew in the worker.
      if (slow) performance.now = () => now.call(performance) + 100 * ++leaps;
      const x = Float32Array.of(1, 2);
      const run = session.run({ x });
      x.fill(9);
      wrong.push([...(await run).y.data]);
      performance.now = now;
    }
    session.close();
    return wrong;
  }, fixed);
  assert.deepEqual(seen, [
    [1, 2],
    [1, 2],
  ]);
});
