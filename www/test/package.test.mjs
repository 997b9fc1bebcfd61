// The package in a page: every kind of source, feeds and outputs, errors, aborting and closing, on both backends.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { serve } from './support/server.mjs';

let browser;
let server;
let page;
let problems;

before(async () => {
  browser = await launch();
  server = await serve([['/kilim/', join(www, 'dist', 'kilim')], ['/assets/', join(repository, 'assets')]]);
  ({ page, problems } = await open(browser, `${server.url}/empty`));
  await page.evaluate(async () => {
    globalThis.kilim = await import('/kilim/index.js');
    globalThis.bytes = async () => new Uint8Array(await (await fetch('/assets/digits.onnx')).arrayBuffer());
    // A picture of a digit as the model takes it.
    globalThis.digit = async (n) => {
      const picture = await createImageBitmap(await (await fetch(`/assets/digit-${n}.png`)).blob());
      const context = new OffscreenCanvas(28, 28).getContext('2d');
      context.drawImage(picture, 0, 0);
      return Float32Array.from({ length: 784 }, (_, i) => context.getImageData(0, 0, 28, 28).data[i * 4] / 255);
    };
    globalThis.best = ({ data }) => data.indexOf(Math.max(...data));
    // What a promise was rejected with, as plain data.
    globalThis.failureOf = async (promise) => {
      try {
        await promise;
        return null;
      } catch (error) {
        const { code, message, node, op, input, expected, got, hint } = error;
        return { typed: error instanceof kilim.KilimError && error instanceof Error, code, message, node, op, input, expected, got, hint };
      }
    };
  });
});

after(async () => {
  await browser?.close();
  await server?.close();
  assert.deepEqual(problems, []);
});

