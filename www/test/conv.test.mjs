// The device that convolves (`fixtures/shared/conv.js`): all that a backend of a page can do with the convolutions of a model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convPage, near, shared } from './support/conv.mjs';

const noModels = shared === undefined && 'KILIM_SHARED is not set';
const { here, changed, failure } = convPage();

test("a page's backend is told the names of nodes and tensors", async () => {
  const { heard, off } = await here.page.evaluate(async () => {
    told();
    const session = await started();
    const off = await checked(session, [7, 6]);
    session.close();
    return { heard: told(), off };
  });
  near(off);
  for (const line of ['supports node2: r -> c1', 'supports node4: s -> y']) assert.ok(heard.includes(line), heard.join('\n'));
});

test("a page's backend takes two convolutions as one, and other shapes", async () => {
  for (const worker of [true, false]) {
    const { off, at } = await here.page.evaluate(async (worker) => {
      const session = await started({ worker });
      const off = [];
      for (const size of [
        [7, 6],
        [9, 11],
        [5, 5],
      ])
        off.push(await checked(session, size));
      const at = places(session);
      session.close();
      return { off, at };
    }, worker);
    off.forEach(near);
    assert.deepEqual(at, ['ConvPair conv', 'Sin cpu', 'Conv conv']);
  }
});

test("a page's backend gives nodes back, which others get", async () => {
  const module = changed(
    "optimise: ({ tensors, nodes }) => nodes.flatMap(({ inputs }, i) => tensors[inputs[0]].name === 'x' ? [{ giveBack: i, reason: 'too small' }] : []),",
  );
  const { off, at, refusals } = await here.page.evaluate(async (module) => {
    const session = await started({}, module);
    const off = await checked(session, [7, 6]);
    const at = places(session);
    const refusals = session.report.nodes.flatMap(({ refusals }) => refusals.map(({ reason }) => reason));
    session.close();
    return { off, at, refusals };
  }, module);
  near(off);
  assert.deepEqual(at, ['Conv cpu', 'Conv conv', 'Sin cpu', 'Conv conv']);
  assert.ok(refusals.includes('too small'), refusals.join());
});

test("a page's backend says the layout of each node", async () => {
  const module = changed(`
  layout: ['NCHW', 'NHWC'],
  optimise: undefined,
  nodeLayout: ({ op, inputs: [, weights] }) => op === 'Conv' ? (weights.dims[2] === 1 ? 'NHWC' : 'NCHW') : undefined,`);
  const { off, at } = await here.page.evaluate(async (module) => {
    const session = await started({}, module);
    const off = await checked(session, [7, 6]);
    const at = places(session);
    session.close();
    return { off, at };
  }, module);
  near(off);
  const ops = at.map((place) => place.split(' ')[0]);
  assert.deepEqual(
    at.filter((place) => place.startsWith('Conv')),
    ['Conv conv', 'Conv conv', 'Conv conv'],
  );
  // The convolution of 1x1 alone is on channels-last data.
  assert.ok(ops.filter((op) => op === 'Transpose').length >= 2, at.join());
});

test("the algorithms of a page's backend are measured", async () => {
  const { off, tuning, cached, again, heard } = await here.page.evaluate(async () => {
    const session = await started({ tune: true });
    const off = await checked(session, [12, 13]);
    const { tuning } = session.report;
    const cache = await session.saveCache();
    session.close();
    told();
    const second = await started({ tune: true, cache }, '/shared/conv.js?cached');
    const again = [await checked(second, [12, 13]), second.report.tuning, second.report.cache];
    second.close();
    return { off, tuning, cached: new TextDecoder().decode(cache), again, heard: told() };
  });
  near(off);
  const own = tuning.filter(({ backend }) => backend === 'conv');
  assert.deepEqual(own.map(({ class: name }) => name.split(' ')[0]).sort(), ['Conv', 'ConvPair']);
  for (const { algorithm, times } of own) {
    assert.deepEqual(
      times.map((time) => time.algorithm),
      ['points', 'rows'],
    );
    assert.ok(['points', 'rows'].includes(algorithm) && times.every(({ seconds }) => seconds > 0));
  }
  // What was measured, and what the backend has learnt by itself, goes to another session.
  assert.match(cached, /ConvPair 1x3x12x13/);
  const [offAgain, known, ignored] = again;
  near(offAgain);
  assert.equal(ignored, null);
  assert.ok(heard.includes('loadCache ConvPair,Conv'), heard.join('\n'));
  assert.deepEqual(
    known.filter(({ backend }) => backend === 'conv').map(({ times }) => times),
    [[], []],
  );
});

test("a page's backend orders the tasks of a stage", async () => {
  const heard = await here.page.evaluate(async () => {
    const all = [];
    for (const options of [{}, { schedule: 'overlapped' }]) {
      const session = await started(options);
      told();
      await session.run(feed([7, 6]));
      all.push(told().includes('schedule'));
      session.close();
    }
    return all;
  });
  assert.deepEqual(heard, [true, false], 'the one of the user goes first');
  const twice = await failure('schedule: (tasks) => tasks.map(() => 0),');
  assert.deepEqual([twice.code, twice.got], ['STATE', 'task 0 stands there twice']);
  assert.equal((await failure('schedule: () => [],')).code, 'STATE');
  assert.equal((await failure("schedule: (tasks) => tasks.map(() => 'first'),")).code, 'INVALID_VALUE');
});

