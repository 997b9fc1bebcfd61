// Operators that a page brings: in JavaScript on the CPU, as WGSL on the GPU, and what goes wrong with them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

// y = relu(scale(x) + x)
const bytes = model({
  nodes: [
    ['Scale', ['x'], ['s'], { domain: 'com.example', floats: { factor: 3 } }],
    ['Add', ['s', 'x'], ['a']],
    ['Relu', ['a'], ['y']],
  ],
  inputs: [['x', [2, 3]]],
  outputs: [['y', [2, 3]]],
});
const feed = [1, -2, 0.5, 4, -0.25, 8];
const want = [4, 0, 2, 16, 0, 32];

const definition = (functions) => `
const count = ({ dims }) => dims.reduce((a, b) => a * b, 1);
export default [{ domain: 'com.example', name: 'Scale', infer: (attributes, [x]) => [x], ${functions} }];`;
const run = 'run: ({ factor }, [x], [y]) => y.data.set(x.data.map((v) => v * factor)),';
const shader = (source) => `shader: ({ factor }, [x], [y]) => ({
  source: \`${source}\`,
  bindings: { x: ['input', 0], y: ['output', 0] },
  parameters: { count: ['u32', count(y)], factor: ['f32', factor] },
  workgroups: [Math.ceil(count(y) / 64), 1, 1],
}),`;
const WGSL = `@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < params.count) { y[id.x] = x[id.x] * params.factor; }
}`;

let written = 0;

const modules = mkdtempSync(join(tmpdir(), 'kilim-operators-'));
const here = packagePage({ folders: [['/modules/', modules]] });
after(() => rmSync(modules, { recursive: true }));

/** The output and where the operator ran, or the error's code, message and node. `module` is the text of one that is served. */
function scaled(module, options) {
  const operators = module === null ? {} : { operators: `/modules/${written++}.js` };
  if (module !== null) writeFileSync(join(modules, `${written - 1}.js`), module);
  return here.page.evaluate(
    async ({ bytes, options, feed }) => {
      let session;
      try {
        session = await kilim.load(new Uint8Array(bytes), options);
        const { y } = await session.run({ x: Float32Array.from(feed) });
        return { y: [...y.data], at: session.report.nodes.find(({ op }) => op === 'Scale')?.backend };
      } catch ({ code, message, node }) {
        return { code, message, node };
      } finally {
        session?.close();
      }
    },
    { bytes: [...bytes], options: { ...options, ...operators }, feed },
  );
}

/** What a comparison of the GPU with the CPU says, or the error's code. */
function verified(module, how, configs = []) {
  writeFileSync(join(modules, `${written++}.js`), module);
  return here.page.evaluate(
    async ({ bytes, operators, feed, how, configs }) => {
      const session = await kilim.load(new Uint8Array(bytes), { backends: ['wgpu', 'cpu'], operators, configs });
      try {
        const { first, nodes } = await session.verify({ x: Float32Array.from(feed) }, how);
        const named = (which) => nodes.filter(({ agreement }) => agreement === which).map(({ name }) => name);
        return { first: first && { name: first.name, op: first.op }, differing: named('differs'), skipped: named('skipped') };
      } catch ({ code }) {
        return code;
      } finally {
        session.close();
      }
    },
    { bytes: [...bytes], operators: `/modules/${written - 1}.js`, feed, how, configs },
  );
}

for (const worker of [true, false]) {
  test(`an operator in JavaScript runs on the CPU, ${worker ? 'in the worker' : 'in the page'}`, async () => {
    assert.deepEqual(await scaled(definition(run), { backends: ['cpu'], worker }), { y: want, at: 'cpu' });
  });
}

test('an operator as WGSL runs on the GPU', async () => {
  assert.deepEqual(await scaled(definition(shader(WGSL)), { backends: ['wgpu'] }), { y: want, at: 'wgpu' });
});

