// Backends that a page brings: asked and reported like any other, whatever they give promises of, and what goes wrong with them.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { www } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const modules = mkdtempSync(join(tmpdir(), 'kilim-backends-'));
const here = packagePage({
  folders: [
    ['/modules/', modules],
    ['/shared/', join(www, 'fixtures', 'shared')],
    ...(process.env.KILIM_SHARED ? [['/models/', join(process.env.KILIM_SHARED, 'models')]] : []),
  ],
});
after(() => rmSync(modules, { recursive: true }));

let written = 0;

/** The address of a module with this text. */
function served(text) {
  const name = `${written++}.js`;
  writeFileSync(join(modules, name), text);
  return `/modules/${name}`;
}

// y = exp(relu(-x)): a backend may run all three nodes, or some of them.
const chain = model({
  nodes: [
    ['Neg', ['x'], ['a']],
    ['Relu', ['a'], ['b']],
    ['Exp', ['b'], ['y']],
  ],
  inputs: [['x', ['n', 3]]],
  outputs: [['y', ['n', 3]]],
});
const feed = [1, -2, 0.5, 4, -0.25, 0];
const want = feed.map((x) => Math.exp(Math.max(-x, 0)));

/** A backend of the nodes named in `ops`, with `functions` in place of its own. */
const pointwise = (ops, functions = '') => `
const kernels = { Neg: (v) => -v, Relu: (v) => Math.max(v, 0), Exp: Math.exp };
const taken = ${JSON.stringify(ops)};
export default {
  device: 'arrays',
  supports: ({ op }) => taken.includes(op) || \`not \${op}\`,
  prepare({ tensors, nodes, inputs, outputs }) {
    return {
      run(given) {
        const data = [];
        inputs.forEach((t, i) => { data[t] = given[i].data; });
        for (const { op, inputs: [x], outputs: [y] } of nodes) data[y] = data[x].map(kernels[op]);
        return outputs.map((t) => ({ type: tensors[t].type, dims: tensors[t].dims, data: data[t] }));
      },
    };
  },
  ${functions}
};`;

/** Registers a module as `mine` and runs the chain: its output, and where the nodes ran; or the error. */
function ran(module, options = {}, feeds = [feed]) {
  return here.page.evaluate(
    async ({ bytes, module, options, feeds }) => {
      let session;
      try {
        kilim.registerBackend('mine', module);
        session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], ...options });
        let y;
        for (const feed of feeds)
          ({ y } = await session.run({ x: { type: 'float32', dims: [feed.length / 3, 3], data: Float32Array.from(feed) } }));
        const { nodes, backends } = session.report;
        return {
          y: [...y.data],
          at: nodes.map(({ op, backend }) => `${op} ${backend}`),
          refusals: nodes.flatMap(({ refusals }) => refusals.map(({ backend, reason }) => `${backend}: ${reason}`)),
          device: backends.find(({ id }) => id === 'mine')?.device,
        };
      } catch (error) {
        const { code, message, node, op, expected, got, hint } = error;
        return { typed: error instanceof kilim.KilimError, code, message, node, op, expected, got, hint };
      } finally {
        session?.close();
      }
    },
    { bytes: [...chain], module, options, feeds },
  );
}

const close = (got, wanted) => assert.ok(got?.length === wanted.length && got.every((x, i) => Math.abs(x - wanted[i]) <= 1e-6), `${got}`);

/** What a model gives on the sample backend, which takes its convolutions, and on the CPU alone: the largest difference, and what ran where. */
const sampled = (file, options) =>
  here.page.evaluate(
    async ({ file, options }) => {
      kilim.registerBackend('sample', '/shared/backend.js');
      const model = new Uint8Array(await (await fetch(file)).arrayBuffer());
      const run = async (given) => {
        const session = await kilim.load(model, given);
        const [{ name, dims }] = session.inputs;
        const sizes = dims.map((d) => (typeof d === 'number' ? d : 1));
        const data = Float32Array.from({ length: sizes.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i / 7));
        const outputs = await session.run({ [name]: { type: 'float32', dims: sizes, data } });
        const { nodes, backends } = session.report;
        session.close();
        return { data: Object.values(outputs).flatMap(({ data }) => [...data]), nodes, backends };
      };
      const mine = await run({ backends: ['sample', 'cpu'], pins: ['op:Conv=sample'], ...options });
      const cpu = await run({ backends: ['cpu'] });
      return {
        most: mine.data.reduce((most, x, i) => Math.max(most, Math.abs(x - cpu.data[i])), 0),
        at: mine.nodes.filter(({ op }) => op === 'Conv').map(({ backend }) => backend),
        device: mine.backends.find(({ id }) => id === 'sample')?.device,
      };
    },
    { file, options },
  );

