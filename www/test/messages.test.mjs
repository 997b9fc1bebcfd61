// What errors say: everything that is known, nothing twice, and what was probably meant.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { KilimError, Tensor, fromNumbers, load } from '../dist/kilim/node.js';
import { prepareFeeds } from '../dist/modules/feeds.js';
import { model } from './support/onnx.mjs';

const relu = Uint8Array.from(model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2]]], outputs: [['y', [2]]] }));
const start = (options) => load(relu, { worker: false, ...options });

const thrown = (call) => {
  try {
    return call();
  } catch (error) {
    return error;
  }
};

test('a message says all parts that are known, and none twice', () => {
  const error = new KilimError('DTYPE', "input `x`: the element type is not the model's", {
    input: 'x',
    node: '',
    expected: 'float32',
    got: 'int32',
    hint: 'convert it',
  });
  assert.equal(error.message, "input `x`: the element type is not the model's: expected float32; got int32; hint: convert it");
  assert.equal(error.summary, "input `x`: the element type is not the model's");
  assert.equal(String(error), `KilimError: ${error.message}`);
  assert.match(error.stack, /^KilimError: input `x`/);
  assert.deepEqual(Object.keys(error), ['code', 'summary', 'input', 'expected', 'got', 'hint']);
  // A part of a word or number is not the part.
  assert.equal(new KilimError('SHAPE', 'there are 12 of them', { got: '1', expected: '12' }).message, 'there are 12 of them: got 1');
  assert.equal(
    new KilimError('SHAPE', 'they do not fit', { node: 'c1', op: 'Conv', hint: 'reshape' }).message,
    'they do not fit (node `c1`, operator `Conv`); hint: reshape',
  );
  assert.equal(new KilimError('STATE', 'the session is closed').message, 'the session is closed');
});

test("the runtime's errors say all parts, too", async () => {
  const bytes = model({
    nodes: [
      ['Add', ['x', 'x'], ['s']],
      ['Reshape', ['s', 'x'], ['y']],
    ],
    inputs: [['x', [2]]],
    outputs: [['y', [2]]],
  });
  const { message, node, op } = await load(Uint8Array.from(bytes), { backends: ['cpu'], worker: false }).then(
    assert.fail,
    (error) => error,
  );
  for (const part of [node, op]) assert.equal(message.split(part).length, 2, message);
});

test('backends have other names, and names that are almost right', async () => {
  const session = await start({ backends: ['wasm'], keepWeights: true });
  await assert.rejects(session.verify({ x: [1, 2] }, { reference: 'cqu' }), { code: 'NO_BACKEND' });
  assert.equal((await session.verify({ x: [1, 2] }, { reference: 'wasm', candidate: 'cpu' })).reference, 'cpu');
  assert.deepEqual(
    session.report.backends.map(({ id }) => id),
    ['cpu'],
  );
  session.close();
  await assert.rejects(start({ backends: ['webgpu'] }), {
    code: 'DEVICE',
    message: 'the backend wgpu cannot be used: this JavaScript engine has no WebGPU',
  });
  await assert.rejects(start({ backends: ['cpuu'] }), {
    code: 'NO_BACKEND',
    message: 'there is no backend `cpuu`: expected wgpu, cpu, webnn; hint: did you mean `cpu`?',
  });
  await assert.rejects(start({ backends: ['WebGPU'] }), { code: 'NO_BACKEND', hint: 'did you mean `wgpu`?' });
  await assert.rejects(start({ backends: ['npu-of-tomorrow'] }), ({ code, hint }) => code === 'NO_BACKEND' && hint === undefined);
  await assert.rejects(start({ backends: 'cpu' }), {
    code: 'INVALID_VALUE',
    message: "the option `backends` is of another kind: expected an array of strings; got 'cpu'",
  });
});