for (const [name, backends] of [['WebGPU', ['wgpu', 'cpu']], ['WASM', ['cpu']]]) {
  test(`digits are read on ${name}`, async () => {
    const seen = await page.evaluate(async (backends) => {
      const session = await kilim.load('/assets/digits.onnx', { backends });
      const answers = [];
      for (let n = 0; n < 10; n++) answers.push(best((await session.run({ image: await digit(n) })).probabilities));
      const { inputs, outputs, report } = session;
      session.close();
      return { answers, inputs, outputs, used: [...new Set(report.nodes.map((node) => node.backend))] };
    }, backends);
    assert.deepEqual(seen.answers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert.deepEqual(seen.inputs, [{ name: 'image', kind: 'tensor', optional: false, type: 'float32', dims: ['N', 1, 28, 28] }]);
    assert.equal(seen.outputs[0].name, 'probabilities');
    assert.ok(seen.used.includes(backends[0]), `ran on ${seen.used}`);
  });

  test(`an odd batch is right on ${name}`, async () => {
    const seen = await page.evaluate(async (backends) => {
      const session = await kilim.load('/assets/digits.onnx', { backends });
      const data = new Float32Array(3 * 784);
      for (const [i, n] of [7, 0, 4].entries()) data.set(await digit(n), i * 784);
      const batch = (await session.run({ image: new kilim.Tensor('float32', [3, 1, 28, 28], data) })).probabilities;
      session.close();
      return { dims: batch.dims, answers: [0, 1, 2].map((i) => best({ data: [...batch.data.subarray(i * 10, i * 10 + 10)] })) };
    }, backends);
    assert.deepEqual(seen, { dims: [3, 10], answers: [7, 0, 4] });
  });
}

test('two backends are compared node by node', async () => {
  const seen = await page.evaluate(async () => {
    const calibration = await kilim.calibrate({ backends: ['cpu'] });
    const session = await kilim.load('/assets/digits.onnx', { backends: ['wgpu', 'cpu'], schedule: 'overlapped', calibration });
    const image = await digit(5);
    const answer = best((await session.run({ image })).probabilities);
    const found = await session.verify({ image });
    const calibrated = session.report.backends.map((backend) => [backend.id, backend.calibrated]);
    session.close();
    return { answer, calibrated, ...found };
  });
  assert.equal(seen.answer, 5);
  assert.deepEqual(seen.calibrated, [['wgpu', false], ['cpu', true]]);
  assert.deepEqual([seen.candidate, seen.reference, seen.first], ['wgpu', 'cpu', null]);
  assert.ok(seen.nodes.some((node) => node.op === 'Conv' && node.agreement === 'same'), JSON.stringify(seen.nodes));
  assert.deepEqual(seen.outputs.map((output) => output.agreement), ['same']);
});

for (const backend of ['cpu', 'wgpu']) {
  test(`kernels are measured once, and the cache knows them, on ${backend}`, async () => {
    const seen = await page.evaluate(async (backend) => {
      const load = (options) => kilim.load('/assets/digits.onnx', { backends: [backend], ...options });
      const tuned = async (cache) => {
        const session = await load({ tune: true, cache });
        const answer = best((await session.run({ image: await digit(5) })).probabilities);
        const kept = await session.saveCache();
        const { tuning, cache: ignored } = session.report;
        session.close();
        return { answer, kept, tuning, ignored };
      };
      const first = await tuned();
      const again = await tuned(first.kept);
      const other = await tuned(first.kept.map((byte, i) => (i === 40 ? byte ^ 1 : byte)));
      const rubbish = await failureOf(load({ cache: Uint8Array.from([1, 2, 3]) }));
      const plain = await load({});
      const untuned = plain.report.tuning.length;
      plain.close();
      return { runs: [first, again, other].map(({ answer, tuning, ignored }) => ({ answer, tuning, ignored })), untuned, rubbish: rubbish.code };
    }, backend);
    assert.deepEqual(seen.runs.map(({ answer }) => answer), [5, 5, 5]);
    const [first, again, other] = seen.runs.map(({ tuning }) => tuning);
    assert.ok(first.length > 0 && first.every((entry) => entry.backend === backend), JSON.stringify(first));
    assert.ok(first.every(({ times }) => times.length > 1), JSON.stringify(first));
    assert.deepEqual(again.map(({ algorithm }) => algorithm), first.map(({ algorithm }) => algorithm));
    assert.ok(again.every(({ times }) => times.length === 0), 'measured again');
    assert.ok(other.every(({ times }) => times.length > 1), 'a damaged cache was taken');
    assert.deepEqual(seen.runs.map(({ ignored }) => ignored !== null), [false, false, true]);
    assert.match(seen.runs[2].ignored, /the cache is damaged/);
    assert.equal(seen.rubbish, 'INVALID_VALUE');
    assert.equal(seen.untuned, 0);
  });
}

test('precision is given by name', async () => {
  const seen = await page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], precision: ['op:Conv=float16'] });
    const answer = best((await session.run({ image: await digit(5) })).probabilities);
    const { nodes, precisions } = session.report;
    session.close();
    const wrong = await failureOf(kilim.load('/assets/digits.onnx', { backends: ['cpu'], precision: ['node:none=float16'] }));
    return { answer, wrong: wrong.code, precisions, convolutions: nodes.filter(({ op }) => op === 'Conv').map(({ outputs }) => outputs[0].dtype) };
  });
  assert.equal(seen.answer, 5);
  assert.equal(seen.wrong, 'INVALID_VALUE');
  assert.ok(seen.convolutions.length > 0);
  assert.ok(seen.convolutions.every((dtype) => dtype === 'float16'), seen.convolutions.join());
  assert.deepEqual(seen.precisions.map(({ op, dtype }) => `${op} ${dtype}`), seen.convolutions.map(() => 'Conv float16'));
});