test("weights go that a page's backend has in a form of its own", async () => {
  const bytes = (fields) =>
    here.page.evaluate(async (module) => {
      const session = await started({ memory: 'limit', dims: { h: 7, w: 6 } }, module);
      const { constantBytes } = session.report.backends.find(({ id }) => id === 'conv');
      const off = await checked(session, [7, 6]);
      session.close();
      return { constantBytes, off };
    }, changed(fields));
  const packed = await bytes('');
  near(packed.off);
  assert.equal(packed.constantBytes, 0);
  const raw = await bytes('prepare: (part) => ({ ...conv.prepare(part), packed: undefined }),');
  near(raw.off);
  assert.ok(raw.constantBytes > 0);
});

test("a page's backend keeps tensors, and comes back when its device was lost", async () => {
  const { first, lost, off, heard } = await here.page.evaluate(async () => {
    // The third run of a node on the device: the first of the second run.
    const session = await started({ configs: ['conv:lose=2'] }, '/shared/conv.js?lost');
    const first = await checked(session, [7, 6]);
    const lost = await failureOf(session.run(feed([7, 6])));
    told();
    const { y } = await session.run(feed([7, 6]), { keep: ['*'] });
    const off_ = await off(await y.read(), [7, 6]);
    session.close();
    return { first, lost, off: off_, heard: told() };
  });
  near(first);
  assert.equal(lost.code, 'DEVICE');
  assert.match(lost.message, /the device is lost/);
  assert.ok(heard.includes('reopen') && heard.includes('release'), heard.join('\n'));
  near(off);
  const gone = await here.page.evaluate(async (module) => {
    const session = await started({ configs: ['conv:lose=0'] }, module);
    await failureOf(session.run(feed([7, 6])));
    const again = await failureOf(session.run(feed([7, 6])));
    session.close();
    return again;
  }, changed("isLost: () => true, async reopen() { throw new Error('it is broken'); },"));
  assert.equal(gone.code, 'DEVICE');
  assert.match(gone.message, /it is broken/);
});

test("the nodes of a page's backend are timed", async () => {
  const { profiled, timed, heard } = await here.page.evaluate(async () => {
    told();
    const session = await started({}, '/shared/conv.js?timed');
    const untimed = await session.run(feed([7, 6]));
    const heard = [told().includes('timed')];
    const { nodes: profiled } = await session.profile(feed([60, 60]));
    heard.push(told().includes('timed'), untimed.y.dims.length === 4);
    session.close();
    const other = await started({ configs: ['conv:timers=on'] }, '/shared/conv.js?timed');
    await other.run(feed([60, 60]));
    const timed = other.times;
    other.close();
    return { profiled, timed, heard };
  });
  assert.deepEqual(heard, [false, true, true]);
  for (const nodes of [profiled, timed]) {
    const own = nodes.filter(({ backend }) => backend === 'conv');
    assert.deepEqual(
      own.map(({ op }) => op),
      ['ConvPair', 'Conv'],
    );
    assert.ok(
      own.some(({ seconds }) => seconds > 0),
      JSON.stringify(own),
    );
  }
  const configs = ['conv:timers=on'];
  const wrong = await failure('prepare: (part) => ({ ...conv.prepare(part), times: () => [] }),', { configs });
  assert.deepEqual([wrong.code, /times that cannot be/.test(wrong.message)], ['DEVICE', true]);
  const missing = await failure('prepare: (part) => ({ ...conv.prepare(part), times: undefined }),');
  assert.deepEqual([missing.code, missing.expected], ['INVALID_VALUE', 'an object with a function `times`']);
});

test("a page's backend takes the convolutions of a real model", { skip: noModels, timeout: 180_000 }, async () => {
  // Rows are the faster ones in JavaScript.
  const module = changed("choice: (node) => conv.choice(node) && { class: node.name, algorithms: ['rows', 'points'] },");
  const { most, at, times } = await here.page.evaluate(async (module) => {
    const file = new Uint8Array(await (await fetch('/models/ultraface-rfb-320/version-RFB-320_simplified.onnx')).arrayBuffer());
    const data = Float32Array.from({ length: 3 * 240 * 320 }, (_, i) => ((i * 37 + 11) % 61) / 30 - 1);
    const run = async (session) => session.profile({ [session.inputs[0].name]: { type: 'float32', dims: [1, 3, 240, 320], data } });
    const session = await started({}, module, file);
    const found = await run(session);
    const at = places(session);
    session.close();
    const cpu = await kilim.load(file, { backends: ['cpu'] });
    const wanted = await run(cpu);
    cpu.close();
    const off = Object.entries(wanted.outputs).map(([name, { data }]) => {
      const largest = data.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      return data.reduce((most, x, i) => Math.max(most, Math.abs(x - found.outputs[name].data[i])), 0) / largest;
    });
    return { most: Math.max(...off), at, times: found.nodes };
  }, module);
  assert.ok(most <= 1e-4, `the largest difference is ${most}`);
  const on = (op) => at.filter((place) => place === `${op} conv`).length;
  assert.deepEqual([2 * on('ConvPair') + on('Conv'), on('Transpose')], [52, 0], at.join());
  assert.ok(on('ConvPair') > 0);
  assert.ok(times.some(({ op, seconds }) => op === 'ConvPair' && seconds > 0));
});