test('options that there are not, and values of another kind, are named', async () => {
  const cases = [
    [{ executionProviders: ['wasm'] }, '`load` has no option `executionProviders`; hint: did you mean `backends`?'],
    [{ pin: [] }, '`load` has no option `pin`; hint: did you mean `pins`?'],
    [{ onprogress: () => undefined }, '`load` has no option `onprogress`; hint: did you mean `onProgress`?'],
    [{ strict: 1 }, 'the option `strict` is of another kind: expected `true` or `false`; got 1'],
    [{ pins: ['op:Relu=cpu', 5] }, 'the option `pins` is of another kind: expected an array of strings; got an array of length 2'],
    [{ dims: { N: -1 } }, 'the option `dims.N` is of another kind: expected a whole number, zero or more; got -1'],
    [{ schedule: 'soon' }, "the option `schedule` is of another kind: expected `sync` or `overlapped`; got 'soon'"],
    [{ signal: 'now' }, "the option `signal` is of another kind: expected an AbortSignal; got 'now'"],
    [
      { mixedPrecision: { tolerance: 'high', samples: [] } },
      "the option `tolerance` is of another kind: expected a number, zero or more; got 'high'",
    ],
  ];
  for (const [options, message] of cases) await assert.rejects(start(options), { name: 'KilimError', code: 'INVALID_VALUE', message });
  await assert.rejects(start({ quantumLeaps: 1 }), ({ expected }) => expected.startsWith('backends, strict'));
  const session = await start({ backends: ['cpu'], calibration: null, cache: null });
  await assert.rejects(session.run({ x: [1, 2] }, { timout: 5 }), { code: 'INVALID_VALUE', hint: 'did you mean `timeout`?' });
  session.close();
});

test("limits are the library's, by names of JavaScript", async () => {
  const limited = async (limits, backends = ['cpu']) => (await start({ backends, limits })).close();
  const { expected } = await limited({ nothing: 1 }).then(assert.fail, (error) => error);
  const names = expected.split(', ').filter((name) => name !== 'strict');
  await limited('strict');
  await limited({ strict: true, ...Object.fromEntries(names.map((name) => [name, 1e9])) });
  await limited({ operations: Infinity, loadSeconds: 1e21 });
  await assert.rejects(limited({ nodes: 0 }), { code: 'LIMIT', hint: 'the limit `nodes` can be raised' });
  await assert.rejects(limited({ fileBytes: 10 }), { code: 'LIMIT', expected: 'at most 10 bytes' });
  await assert.rejects(limited({ loadSeconds: 0 }), { code: 'ABORTED' });
  await assert.rejects(limited({ node: 5 }), { code: 'INVALID_VALUE', hint: 'did you mean `nodes`?' });
  await assert.rejects(limited({ nodes: -1 }), {
    code: 'INVALID_VALUE',
    message: 'the option `nodes` is of another kind: expected a number, zero or more; got -1',
  });
  await assert.rejects(limited('lax'), {
    code: 'INVALID_VALUE',
    message: "the option `limits` is of another kind: expected `strict` or an object with limits; got 'lax'",
  });
  const library = readFileSync(new URL('../../crates/core/src/limits.rs', import.meta.url), 'utf8');
  // What the library has and the package does not know would be missing here.
  const own = [...library.matchAll(/^ {4}(\w+): \w+ = .*, .*;$/gm)].map(([, name]) =>
    name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()),
  );
  assert.deepEqual(names, own);
});

test('a file that is too large is read no further', async () => {
  const library = readFileSync(new URL('../../crates/core/src/limits.rs', import.meta.url), 'utf8');
  const [, power] = library.match(/file_bytes: u64 = u64::MAX, 1 << (\d+);/);
  const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1000)) });
  const claims = (bytes) => new Response(endless(), { headers: { 'content-length': `${bytes}` } });
  const limited = (source, limits) => load(source, { backends: ['cpu'], limits });
  await assert.rejects(limited(endless(), { fileBytes: 2500 }), {
    code: 'LIMIT',
    got: '3000 bytes',
    hint: 'the limit `fileBytes` can be raised',
  });
  await assert.rejects(limited(claims(5000), { fileBytes: 2500 }), { code: 'LIMIT', got: '5000 bytes' });
  await assert.rejects(limited(claims(2 ** power + 1), 'strict'), { code: 'LIMIT', expected: `at most ${2 ** power} bytes` });
});

test('what came instead of a model is named', async () => {
  const page = new Blob(['<!doctype html><title>a page</title>']);
  await assert.rejects(load(page, { backends: ['cpu'] }), { code: 'UNKNOWN_FORMAT', got: 'an HTML page' });
  const file = new File(['version https://git-lfs.github.com/spec/v1\n'], 'face.onnx');
  await assert.rejects(load(file, { backends: ['cpu'] }), {
    code: 'UNKNOWN_FORMAT',
    message: /^`face.onnx` is not a model of a known format: .*Git LFS pointer/,
  });
  const url = 'data:text/plain,Entry%20not%20found';
  await assert.rejects(load(url, { backends: ['cpu'] }), {
    code: 'UNKNOWN_FORMAT',
    message: new RegExp(`^\`${url}\``),
    got: 'text: “Entry not found”',
  });
});