for (const [how, options] of [
  ['in the worker', {}],
  ['in the page', { worker: false }],
  ['channels first', { configs: ['cpu:layout=NCHW'] }],
]) {
  test(`convolutions run on a page's backend, ${how}`, async () => {
    const { most, at, device } = await sampled('/assets/digits.onnx', options);
    assert.deepEqual(at, ['sample', 'sample', 'sample']);
    assert.equal(device, 'a sample in JavaScript');
    assert.ok(most <= 1e-5, `the largest difference is ${most}`);
  });
}

const shared = process.env.KILIM_SHARED;
const noModels = shared === undefined && 'KILIM_SHARED is not set';

test("all convolutions of UltraFace run on a page's backend, channels first", { skip: noModels }, async () => {
  const { most, at } = await sampled('/models/ultraface-rfb-320/version-RFB-320.onnx', { configs: ['cpu:layout=NCHW'] });
  assert.ok(at.length > 40 && at.every((backend) => backend === 'sample'), at.join());
  assert.ok(most <= 1e-4, `the largest difference is ${most}`);
});

test('what a backend refuses goes to the next, with its reason in the report', async () => {
  const whole = await ran(served(pointwise(['Neg', 'Relu', 'Exp'])));
  close(whole.y, want);
  assert.deepEqual(whole.at, ['Neg mine', 'Relu mine', 'Exp mine']);
  assert.equal(whole.device, 'arrays');
  const most = await ran(served(pointwise(['Neg', 'Exp'], 'speed: { transferStart: 0, kernelStart: 0, flopsPerSecond: 1e15 },')));
  close(most.y, want);
  assert.ok(most.refusals.includes('mine: not Relu'), most.refusals.join());
  const pinned = await ran(served(pointwise(['Neg', 'Exp'])), { pins: ['op:Neg=mine', 'op:Exp=mine', 'op:Relu=cpu'] });
  close(pinned.y, want);
  assert.deepEqual(pinned.at, ['Neg mine', 'Relu cpu', 'Exp mine']);
  const late = "prepare: () => { throw Object.assign(new Error('no room after all'), { code: 'LIMIT' }); },";
  const fallen = await ran(served(pointwise(['Neg', 'Relu', 'Exp'], late)), { worker: false }, [[9, 9, 9], feed]);
  close(fallen.y, want);
  assert.deepEqual(fallen.at, ['Neg cpu', 'Relu cpu', 'Exp cpu']);
  assert.ok(fallen.refusals.includes('mine: the backend `mine` failed: no room after all'), fallen.refusals.join());
  const refused = await ran(served(pointwise(['Neg'])), { strict: true });
  assert.equal(refused.code, 'NO_BACKEND');
  assert.match(refused.message, /mine: not Relu/);
});

test('opening, preparing and running may give promises', async () => {
  const later = pointwise(
    ['Neg', 'Relu', 'Exp'],
    `
  async open() { await new Promise((done) => setTimeout(done, 5)); this.device = 'opened'; },
  async prepare({ tensors, nodes, inputs, outputs }) {
    await new Promise((done) => setTimeout(done, 5));
    return {
      async run([x]) {
        await new Promise((done) => setTimeout(done, 5));
        let { data } = x;
        for (const { op } of nodes) data = data.map(kernels[op]);
        return [{ type: 'float32', dims: tensors[outputs[0]].dims, data }];
      },
    };
  },`,
  );
  for (const worker of [true, false]) {
    const { y, device } = await ran(served(later), { worker }, [[9, 9, 9], feed]);
    close(y, want);
    assert.equal(device, 'opened');
  }
});

test('tensors stay with the backend until somebody reads them', async () => {
  // Neg and Relu as parts of their own: Exp on the CPU would read them, but a kept one is given back as it is.
  const held = pointwise(
    ['Neg', 'Relu', 'Exp'],
    `
  prepare({ tensors, nodes, outputs }) {
    return {
      run([x]) {
        let data = x.own ?? x.data;
        globalThis.given = [...(globalThis.given ?? []), x.own ? 'held' : 'array'];
        for (const { op } of nodes) data = data.map(kernels[op]);
        const { type, dims } = tensors[outputs[0]];
        return [{ own: data, read: async () => ({ type, dims, data }) }];
      },
    };
  },`,
  );
  const module = served(held);
  const { first, second, given } = await here.page.evaluate(
    async ({ bytes, module, feed }) => {
      kilim.registerBackend('mine', module);
      const session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], worker: false });
      globalThis.given = [];
      const { y: kept } = await session.run({ x: { type: 'float32', dims: [2, 3], data: Float32Array.from(feed) } }, { keep: ['y'] });
      const { y } = await session.run({ x: kept });
      const first = await kept.read();
      session.close();
      return { first: [...first.data], second: [...y.data], given: globalThis.given };
    },
    { bytes: [...chain], module, feed },
  );
  close(first, want);
  close(
    second,
    want.map((x) => Math.exp(Math.max(-x, 0))),
  );
  assert.deepEqual(given, ['array', 'held']);
});

