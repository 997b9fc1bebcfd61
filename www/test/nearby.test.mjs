// Where a session without the option `worker` computes: in its worker, or, a short while later, in the page.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const add = (dims) =>
  model({
    nodes: [['Add', ['x', 'w'], ['y']]],
    inputs: [['x', dims]],
    outputs: [['y', dims]],
    initializers: [tensor('w', [2], { floats: [10, 20] })],
  });

const here = packagePage({
  opened: (page) =>
    page.evaluate(() => {
      const post = Worker.prototype.postMessage;
      globalThis.posted = 0;
      Worker.prototype.postMessage = function (...message) {
        posted++;
        return post.apply(this, message);
      };
      /** Runs until a run posts nothing to the worker, at most 100 times; whether one did not. */
      globalThis.comesNear = async (session, feeds) => {
        for (let i = 0; i < 100; i++) {
          const before = posted;
          await session.run(feeds);
          if (posted === before) return true;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return false;
      };
    }),
});
after(() => assert.deepEqual(here.problems, []));

test('short runs of a small model come to the page, with the same answers', async () => {
  const seen = await here.page.evaluate(
    async (bytes) => {
      const given = Uint8Array.from(bytes);
      const session = await kilim.load(given, { backends: ['cpu'] });
      given.fill(0); // the caller's bytes are its own again
      const near = await comesNear(session, { x: [1, 2] });
      const runs = Array.from({ length: 5 }, (_, i) => session.run({ x: [i, -i] }));
      const answers = (await Promise.all(runs)).map(({ y }) => [...y.data]);
      const wrong = await session.run({ x: [1, 2, 3] }).catch(({ code }) => code);
      session.close();
      const closed = await session.run({ x: [1, 2] }).catch(({ code }) => code);
      return { near, answers, wrong, closed };
    },
    add([2]),
  );
  assert.deepEqual(seen, {
    near: true,
    answers: [
      [10, 20],
      [11, 19],
      [12, 18],
      [13, 17],
      [14, 16],
    ],
    wrong: 'SHAPE',
    closed: 'STATE',
  });
});

test('a run that takes the page too long is made in the worker, as are the next', async () => {
  const seen = await here.page.evaluate(
    async (bytes) => {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'] });
      const near = await comesNear(session, { x: [1, 2] });
      const { now } = performance;
      let leaps = 0;
      performance.now = () => now.call(performance) + 100 * ++leaps;
      const before = posted;
      const { y } = await session.run({ x: [3, 4] });
      performance.now = now;
      const after = posted;
      await session.run({ x: [3, 4] });
      const counts = [after - before, posted - after];
      session.close();
      return { near, counts, y: [...y.data] };
    },
    add([2]),
  );
  assert.deepEqual(seen, { near: true, counts: [1, 1], y: [13, 24] });
});

test('everything else stays in the worker', async () => {
  const near = await here.page.evaluate(
    async ([fixed, open]) => {
      const stays = [
        [fixed, { worker: true }],
        [fixed, { memory: 'limit' }],
        [fixed, { configs: ['cpu:timers=on'] }],
        [open, {}],
      ];
      const near = [];
      for (const [bytes, options] of stays) {
        const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...options });
        near.push(await comesNear(session, { x: { type: 'float32', dims: [1, 2], data: Float32Array.of(1, 2) } }));
        session.close();
      }
      return near;
    },
    [add([1, 2]), add(['N', 2])],
  );
  assert.deepEqual(near, [false, false, false, false]);
});
