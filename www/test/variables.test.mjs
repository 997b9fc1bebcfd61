// Models that keep tensors from run to run.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';

/** A sum that begins with 1, 2, 3; each run adds `x` and multiplies by a factor. The number of runs is counted. */
const sums = [...references('variables').get('sums/model.tflite')];
const FACTOR = [2, 0.5, -1];

const here = packagePage({
  opened: (page) =>
    page.evaluate((sums) => {
      globalThis.open = (options) => kilim.load(Uint8Array.from(sums), { backends: ['cpu'], ...options });
    }, sums),
});
after(() => assert.deepEqual(here.problems, []));

/** What runs with these inputs give from the first values on: the sum and the factor, the sum before, the number of runs. */
function expected(inputs) {
  let sum = [1, 2, 3];
  return inputs.map((x, run) => {
    const before = sum;
    sum = sum.map((value, i) => (value + x[i]) * FACTOR[i]);
    return [sum.map((value, i) => value + FACTOR[i]), before, [run + 1]];
  });
}

const inputs = Array.from({ length: 8 }, (_, run) => [run, 0.5 * run, run - 2]);

// A short model that has nothing to remember would move to the page after three runs.
for (const options of [{}, { worker: true }, { worker: false }, { backends: ['wgpu', 'cpu'] }]) {
  test(`a run reads what the run before wrote: ${JSON.stringify(options)}`, { timeout: 120_000 }, async () => {
    const seen = await here.page.evaluate(
      async ([options, inputs]) => {
        const session = await open(options);
        const input = session.inputs[0].name;
        const all = async () => {
          const runs = [];
          for (const x of inputs) {
            const outputs = await session.run({ [input]: Float32Array.from(x) });
            runs.push(session.outputs.map(({ name }) => [...outputs[name].data].map(Number)));
          }
          return runs;
        };
        const first = await all();
        await session.reset();
        const again = await all();
        const { variables } = session.report;
        session.close();
        const closed = await session.reset().catch(({ code }) => code);
        return { first, again, variables: variables.length, inputs: session.inputs.length, closed };
      },
      [options, inputs],
    );
    const want = expected(inputs);
    assert.deepEqual(seen, { first: want, again: want, variables: 2, inputs: 1, closed: 'STATE' });
  });
}

test('sessions have variables of their own, and a run that fails leaves them', async () => {
  const seen = await here.page.evaluate(async () => {
    const [one, two] = await Promise.all([open({ worker: true }), open({ worker: true })]);
    const count = async (session) => {
      const outputs = await session.run({ [session.inputs[0].name]: new Float32Array(3) });
      return outputs[session.outputs[2].name].data[0];
    };
    const seen = [await count(one), await count(one), await count(two)];
    const wrong = await one.run({ [one.inputs[0].name]: new Float32Array(4) }).catch(({ code }) => code);
    const aborted = await one.run({ [one.inputs[0].name]: new Float32Array(3) }, { signal: AbortSignal.abort() }).catch(({ code }) => code);
    return [...seen, wrong, aborted, await count(one)];
  });
  assert.deepEqual(seen, [1, 2, 1, 'SHAPE', 'ABORTED', 3]);
});