test('a constant is the same object for every shape, and views are told', async () => {
  const reshaped = model({
    nodes: [
      ['Add', ['x', 'w'], ['a']],
      ['Reshape', ['a', 'flat'], ['b']],
      ['Neg', ['b'], ['y']],
    ],
    inputs: [['x', ['n', 3]]],
    outputs: [['y', ['m']]],
    initializers: [tensor('w', [3], { floats: [1, 2, 3] }), tensor('flat', [1], { type: 'int64', data: BigInt64Array.of(-1n) })],
  });
  const module = served(`
const seen = [];
export default {
  supports: ({ op }) => ['Add', 'Neg'].includes(op) || 'not that',
  prepare({ tensors, nodes, inputs, outputs }) {
    for (const { value } of tensors) if (value) seen.push(value);
    globalThis.seen = seen;
    globalThis.aliases = tensors.filter(({ alias }) => alias !== undefined).length;
    return {
      run(given) {
        const data = tensors.map(({ value }) => value?.data);
        inputs.forEach((t, i) => { data[t] = given[i].data; });
        const of = (t) => data[tensors[t].alias ?? t];
        for (const { op, inputs: [a, b], outputs: [y] } of nodes) {
          if (op === 'Neg') data[y] = of(a).map((v) => -v);
          else { const long = of(a).length > of(b).length ? [of(a), of(b)] : [of(b), of(a)]; data[y] = long[0].map((v, i) => v + long[1][i % long[1].length]); }
        }
        return outputs.map((t) => ({ type: 'float32', dims: tensors[t].dims, data: data[t] }));
      },
    };
  },
};`);
  const { ys, same, count, aliases } = await here.page.evaluate(
    async ({ bytes, module }) => {
      kilim.registerBackend('mine', module);
      const session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], worker: false });
      const ys = [];
      for (const n of [1, 2])
        ys.push([...(await session.run({ x: { type: 'float32', dims: [n, 3], data: new Float32Array(3 * n) } })).y.data]);
      session.close();
      return { ys, same: seen.every((value) => value === seen[0]), count: seen.length, aliases };
    },
    { bytes: [...reshaped], module },
  );
  assert.deepEqual(ys, [
    [-1, -2, -3],
    [-1, -2, -3, -1, -2, -3],
  ]);
  assert.deepEqual({ same, count, aliases }, { same: true, count: 2, aliases: 1 });
});

test('verify finds the node that a backend computes wrong', async () => {
  const verified = (module) =>
    here.page.evaluate(
      async ({ bytes, module, feed }) => {
        kilim.registerBackend('mine', module);
        const session = await kilim.load(new Uint8Array(bytes), { backends: ['mine', 'cpu'], keepWeights: true });
        const x = { type: 'float32', dims: [2, 3], data: Float32Array.from(feed) };
        const { first, nodes } = await session.verify({ x }, { candidate: 'mine', reference: 'cpu' });
        session.close();
        return { first: first?.op, compared: nodes.length };
      },
      { bytes: [...chain], module, feed },
    );
  const all = pointwise(['Neg', 'Relu', 'Exp']);
  assert.equal((await verified(served(all))).first, undefined);
  const wrong = await verified(served(all.replace('Math.max(v, 0)', 'Math.max(v, 0.5)')));
  assert.equal(wrong.first, 'Relu');
  assert.equal(wrong.compared, 3);
});