test("what throws in the caller's own code is the cause", async () => {
  const own = new RangeError('mine');
  const options = {
    get backends() {
      throw own;
    },
  };
  await assert.rejects(load(relu, options), { code: 'INVALID_VALUE', message: 'an option of `load` cannot be read: mine', cause: own });
  await assert.rejects(
    start({
      backends: ['cpu'],
      onProgress() {
        throw own;
      },
    }),
    { code: 'INVALID_VALUE', message: '`onProgress` threw: mine', cause: own },
  );
  const session = await start({ backends: ['cpu'] });
  await assert.rejects(
    session.run({
      get x() {
        throw own;
      },
    }),
    { code: 'INVALID_VALUE', cause: own },
  );
  await assert.rejects(
    session.run({
      x: {
        type: 'float32',
        dims: [2],
        get data() {
          throw own;
        },
      },
    }),
    { code: 'INVALID_VALUE', message: 'input `x` cannot be read: mine', cause: own },
  );
  session.close();
});

const port = (dims, type = 'float32') => [{ name: 'x', type, dims, kind: 'tensor', optional: false }];
const refused = (port, x) => thrown(() => prepareFeeds(port, { x }));

test('dimensions in another order, and those without a batch, are recognised', () => {
  const image = (...dims) => new Tensor('float32', dims);
  const cases = [
    [[1, 3, 4, 5], [1, 4, 5, 3], /channels-last data \(NHWC\): transposed to \[1, 3, 4, 5\]/],
    [['N', 3, 'H', 'W'], [2, 4, 5, 3], /channels-last data \(NHWC\): transposed to \[2, 3, 4, 5\]/],
    [[1, 4, 5, 3], [1, 3, 4, 5], /channels-first data \(NCHW\): transposed to \[1, 4, 5, 3\]/],
    [[3, 4, 5], [4, 5, 3], /channels-last data \(HWC\): transposed to \[3, 4, 5\]/],
    [[1, 3, 4, 5], [3, 4, 5], /batch is missing: give dims \[1, 3, 4, 5\]/],
  ];
  for (const [wanted, given, hint] of cases) {
    const error = refused(port(wanted), image(...given));
    assert.equal(error.code, 'SHAPE');
    assert.match(error.hint, hint);
  }
  assert.equal(refused(port([1, 3, 4, 5]), image(1, 3, 4, 6)).hint, undefined);
});

test('pixels for a model of floats are recognised', () => {
  for (const pixels of [new Uint8ClampedArray(4), new Uint8Array(4), { type: 'uint8', dims: [4], data: new Uint8Array(4) }]) {
    const error = refused(port([4]), pixels);
    assert.deepEqual([error.code, error.expected, error.got], ['DTYPE', 'float32', 'uint8']);
    assert.match(error.hint, /255/);
  }
  assert.equal(refused(port([4]), new Int32Array(4)).hint, undefined);
  assert.deepEqual(refused(port([4], 'uint8'), new Uint8ClampedArray(4))[0].dims, [4]);
});

test('feeds that are no object of inputs are recognised', () => {
  for (const feeds of [new Float32Array(4), [1, 2], new Map([['x', 1]]), 5]) {
    assert.match(thrown(() => prepareFeeds(port([4]), feeds)).message, /by their names: expected \{ x \}; got /);
  }
});

test('64-bit integers are taken as such, and nothing else is', () => {
  assert.deepEqual([...fromNumbers('int64', [3], [1n, 2, -(2n ** 62n)]).data], [1n, 2n, -(2n ** 62n)]);
  assert.equal(thrown(() => fromNumbers('float32', [1], [1n])).code, 'DTYPE');
  assert.equal(thrown(() => fromNumbers('int64', [1], [NaN])).code, 'INVALID_VALUE');
  assert.match(thrown(() => fromNumbers('float32', [2], [[1], [2]])).hint, /flat/);
});

test('sizes that no memory has are limits', () => {
  for (const [type, dims] of [
    ['float32', [2 ** 40]],
    ['string', [2 ** 40]],
    ['int4', [2 ** 50]],
    ['float32', [2 ** 30, 2 ** 30]],
  ]) {
    assert.equal(thrown(() => new Tensor(type, dims)).code, 'LIMIT', type);
  }
  assert.equal(new Tensor('float32', [2 ** 40, 2 ** 40, 0]).data.length, 0);
});
