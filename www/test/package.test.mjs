// The package in a page: every kind of source, feeds and outputs, on both backends.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { repository } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const here = packagePage();
after(() => assert.deepEqual(here.problems, []));

for (const [name, backends] of [
  ['WebGPU', ['wgpu', 'cpu']],
  ['WASM', ['cpu']],
]) {
  test(`digits are read on ${name}`, async () => {
    const seen = await here.page.evaluate(async (backends) => {
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
    const seen = await here.page.evaluate(async (backends) => {
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
  const seen = await here.page.evaluate(async () => {
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
  assert.deepEqual(seen.calibrated, [
    ['wgpu', false],
    ['cpu', true],
  ]);
  assert.deepEqual([seen.candidate, seen.reference, seen.first], ['wgpu', 'cpu', null]);
  assert.ok(
    seen.nodes.some((node) => node.op === 'Conv' && node.agreement === 'same'),
    JSON.stringify(seen.nodes),
  );
  assert.deepEqual(
    seen.outputs.map((output) => output.agreement),
    ['same'],
  );
});

for (const backend of ['cpu', 'wgpu']) {
  test(`kernels are measured once, and the cache knows them, on ${backend}`, async () => {
    const seen = await here.page.evaluate(async (backend) => {
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
      return {
        runs: [first, again, other].map(({ answer, tuning, ignored }) => ({ answer, tuning, ignored })),
        untuned,
        rubbish: rubbish.code,
      };
    }, backend);
    assert.deepEqual(
      seen.runs.map(({ answer }) => answer),
      [5, 5, 5],
    );
    const [first, again, other] = seen.runs.map(({ tuning }) => tuning);
    assert.ok(first.length > 0 && first.every((entry) => entry.backend === backend), JSON.stringify(first));
    assert.ok(
      first.every(({ times }) => times.length > 1),
      JSON.stringify(first),
    );
    assert.deepEqual(
      again.map(({ algorithm }) => algorithm),
      first.map(({ algorithm }) => algorithm),
    );
    assert.ok(
      again.every(({ times }) => times.length === 0),
      'measured again',
    );
    assert.ok(
      other.every(({ times }) => times.length > 1),
      'a damaged cache was taken',
    );
    assert.deepEqual(
      seen.runs.map(({ ignored }) => ignored !== null),
      [false, false, true],
    );
    assert.match(seen.runs[2].ignored, /the cache is damaged/);
    assert.equal(seen.rubbish, 'INVALID_VALUE');
    assert.equal(seen.untuned, 0);
  });
}

test('precision is given by name', async () => {
  const seen = await here.page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], precision: ['op:Conv=float16'] });
    const answer = best((await session.run({ image: await digit(5) })).probabilities);
    const { nodes, precisions } = session.report;
    session.close();
    const wrong = await failureOf(kilim.load('/assets/digits.onnx', { backends: ['cpu'], precision: ['node:none=float16'] }));
    return {
      answer,
      wrong: wrong.code,
      precisions,
      convolutions: nodes.filter(({ op }) => op === 'Conv').map(({ outputs }) => outputs[0].dtype),
    };
  });
  assert.equal(seen.answer, 5);
  assert.equal(seen.wrong, 'INVALID_VALUE');
  assert.ok(seen.convolutions.length > 0);
  assert.ok(
    seen.convolutions.every((dtype) => dtype === 'float16'),
    seen.convolutions.join(),
  );
  assert.deepEqual(
    seen.precisions.map(({ op, dtype }) => `${op} ${dtype}`),
    seen.convolutions.map(() => 'Conv float16'),
  );
});

for (const backend of ['cpu', 'wgpu']) {
  test(`mixed precision is chosen within a tolerance, or the report says why not, on ${backend}`, async () => {
    const seen = await here.page.evaluate(async (backend) => {
      const sample = async (n) => ({ image: new kilim.Tensor('float32', [1, 1, 28, 28], await digit(n)) });
      const samples = [await sample(1), await sample(2)];
      const session = await kilim.load('/assets/digits.onnx', { backends: [backend], mixedPrecision: { tolerance: 0.01, samples } });
      const answer = best((await session.run({ image: await digit(7) })).probabilities);
      const { precision, nodes } = session.report;
      session.close();
      const without = await failureOf(
        kilim.load('/assets/digits.onnx', { backends: [backend], mixedPrecision: { tolerance: 0.01, samples: [] } }),
      );
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
      assert.ok(
        seen.precision.single.every((node) => reason.test(node.reason)),
        JSON.stringify(seen.precision.single),
      );
    }
  });
}

test('a session that spares memory holds less and says the same', async () => {
  const [normal, limit] = await here.page.evaluate(() =>
    Promise.all(
      ['normal', 'limit'].map(async (memory) => {
        const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], memory });
        const answer = best((await session.run({ image: await digit(5) })).probabilities);
        const [{ constantBytes, plannedBytes }] = session.report.backends;
        session.close();
        return { answer, held: constantBytes + plannedBytes };
      }),
    ),
  );
  assert.deepEqual([normal.answer, limit.answer], [5, 5]);
  assert.ok(limit.held < normal.held, `${limit.held} of ${normal.held}`);
});

