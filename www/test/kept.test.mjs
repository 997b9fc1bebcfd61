// Outputs that stay in the runtime, and go into further runs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

/** What is new is put behind a cache that grows; the sum beside it is of what is new alone. */
const cache = [
  ...model({
    nodes: [
      ['Concat', ['past', 'x'], ['present.key'], { int: { axis: 0 } }],
      ['Add', ['x', 'w'], ['y']],
    ],
    inputs: [
      ['past', ['P', 2]],
      ['x', ['N', 2]],
    ],
    outputs: [
      ['present.key', ['P+N', 2]],
      ['y', ['N', 2]],
    ],
    initializers: [tensor('w', [2], { floats: [10, 20] })],
  }),
];

/** A word is written on a cache that has room. */
const room = [
  ...model({
    nodes: [['TensorScatter', ['past', 'word', 'at'], ['present'], { int: { axis: 1 } }]],
    inputs: [
      ['past', [1, 8, 2]],
      ['word', [1, 1, 2]],
      ['at', [1], 'int64'],
    ],
    outputs: [['present', [1, 8, 2]]],
    opset: 24,
  }),
];

const here = packagePage({
  opened: (page) =>
    page.evaluate(
      ([cache, room]) => {
        globalThis.open = (options) => kilim.load(Uint8Array.from(cache), { backends: ['cpu'], ...options });
        globalThis.rows = (...values) => new kilim.Tensor('float32', [values.length / 2, 2], Float32Array.from(values));
        globalThis.none = () => new kilim.Tensor('float32', [0, 2], new Float32Array());
        globalThis.keep = { keep: ['present.*'] };
        globalThis.openRoom = (options) => kilim.load(Uint8Array.from(room), { backends: ['cpu'], ...options });
        globalThis.write = (session, past, i, options) =>
          session.run({ past, word: Float32Array.of(i, i + 0.5), at: BigInt64Array.of(BigInt(i)) }, { keep: ['present'], ...options });
      },
      [cache, room],
    ),
});
after(() => assert.deepEqual(here.problems, []));

for (const options of [{ worker: true }, { worker: false }, {}, { backends: ['wgpu', 'cpu'] }]) {
  test(`a cache grows where it is: ${JSON.stringify(options)}`, { timeout: 120_000 }, async () => {
    const seen = await here.page.evaluate(async (options) => {
      const session = await open(options);
      let past = none();
      const sums = [];
      for (let i = 0; i < 30; i++) {
        const outputs = await session.run({ past, x: rows(i, -i) }, keep);
        sums.push(outputs.y.data[0]);
        past.dispose?.();
        past = outputs['present.key'];
      }
      const { type, dims, data } = await past.read();
      session.close();
      return { sums, kept: past instanceof kilim.DeviceTensor, dims: past.dims, type, read: dims, data: [...data] };
    }, options);
    const steps = Array.from({ length: 30 }, (_, i) => i);
    assert.deepEqual(seen, {
      sums: steps.map((i) => i + 10),
      kept: true,
      dims: [30, 2],
      type: 'float32',
      read: [30, 2],
      data: steps.flatMap((i) => [i, -i]),
    });
  });
}

for (const options of [{ worker: true }, { worker: false }, { backends: ['wgpu', 'cpu'], worker: true }]) {
  test(`outputs that nobody asked for do not come: ${JSON.stringify(options)}`, { timeout: 60_000 }, async () => {
    const seen = await here.page.evaluate(async (options) => {
      // What workers post of a run.
      const posted = [];
      const { addEventListener } = Worker.prototype;
      Worker.prototype.addEventListener = function (type, listener, ...more) {
        const spy = (event) => {
          if (event.data?.value?.outputs) posted.push(event.data.value.outputs.map(({ name }) => name).join());
          return listener.call(this, event);
        };
        return addEventListener.call(this, type, type === 'message' ? spy : listener, ...more);
      };
      const session = await open(options);
      Worker.prototype.addEventListener = addEventListener;
      const given = { past: rows(1, 2), x: rows(3, 4) };
      const outputs = [];
      for (const how of [{}, { outputs: ['y'] }, { outputs: ['pres*'] }, { outputs: ['y'], keep: ['present.key'] }, { outputs: [] }]) {
        const ran = await session.run(given, how);
        outputs.push(Object.entries(ran).map(([name, value]) => [name, value instanceof kilim.DeviceTensor || [...value.data]]));
      }
      const { code, message } = await failureOf(session.run(given, { outputs: ['z'] }));
      session.close();
      return { posted: [...new Set(posted)].sort(), outputs, code, message };
    }, options);
    const [y, past] = [
      ['y', [13, 24]],
      ['present.key', [1, 2, 3, 4]],
    ];
    assert.deepEqual(seen.outputs, [[past, y], [y], [past], [['present.key', true], y], []]);
    assert.deepEqual(seen.posted, options.worker ? ['', 'present.key', 'present.key,y', 'y'] : []);
    assert.equal(seen.code, 'INPUT');
    assert.match(seen.message, /no output fits `z`, which `outputs` names: expected present\.key, y/);
  });
}

