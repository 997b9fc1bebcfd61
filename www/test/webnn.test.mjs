// The backend `webnn`: each operator that it takes beside the CPU, on a stand-in of the API that computes in float64, and what it says where a
// browser has none.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const here = packagePage({
  folders: [
    ['/support/', join(www, 'test', 'support')],
    ...(process.env.KILIM_SHARED ? [['/models/', join(process.env.KILIM_SHARED, 'models')]] : []),
  ],
  opened: (page) => page.evaluate(async () => (await import('/support/webnn.mjs')).install()),
});

/** What a model gives on WebNN in this thread, and on the CPU, for numbers between -2 and 2, or 0.1 and 2. */
const compared = (bytes, { positive = false, options = {} } = {}) =>
  here.page.evaluate(
    async ({ bytes, positive, options }) => {
      const model = typeof bytes === 'string' ? new Uint8Array(await (await fetch(bytes)).arrayBuffer()) : new Uint8Array(bytes);
      const run = async (backends) => {
        const session = await kilim.load(model, { backends, worker: false, ...(backends.length > 1 && options) });
        const feeds = session.inputs.map(({ name, dims }, k) => {
          const sizes = dims.map((d) => (typeof d === 'number' ? d : 1));
          const data = Float32Array.from({ length: sizes.reduce((a, b) => a * b, 1) }, (_, i) => {
            const wave = Math.sin(1 + 1.7 * i + k);
            return positive ? 1.05 + 0.95 * wave : 2 * wave;
          });
          return [name, { type: 'float32', dims: sizes, data }];
        });
        const outputs = await session.run(Object.fromEntries(feeds));
        const { nodes } = session.report;
        session.close();
        return { outputs: Object.entries(outputs).map(([name, { dims, data }]) => [name, [...dims], [...data]]), nodes };
      };
      globalThis.dispatched = 0;
      const mine = await run(['webnn', 'cpu']);
      const cpu = await run(['cpu']);
      let most = 0;
      for (const [i, [name, dims, data]] of cpu.outputs.entries()) {
        const [other, otherDims, otherData] = mine.outputs[i];
        if (other !== name || otherDims.join() !== dims.join()) return { failed: `${other} ${otherDims}, not ${name} ${dims}` };
        const scale = Math.max(1, ...data.map(Math.abs));
        for (const [j, x] of data.entries()) if (x !== otherData[j]) most = Math.max(most, Math.abs(x - otherData[j]) / scale || Infinity);
      }
      return {
        most,
        dispatched: globalThis.dispatched,
        at: mine.nodes.map(({ op, backend }) => `${op} ${backend}`),
        refusals: mine.nodes.flatMap(({ op, refusals }) => refusals.map(({ backend, reason }) => `${backend} ${op}: ${reason}`)),
      };
    },
    { bytes: typeof bytes === 'string' ? bytes : [...bytes], positive, options },
  );

const x4 = [['x', [1, 4, 6, 5]]];
const some = (n, factor = 1) => Array.from({ length: n }, (_, i) => factor * Math.cos(2.3 * i));
const plus = (n) => Array.from({ length: n }, (_, i) => 0.5 + 0.3 * Math.cos(i));
const weights = (dims) => tensor('w', dims, { floats: some(dims.reduce((a, b) => a * b, 1)) });
const numbers = (name, ...list) => tensor(name, [list.length], { type: 'int64', data: BigInt64Array.from(list, BigInt) });
const one = (op, inputs, about = {}, parts = {}) => ({ nodes: [[op, inputs, ['y'], about]], inputs: x4, outputs: [['y', null]], ...parts });

