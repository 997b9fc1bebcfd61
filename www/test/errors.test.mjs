// What goes wrong in a page: typed errors for feeds, models, graphs and options, aborting and closing.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const here = packagePage();
after(() => assert.deepEqual(here.problems, []));

/** Runs `body` in the page with a loaded session and gives what its promise was rejected with. */
function failureWith(body) {
  return here.page.evaluate(`(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const failure = await failureOf((${body})(session));
    session.close();
    return failure;
  })()`);
}

test('feeds that do not fit are typed errors', async () => {
  const cases = [
    ['a missing input', '(s) => s.run({})', { code: 'INPUT', input: 'image' }],
    ['an unknown input', '(s) => s.run({ picture: new Float32Array(784) })', { code: 'INPUT', input: 'picture', expected: 'image' }],
    [
      'a wrong element type',
      "(s) => s.run({ image: new kilim.Tensor('int64', [1, 1, 28, 28]) })",
      { code: 'DTYPE', input: 'image', expected: 'float32', got: 'int64' },
    ],
    ['a wrong array', '(s) => s.run({ image: new Int32Array(784) })', { code: 'DTYPE', input: 'image', expected: 'float32', got: 'int32' }],
    [
      'a wrong shape',
      "(s) => s.run({ image: new kilim.Tensor('float32', [1, 3, 28, 28]) })",
      { code: 'SHAPE', input: 'image', got: '[1, 3, 28, 28]' },
    ],
    [
      'a wrong number of elements',
      '(s) => s.run({ image: new Float32Array(783) })',
      { code: 'SHAPE', input: 'image', got: '783 elements' },
    ],
    [
      'data that does not fill its dims',
      "(s) => s.run({ image: { type: 'float32', dims: [1, 1, 28, 28], data: new Float32Array(5) } })",
      { code: 'SHAPE', got: '5 elements' },
    ],
    ['no tensor at all', '(s) => s.run({ image: null })', { code: 'DTYPE', input: 'image' }],
    ['no inputs at all', '(s) => s.run()', { code: 'INPUT' }],
    [
      'a tensor without dims',
      "(s) => s.run({ image: { type: 'float32', data: new Float32Array(784) } })",
      { code: 'SHAPE', input: 'image' },
    ],
    ['a timeout that is no number', '(s) => s.run({ image: new Float32Array(784) }, { timeout: NaN })', { code: 'INVALID_VALUE' }],
    ['a closed session', '(s) => { s.close(); return s.run({}); }', { code: 'STATE' }],
  ];
  for (const [what, body, expected] of cases) {
    const failure = await failureWith(body);
    assert.ok(failure?.typed, `${what}: ${JSON.stringify(failure)}`);
    for (const [field, value] of Object.entries(expected))
      assert.equal(failure[field], value, `${what}: ${field} of ${JSON.stringify(failure)}`);
    assert.ok(failure.message.length > 10, what);
  }
});

test('models that cannot be read are typed errors', async () => {
  const failures = await here.page.evaluate(async () => {
    const model = await bytes();
    const garbage = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919 + 13) % 251);
    const torn = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(model.slice(0, 100));
          controller.error(new Error('the line broke'));
        },
      });
    const sources = {
      empty: new Uint8Array(0),
      garbage,
      half: model.slice(0, model.length >> 1),
      short: model.slice(0, 40),
      cut: model.slice(0, -1),
      missing: '/assets/no-such-file.onnx',
      torn: torn(),
      nothing: null,
      page: '/empty',
      address: 'http://:none',
    };
    const response = await fetch('/assets/digits.onnx');
    await response.arrayBuffer();
    sources.read = response;
    sources.locked = (await fetch('/assets/digits.onnx')).body;
    sources.locked.getReader();
    sources.detached = model.slice().buffer;
    structuredClone(sources.detached, { transfer: [sources.detached] });
    sources.gone = new Uint8Array(model);
    structuredClone(sources.gone.buffer, { transfer: [sources.gone.buffer] });
    const failures = {};
    for (const [name, source] of Object.entries(sources)) failures[name] = await failureOf(kilim.load(source, { backends: ['cpu'] }));
    return failures;
  });
  const codes = Object.fromEntries(Object.entries(failures).map(([name, failure]) => [name, failure?.typed && failure.code]));
  for (const name of ['missing', 'torn', 'nothing', 'address', 'read', 'locked', 'detached', 'gone'])
    assert.equal(codes[name], 'IO', JSON.stringify(failures[name]));
  for (const name of ['empty', 'garbage', 'half', 'short', 'cut', 'page'])
    assert.ok(['UNKNOWN_FORMAT', 'INVALID_MODEL', 'INVALID_GRAPH'].includes(codes[name]), `${name}: ${JSON.stringify(failures[name])}`);
});

/** What loading a model of these bytes is rejected with, `null` where it loads. */
const loadFailure = (bytes, options = {}) =>
  here.page.evaluate(
    ([bytes, options]) => failureOf(kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...options })),
    [bytes, options],
  );

const x = [['x', [2]]];
const y = [['y', [2]]];

test('graphs that cannot be are typed errors', async () => {
  const cyclic = await loadFailure(
    model({
      nodes: [
        ['Add', ['x', 'b'], ['a']],
        ['Relu', ['a'], ['b']],
        ['Relu', ['b'], ['y']],
      ],
      inputs: x,
      outputs: y,
    }),
  );
  assert.equal(cyclic?.code, 'INVALID_GRAPH', JSON.stringify(cyclic));
  const dangling = await loadFailure(model({ nodes: [['Add', ['x', 'nowhere'], ['y']]], inputs: x, outputs: y }));
  assert.ok(['INVALID_GRAPH', 'INVALID_MODEL'].includes(dangling?.code), JSON.stringify(dangling));
  const shapes = await loadFailure(
    model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', [3], { floats: [1, 2, 3] })] }),
  );
  assert.equal(shapes?.code, 'SHAPE', JSON.stringify(shapes));
  assert.equal(shapes.node, 'node0');
});