test('another session takes what one has kept', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const [one, other] = [await open({ worker: true }), await open({ worker: false })];
    const { 'present.key': kept } = await one.run({ past: none(), x: rows(1, 2) }, keep);
    const x = rows(3, 4);
    const run = other.run({ past: kept, x });
    // The caller's memory is the caller's as soon as the call returns.
    x.data.fill(0);
    const { 'present.key': both } = await run;
    const again = await one.run({ past: kept, x: rows(5, 6) });
    one.close();
    other.close();
    return [[...both.data], [...again['present.key'].data]];
  });
  assert.deepEqual(seen, [
    [1, 2, 3, 4],
    [1, 2, 5, 6],
  ]);
});

test('what is gone or wrong is an error', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const codes = {};
    for (const worker of [true, false]) {
      const session = await open({ worker });
      const first = (await session.run({ past: none(), x: rows(1, 2) }, keep))['present.key'];
      const next = session.run({ past: first, x: rows(3, 4) }, keep);
      first.dispose();
      first.dispose();
      const second = (await next)['present.key'];
      const failed = async (promise) => (await failureOf(promise))?.code ?? 'none';
      codes[worker] = [
        await failed(session.run({ past: first, x: rows(1, 2) })),
        await failed(first.read()),
        await failed(session.run({ past: second, x: second })),
        await failed(session.run({ past: second, x: rows(1, 2) }, { keep: ['absent.*'] })),
        await failed(session.run({ past: second, x: rows(1, 2) }, { keep: 'present.*' })),
      ];
      session.close();
      codes[worker].push(await failed(second.read()));
      second.dispose();
    }
    return codes;
  });
  const codes = ['STATE', 'STATE', 'none', 'INPUT', 'INVALID_VALUE', 'STATE'];
  assert.deepEqual(seen, { true: codes, false: codes });
});

for (const options of [{ worker: true }, { worker: false }, { backends: ['wgpu', 'cpu'] }]) {
  test(`what runs use up is gone, all else stays: ${JSON.stringify(options)}`, { timeout: 120_000 }, async () => {
    const seen = await here.page.evaluate(async (options) => {
      const session = await openRoom(options);
      const code = async (promise) => (await failureOf(promise))?.code ?? 'none';
      const consume = ['pa*'];
      let { present: past } = await write(session, new Float32Array(16).fill(9), 0);
      const kept = past;
      for (let i = 1; i < 8; i++) {
        // The first tensor is still wanted, all others are not.
        const before = past;
        ({ present: past } = await write(session, past, i, before === kept ? {} : { consume }));
        if (before !== kept && (await code(before.read())) !== 'STATE') return 'a tensor that was used up can be read';
      }
      const [all, first] = [[...(await past.read()).data], [...(await kept.read()).data]];
      const wrong = await code(session.run({ past, word: new Float32Array(3), at: BigInt64Array.of(0n) }, { consume }));
      const whole = await code(past.read());
      const failed = await code(write(session, past, 8, { consume }));
      const after = await code(past.read());
      const unknown = await code(write(session, kept, 1, { consume: ['other'] }));
      const counts = [session.kept];
      kept.dispose();
      kept.dispose();
      counts.push(session.kept);
      await write(session, new Float32Array(16), 0);
      counts.push(session.kept);
      session.close();
      counts.push(session.kept);
      return { all, first, wrong, whole, failed, after, unknown, counts };
    }, options);
    const written = Array.from({ length: 8 }, (_, i) => [i, i + 0.5]).flat();
    assert.deepEqual(seen, {
      all: written,
      first: [0, 0.5, ...Array(14).fill(9)],
      // What is refused before it is a run uses up nothing.
      wrong: 'SHAPE',
      whole: 'none',
      failed: 'INVALID_VALUE',
      after: 'STATE',
      counts: [1, 0, 1, 0],
      unknown: 'INPUT',
    });
  });
}