test('only an operator that draws random numbers runs once for each of two equal nodes', async () => {
  const twins = model({
    nodes: [
      ['Draw', ['x'], ['a'], { domain: 'com.example' }],
      ['Draw', ['x'], ['b'], { domain: 'com.example' }],
    ],
    inputs: [['x', [2]]],
    outputs: [
      ['a', [2]],
      ['b', [2]],
    ],
  });
  const drawn = (random) => {
    writeFileSync(
      join(modules, `${written++}.js`),
      `let n = 0;
      export default [{ domain: 'com.example', name: 'Draw', random: ${random}, infer: (_, [x]) => [x], run: (_, [x], [y]) => y.data.fill(n++) }];`,
    );
    return here.page.evaluate(
      async ({ bytes, operators }) => {
        const session = await kilim.load(new Uint8Array(bytes), { backends: ['cpu'], operators });
        const { a, b } = await session.run({ x: new Float32Array(2) });
        session.close();
        return b.data[0] - a.data[0];
      },
      { bytes: [...twins], operators: `/modules/${written - 1}.js` },
    );
  };
  assert.equal(await drawn(false), 0);
  assert.equal(Math.abs(await drawn(true)), 1);
});

test('a node is pinned to a backend', async () => {
  const both = definition(run + shader(WGSL));
  assert.equal((await scaled(both, { backends: ['wgpu', 'cpu'], pins: ['op:Scale=cpu'] })).at, 'cpu');
  assert.equal((await scaled(both, { backends: ['cpu', 'wgpu'], pins: ['node:node0=wgpu'] })).at, 'wgpu');
  assert.equal((await scaled(both, { backends: ['cpu'], pins: ['Scale'] })).code, 'INVALID_VALUE');
});

test('verify names the first node that differs', async () => {
  // The shader multiplies by twice the factor of the function.
  const twice = WGSL.replace('params.factor', '2.0 * params.factor');
  const wrong = definition(run + shader(twice));
  const found = { first: { name: 'node0', op: 'Scale' }, differing: ['node0'], skipped: [] };
  const nothing = { first: null, differing: [], skipped: [] };
  assert.deepEqual(await verified(wrong), found);
  assert.deepEqual(await verified(definition(run + shader(WGSL))), nothing);
  // As the options say, of the comparison and of single backends.
  assert.deepEqual(await verified(wrong, { tolerance: 10 }), nothing);
  assert.deepEqual(await verified(wrong, { candidate: 'cpu' }), nothing);
  assert.deepEqual(await verified(wrong, { reference: 'wgpu' }), nothing);
  assert.deepEqual(await verified(wrong, { reference: 'wgpu', candidate: 'cpu' }), found);
  assert.deepEqual(await verified(wrong, {}, ['wgpu:f16=off', 'cpu:layout=NCHW']), found);
  assert.equal(await verified(wrong, { tolerance: -1 }), 'INVALID_VALUE');
});

test('a strict session runs on its first backend or not at all', async () => {
  const onCpu = definition(run);
  assert.deepEqual(await scaled(onCpu, { backends: ['wgpu', 'cpu'] }), { y: want, at: 'cpu' });
  const refused = await scaled(onCpu, { backends: ['wgpu', 'cpu'], strict: true });
  assert.equal(refused.code, 'NO_BACKEND');
  assert.match(refused.message, /Scale `node0` \(wgpu: /);
});

test('without its definition the operator is listed', async () => {
  const failed = await scaled(null, { backends: ['cpu'] });
  assert.equal(failed.code, 'UNSUPPORTED');
  assert.match(failed.message, /com\.example::Scale/);
});

test('what goes wrong is a typed error', async () => {
  const thrown = await scaled(definition("run: () => { throw new Error('no such luck'); },"), { backends: ['cpu'] });
  assert.equal(thrown.code, 'INVALID_VALUE');
  assert.match(thrown.message, /no such luck/);
  assert.equal(thrown.node, 'node0');
  const late = await scaled(definition('run: async () => {},'), { backends: ['cpu'] });
  assert.match(late.message, /must not be asynchronous/);
  const garbled = await scaled(definition(shader('this is no WGSL')), { backends: ['wgpu'] });
  assert.equal(garbled.code, 'DEVICE');
  assert.equal((await scaled('this is no JavaScript', { backends: ['cpu'] })).code, 'IO');
  assert.equal((await scaled(null, { backends: ['cpu'], operators: '/modules/none.js' })).code, 'IO');
  assert.equal((await scaled('export default 1;', { backends: ['cpu'] })).code, 'INVALID_VALUE');
});