test('tensors that are too large for anything are typed errors', async () => {
  for (const dims of [[2 ** 40], [2 ** 32, 2 ** 32], [2 ** 62, 4]]) {
    const failure = await loadFailure(
      model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', dims)] }),
    );
    assert.ok(['INVALID_MODEL', 'LIMIT'].includes(failure?.code), `${dims}: ${JSON.stringify(failure)}`);
  }
  for (const dims of [[2 ** 40], [2 ** 62, 2 ** 62]]) {
    const failure = await loadFailure(model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', dims]], outputs: [['y', dims]] }));
    assert.equal(failure?.code, 'LIMIT', `${dims}: ${JSON.stringify(failure)}`);
  }
  const wide = await loadFailure(
    model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2 ** 20, 2 ** 20]]], outputs: [['y', [2 ** 20, 2 ** 20]]] }),
  );
  assert.equal(wide?.code, 'LIMIT', JSON.stringify(wide));
});

test('one error lists all unknown operators with their nodes', async () => {
  const failure = await loadFailure(
    model({
      nodes: [
        ['Frobnicate', ['x'], ['a']],
        ['Relu', ['a'], ['b']],
        ['Defenestrate', ['b'], ['y']],
      ],
      inputs: x,
      outputs: y,
    }),
  );
  assert.equal(failure?.code, 'UNSUPPORTED');
  for (const word of ['Frobnicate', 'node0', 'Defenestrate', 'node2']) assert.ok(failure.message.includes(word), failure.message);
});

test('options that name nothing are typed errors', async () => {
  const failures = await here.page.evaluate(async () => [
    await failureOf(kilim.load('/assets/digits.onnx', { backends: ['npu'] })),
    await failureOf(kilim.load('/assets/digits.onnx', { backends: [] })),
    await failureOf(kilim.load('/assets/digits.onnx', { wasm: '/kilim/no-such-binary.wasm' })),
    await failureOf(kilim.load('/assets/digits.onnx', { wasm: '/kilim/no-such-binary.wasm', worker: false })),
  ]);
  assert.deepEqual(
    failures.map((failure) => failure?.typed && failure.code),
    ['NO_BACKEND', 'NO_BACKEND', 'IO', 'IO'],
  );
});

test('options that are something else are typed errors', async () => {
  const options = [
    ['IO', { operators: 'http://:none' }],
    ['IO', { wasm: 'http://:none' }],
    ['INVALID_VALUE', { variant: 'fast' }],
    ['INVALID_VALUE', { cache: 'text' }],
    ['INVALID_VALUE', { calibration: 5 }],
    ['INVALID_VALUE', { mixedPrecision: { tolerance: 1 } }],
    ['SHAPE', { mixedPrecision: { tolerance: 1, samples: [{ image: {} }] } }],
    ['INVALID_VALUE', { pins: ['node:nowhere=cpu'] }],
    ['INVALID_VALUE', { schedule: 'soon' }],
    ['INVALID_VALUE', { memory: 'little' }],
    ['NO_BACKEND', { configs: ['wgpu:f16=off'] }],
  ];
  const failures = await here.page.evaluate(
    (options) => Promise.all(options.map(([, more]) => failureOf(kilim.load('/assets/digits.onnx', { backends: ['cpu'], ...more })))),
    options,
  );
  for (const [i, [code, more]] of options.entries()) {
    assert.equal(failures[i]?.typed && failures[i].code, code, `${JSON.stringify(more)}: ${JSON.stringify(failures[i])}`);
  }
});

test('verify needs weights that were kept', async () => {
  const bytes = model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', [2], { floats: [1, 2] })] });
  const verified = (options) =>
    here.page.evaluate(
      async ([bytes, options]) => {
        const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...options });
        const failure = await failureOf(session.verify({ x: [1, 2] }));
        session.close();
        return failure?.code ?? null;
      },
      [bytes, options],
    );
  assert.equal(await verified({}), 'STATE');
  assert.equal(await verified({ keepWeights: true }), null);
});

test('loading and running can be aborted', async () => {
  const failures = await here.page.evaluate(async () => {
    const aborted = AbortSignal.abort();
    const later = () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 0);
      return controller.signal;
    };
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const image = await digit(3);
    const many = new kilim.Tensor('float32', [256, 1, 28, 28]);
    // The last run waits for these, and so is under way when it is aborted.
    const busy = [1, 2, 3].map(() => session.run({ image: many }));
    const waiting = failureOf(session.run({ image }, { signal: later() }));
    const failures = [
      await waiting,
      await failureOf(session.run({ image }, { signal: aborted })),
      await failureOf(kilim.load('/assets/digits.onnx', { signal: aborted })),
      await failureOf(kilim.load('/assets/digits.onnx', { signal: later() })),
    ];
    await Promise.all(busy);
    const answer = best((await session.run({ image })).probabilities);
    session.close();
    return { codes: failures.map((failure) => failure?.typed && failure.code), answer };
  });
  assert.deepEqual(failures, { codes: ['ABORTED', 'ABORTED', 'ABORTED', 'ABORTED'], answer: 3 });
});

test('closing rejects what is under way', async () => {
  const failure = await failureWith('(s) => { const run = s.run({ image: new Float32Array(784) }); s.close(); return run; }');
  assert.equal(failure?.code, 'STATE');
});