/** Models of one node each. What an operator is fused with comes behind it. */
const CASES = {
  ...Object.fromEntries(
    ['Abs', 'Ceil', 'Cos', 'Elu', 'Erf', 'Exp', 'Floor', 'HardSigmoid', 'HardSwish', 'LeakyRelu', 'Neg', 'Relu', 'Sigmoid', 'Sign', 'Sin']
      .concat(['Softplus', 'Softsign', 'Tan', 'Tanh'])
      .map((op) => [op, one(op, ['x'])]),
  ),
  ...Object.fromEntries(['Log', 'Reciprocal', 'Sqrt'].map((op) => [op, { ...one(op, ['x']), positive: true }])),
  Gelu: one('Gelu', ['x'], {}, { opset: 20 }),
  ...Object.fromEntries(
    ['Add', 'Sub', 'Mul', 'Max', 'Min'].map((op) => [op, one(op, ['x', 'b'], {}, { inputs: [...x4, ['b', [4, 1, 5]]] })]),
  ),
  ...Object.fromEntries(['Div', 'Pow'].map((op) => [op, { ...one(op, ['x', 'b'], {}, { inputs: [...x4, ['b', [5]]] }), positive: true }])),
  PRelu: one('PRelu', ['x', 'w'], {}, { initializers: [weights([4, 1, 1])] }),
  Clip: one(
    'Clip',
    ['x', 'low', 'high'],
    {},
    { initializers: [tensor('low', [], { floats: [-0.5] }), tensor('high', [], { floats: [1] })] },
  ),
  Conv: one(
    'Conv',
    ['x', 'w', 'b'],
    { ints: { strides: [2, 1], pads: [1, 0, 1, 2] } },
    { initializers: [weights([6, 4, 3, 2]), tensor('b', [6], { floats: some(6) })] },
  ),
  'Conv of groups': one('Conv', ['x', 'w'], { int: { group: 2 }, ints: { dilations: [2, 1] } }, { initializers: [weights([4, 2, 2, 2])] }),
  'Conv of SAME_LOWER': one('Conv', ['x', 'w'], { text: { auto_pad: 'SAME_LOWER' } }, { initializers: [weights([3, 4, 2, 4])] }),
  'Conv with Relu': {
    nodes: [
      ['Conv', ['x', 'w'], ['c'], { text: { auto_pad: 'SAME_UPPER' }, ints: { strides: [2, 2] } }],
      ['Clip', ['c', 'low', 'high'], ['y']],
    ],
    inputs: x4,
    outputs: [['y', null]],
    initializers: [weights([3, 4, 3, 3]), tensor('low', [], { floats: [0] }), tensor('high', [], { floats: [6] })],
  },
  ConvTranspose: one(
    'ConvTranspose',
    ['x', 'w'],
    { int: { group: 2 }, ints: { strides: [2, 2], pads: [1, 0, 0, 1], output_padding: [1, 0] } },
    { initializers: [weights([4, 3, 3, 2])] },
  ),
  MaxPool: one('MaxPool', ['x'], { ints: { kernel_shape: [3, 2], strides: [2, 2], pads: [1, 0, 1, 1] }, int: { ceil_mode: 1 } }),
  AveragePool: one('AveragePool', ['x'], { ints: { kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1] } }),
  Gemm: one(
    'Gemm',
    ['x', 'w', 'c'],
    { floats: { alpha: 0.5, beta: 2 }, int: { transA: 1, transB: 1 } },
    { inputs: [['x', [4, 3]]], initializers: [weights([5, 4]), tensor('c', [3, 1], { floats: some(3) })] },
  ),
  MatMul: one('MatMul', ['x', 'b'], {}, { inputs: [...x4, ['b', [4, 5, 3]]] }),
  Softmax: one('Softmax', ['x'], { int: { axis: 1 } }),
  BatchNormalization: one(
    'BatchNormalization',
    ['x', 's', 'b', 'm', 'v'],
    {},
    { initializers: ['s', 'b', 'm', 'v'].map((name) => tensor(name, [4], { floats: plus(4) })) },
  ),
  InstanceNormalization: one(
    'InstanceNormalization',
    ['x', 's', 'b'],
    {},
    { initializers: ['s', 'b'].map((name) => tensor(name, [4], { floats: plus(4) })) },
  ),
  LayerNormalization: one(
    'LayerNormalization',
    ['x', 's', 'b'],
    {},
    { initializers: ['s', 'b'].map((name) => tensor(name, [5], { floats: plus(5) })) },
  ),
  Transpose: one('Transpose', ['x'], { ints: { perm: [0, 2, 3, 1] } }),
  Concat: one('Concat', ['x', 'b', 'x'], { int: { axis: -3 } }, { inputs: [...x4, ['b', [1, 2, 6, 5]]] }),
  Slice: one(
    'Slice',
    ['x', 'from', 'to', 'axes'],
    {},
    { initializers: [numbers('from', -3, 1), numbers('to', 100, -1), numbers('axes', 2, -1)] },
  ),
  Split: {
    nodes: [['Split', ['x', 'sizes'], ['y', 'z'], { int: { axis: 1 } }]],
    inputs: x4,
    outputs: [
      ['y', null],
      ['z', null],
    ],
    initializers: [numbers('sizes', 1, 3)],
  },
  Expand: one('Expand', ['x', 'shape'], {}, { inputs: [['x', [4, 1, 5]]], initializers: [numbers('shape', 2, 1, 3, 1)] }),
  Tile: one('Tile', ['x', 'times'], {}, { initializers: [numbers('times', 1, 2, 1, 3)] }),
  Pad: one(
    'Pad',
    ['x', 'pads', 'value'],
    {},
    { initializers: [numbers('pads', 0, 1, 0, 2, 0, 0, 1, 1), tensor('value', [], { floats: [0.7] })] },
  ),
  'Pad by reflection': one(
    'Pad',
    ['x', 'pads'],
    { text: { mode: 'reflect' } },
    { initializers: [numbers('pads', 0, 0, 1, 2, 0, 0, 2, 1)] },
  ),
  'Pad by the edge': one('Pad', ['x', 'pads'], { text: { mode: 'edge' } }, { initializers: [numbers('pads', 0, 1, 1, 2, 0, 0, 2, 1)] }),
  'Resize, linear': one(
    'Resize',
    ['x', '', 'scales'],
    { text: { mode: 'linear' } },
    { initializers: [tensor('scales', [4], { floats: [1, 1, 2, 3] })] },
  ),
  'Resize, nearest': one(
    'Resize',
    ['x', '', 'scales'],
    { text: { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' } },
    { initializers: [tensor('scales', [4], { floats: [1, 1, 3, 2] })] },
  ),
  ...Object.fromEntries(
    ['L1', 'L2', 'LogSumExp', 'Max', 'Mean', 'Min', 'Prod', 'SumSquare', 'Sum'].map((kind) => [
      `Reduce${kind}`,
      one(`Reduce${kind}`, ['x', 'axes'], { int: { keepdims: kind.length % 2 } }, { opset: 18, initializers: [numbers('axes', -1, 1)] }),
    ]),
  ),
  ReduceLogSum: { ...one('ReduceLogSum', ['x'], {}, { opset: 18 }), positive: true },
};

for (const [name, { positive, ...parts }] of Object.entries(CASES)) {
  test(`${name} on WebNN is what it is on the CPU`, async () => {
    const got = await compared(model(parts), { positive, options: { strict: true } });
    assert.ok(got.dispatched > 0, JSON.stringify(got));
    assert.ok(got.most <= 2e-6, `the largest difference is ${got.most}`);
  });
}

test('what WebNN does not take has a reason', async () => {
  const reasons = async (parts) => (await compared(model(parts))).refusals.join();
  assert.match(
    await reasons(one('CumSum', ['x', 'axis'], {}, { initializers: [tensor('axis', [], { type: 'int64', data: BigInt64Array.of(1n) })] })),
    /webnn CumSum: no operator CumSum/,
  );
  assert.match(await reasons(one('Abs', ['x'], {}, { inputs: [['x', [4, 0]]] })), /^$|without elements/);
  assert.match(
    await reasons(one('Conv', ['x', 'w'], {}, { inputs: [['x', [1, 4, 6]]], initializers: [weights([3, 4, 2])] })),
    /only two spatial dimensions/,
  );
  assert.match(await reasons(one('Round', ['x'])), /webnn Round: no operator Round/);
  assert.match(
    await reasons(
      one('Resize', ['x', '', 'scales'], { text: { mode: 'cubic' } }, { initializers: [tensor('scales', [4], { floats: [1, 1, 2, 2] })] }),
    ),
    /linear by half pixels/,
  );
  // The API's own words.
  assert.match(
    await reasons(one('AveragePool', ['x'], { ints: { kernel_shape: [2, 2], dilations: [2, 1] } }, { opset: 19 })),
    /averages have no dilations/,
  );
});

test('a network for pictures runs on WebNN and the CPU', async () => {
  const { most, at, dispatched } = await compared('/assets/digits.onnx', { options: { pins: ['op:Conv=webnn', 'op:Gemm=webnn'] } });
  assert.equal(at.filter((where) => where === 'Conv webnn').length, 3);
  assert.equal(at.filter((where) => where === 'Gemm webnn').length, 2);
  assert.ok(dispatched > 0 && most <= 1e-5, `the largest difference is ${most}`);
});

test('a browser without WebNN says so', async () => {
  const failed = async (flags, worker) => {
    const browser = await launch(flags);
    try {
      const { page } = await open(browser, `${here.server.url}/empty`);
      return await page.evaluate(async (worker) => {
        const kilim = await import('/kilim/index.js');
        const bytes = new Uint8Array(await (await fetch('/assets/digits.onnx')).arrayBuffer());
        // A real one may be there by the flag: then it runs.
        const session = await kilim.load(bytes, { backends: ['webnn', 'cpu'], worker }).catch(({ code, message }) => ({ code, message }));
        return 'code' in session ? session : { message: 'it runs' };
      }, worker);
    } finally {
      await browser.close();
    }
  };
  for (const worker of [true, false]) {
    const without = await failed([], worker);
    assert.equal(without.code, 'DEVICE');
    assert.match(without.message, /`webnn` cannot be used: this browser has no WebNN/);
    // With the flag Chromium has the interface; whether a device is behind it is the platform's to say.
    const { message } = await failed(['--enable-features=WebMachineLearningNeuralNetwork'], worker);
    assert.match(message, /`webnn` cannot be used: (?!this browser has no WebNN)|it runs/);
  }
});
