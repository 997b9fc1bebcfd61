// A backend that a page brings, over WebGPU buffers (`fixtures/shared/gpu.js`): what its tensors are and where they stay.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const here = packagePage({ folders: [['/shared/', join(www, 'fixtures', 'shared')]] });

// y = exp(sin(relu(-x))): the sine, which the backend has no shader for, stands between two of its parts.
const chain = model({
  nodes: [
    ['Neg', ['x'], ['a']],
    ['Relu', ['a'], ['b']],
    ['Sin', ['b'], ['c']],
    ['Exp', ['c'], ['y']],
  ],
  inputs: [['x', ['n', 3]]],
  outputs: [['y', ['n', 3]]],
});
const back = model({ nodes: [['Neg', ['x'], ['y']]], inputs: [['x', ['n', 3]]], outputs: [['y', ['n', 3]]] });

test("a page's backend computes in WebGPU buffers, in a worker and without", async () => {
  for (const worker of [true, false]) {
    const { given, made, at } = await here.page.evaluate(
      async ({ bytes, worker }) => {
        kilim.registerBackend('buffers', '/shared/gpu.js');
        const session = await kilim.load(new Uint8Array(bytes), {
          backends: ['buffers', 'cpu'],
          pins: ['op:Exp=buffers', 'op:Relu=buffers'],
          worker,
        });
        const [given, made] = [[], []];
        // 67 rows are four workgroups, the last of which is not full.
        for (const rows of [2, 67, 1]) {
          const data = Float32Array.from({ length: 3 * rows }, (_, i) => Math.sin(i) * 2);
          const { y } = await session.run({ x: { type: 'float32', dims: [rows, 3], data } });
          given.push(...data);
          made.push(...y.data);
        }
        const at = session.report.nodes.map(({ op, backend }) => `${op} ${backend}`);
        session.close();
        return { given, made, at };
      },
      { bytes: [...chain], worker },
    );
    assert.deepEqual(at, ['Neg buffers', 'Relu buffers', 'Sin cpu', 'Exp buffers']);
    given.forEach((x, i) => {
      const wanted = Math.exp(Math.sin(Math.max(-x, 0)));
      assert.ok(Math.abs(made[i] - wanted) <= 1e-5 * wanted, `${made[i]}, not ${wanted}`);
    });
  }
});

test('what a run keeps stays in its WebGPU buffer, also in the next run', async () => {
  const { reads, before, data } = await here.page.evaluate(
    async (bytes) => {
      const { reads } = await import('/shared/gpu.js');
      kilim.registerBackend('buffers', '/shared/gpu.js');
      const session = await kilim.load(new Uint8Array(bytes), { backends: ['buffers'], worker: false });
      const before = reads();
      let x = { type: 'float32', dims: [2, 3], data: Float32Array.of(1, -2, 3, 0.5, -0.25, 8) };
      for (let i = 0; i < 5; i++) ({ y: x } = await session.run({ x }, { keep: ['y'] }));
      const kept = reads();
      const data = [...(await x.read()).data];
      session.close();
      return { before, reads: [kept, reads()], data };
    },
    [...back],
  );
  assert.deepEqual(reads, [before, before + 1]);
  assert.deepEqual(data, [-1, 2, -3, -0.5, 0.25, -8]);
});