for (const backend of ['cpu', 'wgpu']) {
  test(`mixed precision is chosen within a tolerance, or the report says why not, on ${backend}`, async () => {
    const seen = await page.evaluate(async (backend) => {
      const sample = async (n) => ({ image: new kilim.Tensor('float32', [1, 1, 28, 28], await digit(n)) });
      const samples = [await sample(1), await sample(2)];
      const session = await kilim.load('/assets/digits.onnx', { backends: [backend], mixedPrecision: { tolerance: 0.01, samples } });
      const answer = best((await session.run({ image: await digit(7) })).probabilities);
      const { precision, nodes } = session.report;
      session.close();
      const without = await failureOf(kilim.load('/assets/digits.onnx', { backends: [backend], mixedPrecision: { tolerance: 0.01, samples: [] } }));
      return { answer, precision, without: without.code, half: nodes.filter(({ outputs }) => outputs[0]?.dtype === 'float16').length };
    }, backend);
    assert.equal(seen.answer, 7);
    assert.equal(seen.without, 'INPUT');
    assert.equal(seen.precision.tolerance, 0.01);
    assert.ok(seen.precision.error <= 0.01);
    if (seen.precision.nodes.length > 0) {
      assert.ok(seen.half > 0);
    } else {
      assert.equal(seen.half, 0);
      assert.ok(seen.precision.single.length > 0);
      const reason = backend === 'cpu' ? /^cpu: float16 is not faster on/ : /^wgpu: the adapter has no shader-f16$/;
      assert.ok(seen.precision.single.every((node) => reason.test(node.reason)), JSON.stringify(seen.precision.single));
    }
  });
}

test('a session that spares memory holds less and says the same', async () => {
  const [normal, limit] = await page.evaluate(() => Promise.all(['normal', 'limit'].map(async (memory) => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], memory });
    const answer = best((await session.run({ image: await digit(5) })).probabilities);
    const [{ constantBytes, plannedBytes }] = session.report.backends;
    session.close();
    return { answer, held: constantBytes + plannedBytes };
  })));
  assert.deepEqual([normal.answer, limit.answer], [5, 5]);
  assert.ok(limit.held < normal.held, `${limit.held} of ${normal.held}`);
});

test('single backends are configured', async () => {
  const seen = await page.evaluate(async () => {
    const load = async (configs) => {
      const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], configs });
      const answer = best((await session.run({ image: await digit(4) })).probabilities);
      const { times, report } = session;
      session.close();
      const convolutions = report.nodes.filter(({ op }) => op === 'Conv').map(({ outputs }) => outputs[0].shape);
      return { answer, times: times.length, convolutions };
    };
    const wrong = await failureOf(load(['cpu:layout=NC4HW4']));
    return { usual: await load([]), asked: await load(['cpu:layout=NCHW', 'cpu:timers=on']), wrong: wrong.code };
  });
  assert.deepEqual([seen.usual.answer, seen.asked.answer], [4, 4]);
  assert.equal(seen.usual.times, 0);
  assert.ok(seen.asked.times > 0);
  const [last, first] = [seen.usual.convolutions.at(-1), seen.asked.convolutions.at(-1)];
  assert.deepEqual([last[0], last[3], last[1], last[2]], first, 'channels stand second');
  assert.equal(seen.wrong, 'UNSUPPORTED');
});

for (const kind of ['string', 'URL', 'Uint8Array', 'ArrayBuffer', 'File', 'Blob', 'ReadableStream', 'Response']) {
  test(`a model is loaded from a ${kind}`, async () => {
    const seen = await page.evaluate(async (kind) => {
      const path = '/assets/digits.onnx';
      const make = {
        string: () => path,
        URL: () => new URL(path, location.href),
        Uint8Array: bytes,
        ArrayBuffer: async () => (await bytes()).buffer,
        File: async () => new File([await bytes()], 'digits.onnx'),
        Blob: async () => new Blob([await bytes()]),
        ReadableStream: async () => (await fetch(path)).body,
        Response: () => fetch(path),
      }[kind];
      const source = await make();
      const progress = [];
      const session = await kilim.load(source, { backends: ['cpu'], onProgress: (step) => progress.push(step) });
      const inputs = session.inputs.length;
      session.close();
      return { inputs, kept: source.byteLength ?? null, phases: [...new Set(progress.map(({ phase }) => phase))], last: progress.filter(({ phase }) => phase === 'download').at(-1) };
    }, kind);
    assert.equal(seen.inputs, 1);
    const size = readFileSync(join(repository, 'assets', 'digits.onnx')).length;
    if (kind === 'Uint8Array' || kind === 'ArrayBuffer') {
      assert.equal(seen.kept, size, 'the caller keeps its bytes');
      assert.deepEqual(seen.phases, ['runtime', 'prepare']);
    } else {
      assert.deepEqual(seen.phases, ['runtime', 'download', 'prepare']);
      assert.equal(seen.last.loaded, size);
      assert.equal(seen.last.total, kind === 'ReadableStream' ? undefined : size);
    }
  });
}