test('single backends are configured', async () => {
  const seen = await here.page.evaluate(async () => {
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
    const seen = await here.page.evaluate(async (kind) => {
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
      return {
        inputs,
        kept: source.byteLength ?? null,
        phases: [...new Set(progress.map(({ phase }) => phase))],
        last: progress.filter(({ phase }) => phase === 'download').at(-1),
      };
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
  const answer = await here.page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'], worker: false });
    const answer = best((await session.run({ image: await digit(5) })).probabilities);
    session.close();
    return answer;
  });
  assert.equal(answer, 5);
});

test('every build gives the same answer, from a binary that the caller brings too', async () => {
  const answers = await here.page.evaluate(async () => {
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
  const seen = await here.page.evaluate(async () => {
    await kilim.prepare();
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const answer = best((await session.run({ image: await digit(2) })).probabilities);
    session.close();
    return answer;
  });
  assert.equal(seen, 2);
});

test('calls of one session wait for each other, and sessions run side by side', async () => {
  const answers = await here.page.evaluate(async () => {
    const sessions = await Promise.all([1, 2].map(() => kilim.load('/assets/digits.onnx', { backends: ['cpu'] })));
    const images = await Promise.all([0, 1, 2, 3, 4, 5].map((n) => digit(n)));
    const outputs = await Promise.all(images.map((image, i) => sessions[i % 2].run({ image })));
    sessions.forEach((session) => session.close());
    return outputs.map(({ probabilities }) => best(probabilities));
  });
  assert.deepEqual(answers, [0, 1, 2, 3, 4, 5]);
});

test("large inputs stay the caller's, and travel in memory that comes back", async () => {
  const seen = await here.page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    const digits = await Promise.all(Array.from({ length: 10 }, (_, n) => digit(n)));
    const all = new Float32Array(20 * 784);
    digits.concat(digits.toReversed()).forEach((pixels, i) => all.set(pixels, i * 784));
    // Parts of one buffer: 10 digits each, 31 KB.
    const parts = [all.subarray(0, 7840), all.subarray(7840)];
    const read = ({ probabilities }) =>
      Array.from({ length: 10 }, (_, i) => best({ data: probabilities.data.subarray(i * 10, i * 10 + 10) }));
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
  const seen = await here.page.evaluate(async () => {
    const session = await kilim.load('/assets/digits.onnx', { backends: ['cpu'] });
    // Many pictures, since a page's clock may step by 0.1 ms.
    const image = new kilim.Tensor('float32', [256, 1, 28, 28]);
    image.data.set(await digit(6));
    const { outputs, nodes } = await session.profile({ image });
    session.close();
    return {
      answer: best({ data: outputs.probabilities.data.subarray(0, 10) }),
      nodes,
      placed: session.report.nodes.filter(({ backend }) => backend === 'cpu').length,
    };
  });
  assert.equal(seen.answer, 6);
  assert.equal(seen.nodes.filter(({ backend }) => backend === 'cpu').length, seen.placed);
  assert.ok(seen.nodes.every(({ seconds }) => seconds >= 0));
  assert.ok(seen.nodes.some(({ seconds }) => seconds > 0));
});

test('without a WebGPU worth having the CPU computes, and the report says why', async () => {
  const seen = await here.page.evaluate(async () => {
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
  assert.deepEqual(
    seen.software.skipped.map(({ backend }) => backend),
    ['wgpu'],
  );
  assert.deepEqual(seen.none.skipped, [{ backend: 'wgpu', reason: 'this browser has no WebGPU' }]);
  assert.ok(seen.asked?.typed && ['DEVICE', 'NO_BACKEND'].includes(seen.asked.code), JSON.stringify(seen.asked));
});

test('the report says where nodes run and what is held', async () => {
  const report = await here.page.evaluate(async () => {
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

test('data files beside the model are read by name', async () => {
  const bytes = model({
    nodes: [['Add', ['x', 'w'], ['y']]],
    inputs: [['x', [2]]],
    outputs: [['y', [2]]],
    initializers: [tensor('w', [2], { location: 'weights.bin' })],
  });
  const sum = await here.page.evaluate(async (bytes) => {
    const weights = new Blob([Float32Array.from([10, 20])]);
    const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'], externalData: { 'weights.bin': weights } });
    const { y } = await session.run({ x: [1, 2] });
    session.close();
    return [...y.data];
  }, bytes);
  assert.deepEqual(sum, [11, 22]);
  const missing = await here.page.evaluate((bytes) => failureOf(kilim.load(Uint8Array.from(bytes), { backends: ['cpu'] })), bytes);
  assert.equal(missing?.code, 'IO', JSON.stringify(missing));
  assert.ok(missing.message.includes('weights.bin'));
});