test('what goes wrong is a typed error', async () => {
  const all = ['Neg', 'Relu', 'Exp'];
  const broken = (run) => served(pointwise(all, `prepare: ({ nodes, outputs, tensors }) => ({ run: ${run} }),`));
  const thrown = await ran(broken("() => { throw new Error('no such luck'); }"));
  assert.equal(thrown.typed && thrown.code, 'DEVICE');
  assert.match(thrown.message, /the backend `mine` failed: no such luck/);
  const rejected = await ran(
    broken("async () => { throw Object.assign(new Error('too late'), { code: 'LIMIT', node: nodes[1].name, op: nodes[1].op }); }"),
  );
  assert.deepEqual([rejected.code, rejected.op], ['LIMIT', 'Relu']);
  const short = await ran(broken('() => []'));
  assert.equal(short.code, 'INVALID_VALUE');
  assert.equal(short.expected, 'an array of 1 tensors');
  const other = await ran(broken("() => [{ type: 'float32', dims: [1], data: new Float32Array(1) }]"));
  assert.deepEqual([other.code, other.expected, other.got], ['INVALID_VALUE', 'float32[2, 3]', 'float32[1]']);
  const garbled = await ran(broken("() => [{ type: 'float32', dims: [2, 3], data: 'text' }]"));
  assert.equal(garbled.code, 'DTYPE');
  const asked = await ran(served(pointwise(all, "supports: () => { throw new Error('cannot say'); },")));
  close(asked.y, want);
  assert.ok(
    asked.refusals.some((reason) => /cannot say/.test(reason)),
    asked.refusals.join(),
  );
  const unprepared = await ran(served(pointwise(all, 'prepare: async () => null,')));
  assert.match(unprepared.message, /a function `run`/);
  const closed = await ran(served(pointwise(all, "open: () => { throw new Error('no such device'); },")));
  assert.equal(closed.code, 'DEVICE');
  assert.match(closed.message, /`mine` cannot be used: no such device/);
  assert.equal((await ran('/modules/none.js')).code, 'IO');
  assert.equal((await ran(served('export default 1;'))).code, 'INVALID_VALUE');
  assert.equal((await ran(served('export default { supports: () => true };'))).code, 'INVALID_VALUE');
  assert.equal((await ran(served(pointwise(all, "types: { float31: 'fast' },")))).code, 'INVALID_VALUE');
  assert.equal((await ran(served(pointwise(all, 'speed: { flopsPerSecond: -1 },')))).code, 'INVALID_VALUE');
});

test('a WebAssembly module is a backend', async () => {
  const { default: binaryen } = await import('../../tools/node_modules/binaryen/index.js');
  const text = readFileSync(join(www, 'fixtures', 'shared', 'backend.wat'), 'utf8');
  const assembled = (wat) => {
    const name = `${written++}.wasm`;
    writeFileSync(join(modules, name), binaryen.parseText(wat).emitBinary());
    return `/modules/${name}`;
  };
  for (const worker of [true, false]) {
    const { y, at, device, refusals } = await ran(assembled(text), { worker, pins: ['op:Relu=mine'] }, [[9, 9, 9], feed]);
    close(y, want);
    assert.equal(device, 'a sample in WebAssembly');
    assert.ok(at.includes('Relu mine'), at.join());
    assert.ok(refusals.includes('mine: only Relu'), refusals.join());
  }
  // It fits into the memory that the module begins with no longer.
  const large = Array.from({ length: 60_000 }, (_, i) => Math.sin(i));
  const { y } = await ran(assembled(text), { pins: ['op:Relu=mine'] }, [large]);
  assert.ok(y.every((v, i) => Math.abs(v - Math.exp(Math.max(-large[i], 0))) < 1e-6));
  const pinned = { pins: ['op:Relu=mine'] };
  const trapped = await ran(assembled(text.replace('(local $end i32)', '(local $end i32) (unreachable)')), pinned);
  assert.equal(trapped.code, 'DEVICE');
  assert.match(trapped.message, /`mine` failed: unreachable/);
  const unprepared = await ran(
    assembled(text.replace('(param $part i32) (result i32) (i32.const 1)', '(param $part i32) (result i32) (i32.const 0)')),
    pinned,
  );
  assert.deepEqual([unprepared.code, /did not prepare its part: it does not say why/.test(unprepared.message)], ['UNSUPPORTED', true]);
  const full = await ran(assembled(text.replace('(local.get $at))\n\n', '(i32.const 0))\n\n')), pinned);
  assert.equal(full.code, 'NO_BACKEND');
  assert.match(full.message, /`mine` has no memory for \d+ bytes/);
  const less = await ran(assembled(text.replace('"kilim_run"', '"run"')));
  assert.equal(less.code, 'INVALID_VALUE');
  assert.match(less.expected, /kilim_run/);
  assert.equal((await ran('/modules/none.wasm')).code, 'IO');
});

test('names are told apart', async () => {
  const failures = await here.page.evaluate(async () => {
    const failed = async (call) => {
      try {
        await call();
      } catch ({ code, hint }) {
        return [code, hint];
      }
    };
    kilim.registerBackend('warp', '/shared/backend.js');
    return {
      own: await failed(() => kilim.registerBackend('cpu', '/shared/backend.js')),
      none: await failed(() => kilim.registerBackend('a b', '/shared/backend.js')),
      module: await failed(() => kilim.registerBackend('fine', 1)),
      near: await failed(async () => kilim.load(await bytes(), { backends: ['warpp'] })),
    };
  });
  assert.deepEqual(failures, {
    own: ['INVALID_VALUE', undefined],
    none: ['INVALID_VALUE', undefined],
    module: ['INVALID_VALUE', undefined],
    near: ['NO_BACKEND', 'did you mean `warp`?'],
  });
});