test('a run takes what another session has kept, and uses it up', { timeout: 60_000 }, async () => {
  const seen = await here.page.evaluate(async () => {
    const [one, other] = [await openRoom({ worker: true }), await openRoom({ worker: false })];
    const { present: past } = await write(one, new Float32Array(16), 1);
    const { present } = await write(other, past, 2, { consume: ['past'] });
    const data = [...(await present.read()).data];
    const { code } = await failureOf(past.read());
    one.close();
    other.close();
    return { data, code };
  });
  assert.deepEqual(seen, { data: [0, 0, 1, 1.5, 2, 2.5, ...Array(10).fill(0)], code: 'STATE' });
});

for (const options of [{ worker: true }, { worker: false }, { backends: ['wgpu', 'cpu'] }]) {
  test(`the last place of an output alone: ${JSON.stringify(options)}`, { timeout: 120_000 }, async () => {
    const seen = await here.page.evaluate(async (options) => {
      const session = await open({ ...options, lastOnly: { y: 0, 'present.key': -1 } });
      const dims = session.outputs.map(({ dims }) => dims);
      const runs = [];
      for (const x of [rows(1, 2), rows(1, 2, 3, 4, 5, 6), rows(7, 8, 9, 10)]) {
        const { y, 'present.key': column } = await session.run({ past: rows(0, 0.5), x });
        runs.push([y.dims, [...y.data], column.dims, [...column.data]]);
      }
      const codes = [];
      for (const lastOnly of [{ z: 0 }, { y: 2 }, { y: 0.5 }, { y: '0' }])
        codes.push(await open({ ...options, lastOnly }).then(null, ({ code, message }) => [code, message]));
      session.close();
      return { dims, runs, codes };
    }, options);
    assert.deepEqual(seen.dims[1], [1, 2]);
    assert.deepEqual(seen.runs, [
      [
        [1, 2],
        [11, 22],
        [2, 1],
        [0.5, 2],
      ],
      [
        [1, 2],
        [15, 26],
        [4, 1],
        [0.5, 2, 4, 6],
      ],
      [
        [1, 2],
        [19, 30],
        [3, 1],
        [0.5, 8, 10],
      ],
    ]);
    assert.deepEqual(
      seen.codes.map(([code]) => code),
      ['INPUT', 'SHAPE', 'INVALID_VALUE', 'INVALID_VALUE'],
    );
    assert.match(seen.codes[0][1], /no output `z`.*present\.key, y/);
    assert.match(seen.codes[2][1], /`lastOnly\.y`/);
  });
}

test('what nobody asked for is not computed', { timeout: 60_000 }, async () => {
  const bytes = model({
    nodes: [
      ['Exp', ['x'], ['y']],
      ['Gather', ['x', 'at'], ['z']],
    ],
    inputs: [
      ['x', [3]],
      ['at', [1], 'int64'],
    ],
    outputs: [
      ['y', [3]],
      ['z', [1]],
    ],
  });
  const seen = await here.page.evaluate(
    async (bytes) => {
      const session = await kilim.load(Uint8Array.from(bytes), { backends: ['cpu'] });
      const feeds = { x: Float32Array.of(0, 0, 0), at: BigInt64Array.of(9n) };
      const { y } = await session.run(feeds, { outputs: ['y'] });
      const kept = await session.run(feeds, { outputs: [], keep: ['y'] });
      const { outputs, nodes } = await session.profile(feeds, { outputs: ['y'] });
      const { code } = await failureOf(session.run(feeds));
      session.close();
      return { y: [...y.data], kept: Object.keys(kept), profiled: [Object.keys(outputs), nodes.length], code };
    },
    [...bytes],
  );
  assert.deepEqual(seen, { y: [1, 1, 1], kept: ['y'], profiled: [['y'], 1], code: 'INVALID_VALUE' });
});