test('the runtime may run in the calling thread', async () => {
  const answer = await page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], worker: false });
    const answer = best((await session.run({ image: await digit(5) })).probabilities);
    session.close();
    return answer;
  });
  assert.equal(answer, 5);
});

test('every build gives the same answer, from a binary that the caller brings too', async () => {
  const answers = await page.evaluate(async () => {
    const answers = [];
    for (const variant of ['simd', 'relaxed']) {
      const module = await WebAssembly.compileStreaming(fetch(`/kilim/kilim.${variant}.wasm`));
      for (const wasm of [undefined, `/kilim/kilim.${variant}.wasm`, module]) {
        const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], variant, ...(wasm ? { wasm } : {}) });
        answers.push(best((await session.run({ image: await digit(8) })).probabilities));
        session.close();
      }
    }
    return answers;
  });
  assert.deepEqual(answers, [8, 8, 8, 8, 8, 8]);
});

test('a prepared runtime is taken by the next load', async () => {
  const seen = await page.evaluate(async () => {
    await kilim.prepare();
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const answer = best((await session.run({ image: await digit(2) })).probabilities);
    session.close();
    return answer;
  });
  assert.equal(seen, 2);
});

test('calls of one session wait for each other, and sessions run side by side', async () => {
  const answers = await page.evaluate(async () => {
    const sessions = await Promise.all([1, 2].map(() => kilim.load('/assets/digits.onnx', { backends: ['cpu'] })));
    const images = await Promise.all([0, 1, 2, 3, 4, 5].map((n) => digit(n)));
    const outputs = await Promise.all(images.map((image, i) => sessions[i % 2].run({ image })));
    sessions.forEach((session) => session.close());
    return outputs.map(({ probabilities }) => best(probabilities));
  });
  assert.deepEqual(answers, [0, 1, 2, 3, 4, 5]);
});

test('large inputs stay the caller\'s, and travel in memory that comes back', async () => {
  const seen = await page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const digits = await Promise.all(Array.from({ length: 10 }, (_, n) => digit(n)));
    const all = new Float32Array(20 * 784);
    digits.concat(digits.toReversed()).forEach((pixels, i) => all.set(pixels, i * 784));
    // Parts of one buffer: 10 digits each, 31 KB.
    const parts = [all.subarray(0, 7840), all.subarray(7840)];
    const read = ({ probabilities }) => Array.from({ length: 10 }, (_, i) => best({ data: probabilities.data.subarray(i * 10, i * 10 + 10) }));
    const made = [];
    const { ArrayBuffer: Own } = globalThis;
    globalThis.ArrayBuffer = class extends Own {
      constructor(size) {
        super(size);
        made.push(size);
      }
    };
    const together = (await Promise.all(parts.map((image) => session.run({ image })))).map(read);
    const first = made.length;
    const again = [];
    for (const image of parts) again.push(read(await session.run({ image })));
    globalThis.ArrayBuffer = Own;
    const small = best((await session.run({ image: all.subarray(784 * 3, 784 * 4) })).probabilities);
    session.close();
    return { together, again, small, first, made, left: all.length };
  });
  const rising = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  assert.deepEqual(seen.together, [rising, rising.toReversed()]);
  assert.deepEqual(seen.again, [rising, rising.toReversed()]);
  assert.equal(seen.small, 3);
  assert.equal(seen.left, 20 * 784);
  assert.deepEqual(seen.made, [31360, 31360], 'only the runs that were under way together need memory of their own');
  assert.equal(seen.first, 2);
});

test('a timed run names every node that runs', async () => {
  const seen = await page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    // Many pictures, since a page's clock may step by 0.1 ms.
    const image = new kilim.Tensor('float32', [256, 1, 28, 28]);
    image.data.set(await digit(6));
    const { outputs, nodes } = await session.profile({ image });
    session.close();
    return { answer: best({ data: outputs.probabilities.data.subarray(0, 10) }), nodes, placed: session.report.nodes.filter(({ backend }) => backend === 'cpu').length };
  });
  assert.equal(seen.answer, 6);
  assert.equal(seen.nodes.filter(({ backend }) => backend === 'cpu').length, seen.placed);
  assert.ok(seen.nodes.every(({ seconds }) => seconds >= 0));
  assert.ok(seen.nodes.some(({ seconds }) => seconds > 0));
});

test('without a WebGPU worth having the CPU computes, and the report says why', async () => {
  const seen = await page.evaluate(async () => {
    const answer = async (options) => {
      const session = await kilim.load('/assets/digits.onnx', options);
      const answer = best((await session.run({ image: await digit(5) })).probabilities);
      const { skipped, nodes } = session.report;
      session.close();
      return { answer, skipped, used: [...new Set(nodes.map((node) => node.backend))] };
    };
    const software = await answer({});
    Object.defineProperty(navigator, 'gpu', { configurable: true, value: undefined });
    const none = await answer({ worker: false });
    const asked = await failureOf(answer({ worker: false, backends: ['wgpu'] }));
    delete navigator.gpu;
    return { software, none, asked };
  });
  for (const { answer, used } of [seen.software, seen.none]) {
    assert.equal(answer, 5);
    assert.ok(!used.includes('wgpu') && used.includes('cpu'), used.join());
  }
  assert.deepEqual(seen.software.skipped.map(({ backend }) => backend), ['wgpu']);
  assert.deepEqual(seen.none.skipped, [{ backend: 'wgpu', reason: 'this browser has no WebGPU' }]);
  assert.ok(seen.asked?.typed && ['DEVICE', 'NO_BACKEND'].includes(seen.asked.code), JSON.stringify(seen.asked));
});

test('the report says where nodes run and what is held', async () => {
  const report = await page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    await session.run({ image: await digit(1) });
    session.close();
    return session.report;
  });
  const [cpu] = report.backends;
  assert.equal(cpu.id, 'cpu');
  assert.ok(cpu.constantBytes > 0 && cpu.plannedBytes > 0 && cpu.launches > 0);
  assert.ok(cpu.plannedBytes >= cpu.lowerBoundBytes);
  assert.equal(report.nodesLoaded, 11);
  assert.match(report.threads, /one thread/);
  assert.ok(report.nodes.every(({ op, outputs }) => op && outputs.length > 0));
});

/** Runs `body` in the page with a loaded session and gives what its promise was rejected with. */
function failureWith(body) {
  return page.evaluate(`(async () => {
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
    ['a wrong element type', "(s) => s.run({ image: new kilim.Tensor('int64', [1, 1, 28, 28]) })", { code: 'DTYPE', input: 'image', expected: 'float32', got: 'int64' }],
    ['a wrong array', '(s) => s.run({ image: new Int32Array(784) })', { code: 'DTYPE', input: 'image', expected: 'float32', got: 'int32' }],
    ['a wrong shape', "(s) => s.run({ image: new kilim.Tensor('float32', [1, 3, 28, 28]) })", { code: 'SHAPE', input: 'image', got: '[1, 3, 28, 28]' }],
    ['a wrong number of elements', '(s) => s.run({ image: new Float32Array(783) })', { code: 'SHAPE', input: 'image', got: '783 elements' }],
    ['data that does not fill its dims', "(s) => s.run({ image: { type: 'float32', dims: [1, 1, 28, 28], data: new Float32Array(5) } })", { code: 'SHAPE', got: '5 elements' }],
    ['no tensor at all', '(s) => s.run({ image: null })', { code: 'DTYPE', input: 'image' }],
    ['no inputs at all', '(s) => s.run()', { code: 'INPUT' }],
    ['a tensor without dims', "(s) => s.run({ image: { type: 'float32', data: new Float32Array(784) } })", { code: 'SHAPE', input: 'image' }],
    ['a timeout that is no number', '(s) => s.run({ image: new Float32Array(784) }, { timeout: NaN })', { code: 'INVALID_VALUE' }],
    ['a closed session', '(s) => { s.close(); return s.run({}); }', { code: 'STATE' }],
  ];
  for (const [what, body, expected] of cases) {
    const failure = await failureWith(body);
    assert.ok(failure?.typed, `${what}: ${JSON.stringify(failure)}`);
    for (const [field, value] of Object.entries(expected)) assert.equal(failure[field], value, `${what}: ${field} of ${JSON.stringify(failure)}`);
    assert.ok(failure.message.length > 10, what);
  }
});

test('models that cannot be read are typed errors', async () => {
  const failures = await page.evaluate(async () => {
    const model = await bytes();
    const garbage = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919 + 13) % 251);
    const torn = () => new ReadableStream({
      start(controller) {
        controller.enqueue(model.slice(0, 100));
        controller.error(new Error('the line broke'));
      },
    });
    const sources = {
      empty: new Uint8Array(0), garbage, half: model.slice(0, model.length >> 1), short: model.slice(0, 40), cut: model.slice(0, -1),
      missing: '/assets/no-such-file.onnx', torn: torn(), nothing: null, page: '/empty', address: 'http://:none',
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
  for (const name of ['missing', 'torn', 'nothing', 'address', 'read', 'locked', 'detached', 'gone']) assert.equal(codes[name], 'IO', JSON.stringify(failures[name]));
  for (const name of ['empty', 'garbage', 'half', 'short', 'cut', 'page']) assert.ok(['UNKNOWN_FORMAT', 'INVALID_MODEL', 'INVALID_GRAPH'].includes(codes[name]), `${name}: ${JSON.stringify(failures[name])}`);
});

/** What loading a model of these bytes is rejected with, `null` where it loads. */
const loadFailure = (bytes, options = {}) => page.evaluate(([bytes, options]) => failureOf(kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...options })), [bytes, options]);

const x = [['x', [2]]];
const y = [['y', [2]]];

test('graphs that cannot be are typed errors', async () => {
  const cyclic = await loadFailure(model({ nodes: [['Add', ['x', 'b'], ['a']], ['Relu', ['a'], ['b']], ['Relu', ['b'], ['y']]], inputs: x, outputs: y }));
  assert.equal(cyclic?.code, 'INVALID_GRAPH', JSON.stringify(cyclic));
  const dangling = await loadFailure(model({ nodes: [['Add', ['x', 'nowhere'], ['y']]], inputs: x, outputs: y }));
  assert.ok(['INVALID_GRAPH', 'INVALID_MODEL'].includes(dangling?.code), JSON.stringify(dangling));
  const shapes = await loadFailure(model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', [3], { floats: [1, 2, 3] })] }));
  assert.equal(shapes?.code, 'SHAPE', JSON.stringify(shapes));
  assert.equal(shapes.node, 'node0');
});

test('tensors that are too large for anything are typed errors', async () => {
  for (const dims of [[2 ** 40], [2 ** 32, 2 ** 32], [2 ** 62, 4]]) {
    const failure = await loadFailure(model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', dims)] }));
    assert.ok(['INVALID_MODEL', 'LIMIT'].includes(failure?.code), `${dims}: ${JSON.stringify(failure)}`);
  }
  for (const dims of [[2 ** 40], [2 ** 62, 2 ** 62]]) {
    const failure = await loadFailure(model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', dims]], outputs: [['y', dims]] }));
    assert.equal(failure?.code, 'LIMIT', `${dims}: ${JSON.stringify(failure)}`);
  }
  const wide = await loadFailure(model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2 ** 20, 2 ** 20]]], outputs: [['y', [2 ** 20, 2 ** 20]]] }));
  assert.equal(wide?.code, 'LIMIT', JSON.stringify(wide));
});

test('one error lists all unknown operators with their nodes', async () => {
  const failure = await loadFailure(model({ nodes: [['Frobnicate', ['x'], ['a']], ['Relu', ['a'], ['b']], ['Defenestrate', ['b'], ['y']]], inputs: x, outputs: y }));
  assert.equal(failure?.code, 'UNSUPPORTED');
  for (const word of ['Frobnicate', 'node0', 'Defenestrate', 'node2']) assert.ok(failure.message.includes(word), failure.message);
});

test('data files beside the model are read by name', async () => {
  const bytes = model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', [2], { location: 'weights.bin' })] });
  const sum = await page.evaluate(async (bytes) => {
    const weights = new Blob([Float32Array.from([10, 20])]);
    const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], externalData: { 'weights.bin': weights } });
    const { y } = await session.run({ x: [1, 2] });
    session.close();
    return [...y.data];
  }, bytes);
  assert.deepEqual(sum, [11, 22]);
  const missing = await loadFailure(bytes);
  assert.equal(missing?.code, 'IO', JSON.stringify(missing));
  assert.ok(missing.message.includes('weights.bin'));
});

test('options that name nothing are typed errors', async () => {
  const failures = await page.evaluate(async () => [
    await failureOf(kilim.load('/assets/digits.onnx', { backends: ['npu'] })),
    await failureOf(kilim.load('/assets/digits.onnx', { backends: [] })),
    await failureOf(kilim.load('/assets/digits.onnx', { wasm: '/kilim/no-such-binary.wasm' })),
    await failureOf(kilim.load('/assets/digits.onnx', { wasm: '/kilim/no-such-binary.wasm', worker: false })),
  ]);
  assert.deepEqual(failures.map((failure) => failure?.typed && failure.code), ['NO_BACKEND', 'NO_BACKEND', 'IO', 'IO']);
});

test('options that are something else are typed errors', async () => {
  const options = [
    ['IO', { operators: 'http://:none' }], ['IO', { wasm: 'http://:none' }], ['INVALID_VALUE', { variant: 'fast' }],
    ['INVALID_VALUE', { cache: 'text' }], ['INVALID_VALUE', { calibration: 5 }], ['INVALID_VALUE', { mixedPrecision: { tolerance: 1 } }],
    ['SHAPE', { mixedPrecision: { tolerance: 1, samples: [{ image: {} }] } }], ['INVALID_VALUE', { pins: ['node:nowhere=cpu'] }],
    ['INVALID_VALUE', { schedule: 'soon' }], ['INVALID_VALUE', { memory: 'little' }], ['NO_BACKEND', { configs: ['wgpu:f16=off'] }],
  ];
  const failures = await page.evaluate((options) => Promise.all(options.map(([, more]) => (
    failureOf(kilim.load('/assets/digits.onnx', { backends: ['cpu'], ...more }))
  ))), options);
  for (const [i, [code, more]] of options.entries()) {
    assert.equal(failures[i]?.typed && failures[i].code, code, `${JSON.stringify(more)}: ${JSON.stringify(failures[i])}`);
  }
});

test('verify needs weights that were kept', async () => {
  const bytes = model({ nodes: [['Add', ['x', 'w'], ['y']]], inputs: x, outputs: y, initializers: [tensor('w', [2], { floats: [1, 2] })] });
  const verified = (options) => page.evaluate(async ([bytes, options]) => {
    const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], ...options });
    const failure = await failureOf(session.verify({ x: [1, 2] }));
    session.close();
    return failure?.code ?? null;
  }, [bytes, options]);
  assert.equal(await verified({}), 'STATE');
  assert.equal(await verified({ keepWeights: true }), null);
});

test('loading and running can be aborted', async () => {
  const failures = await page.evaluate(async () => {
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
