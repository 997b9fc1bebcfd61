// Importers that a page brings: formats of its own, weights in the file and beside it, files of other formats, and what goes wrong with them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const modules = mkdtempSync(join(tmpdir(), 'kilim-importers-'));
const fetched = [];
const here = packagePage({
  opened: (page) => page.context().on('request', (request) => fetched.push(new URL(request.url()).pathname)),
  folders: [
    ['/modules/', modules],
    ['/shared/', join(www, 'fixtures', 'shared')],
  ],
});
after(() => rmSync(modules, { recursive: true }));

let written = 0;

/** The address of an importer of files that begin with `mine`, whose `load` has this body. */
function importer(body, probe = "String.fromCharCode(...head.subarray(0, 4)) === 'mine'") {
  const name = `${written++}.js`;
  writeFileSync(join(modules, name), `export default { probe: (head, name) => ${probe}, async load(file) { ${body} } };\n`);
  return `/modules/${name}`;
}

/** A model of one node, as the text of an object. */
const one = (node, more = '') =>
  `{ inputs: [{ name: 'x', type: 'float32', dims: ['n', 2] }], nodes: [{ inputs: ['x'], outputs: ['y'], ${node} }], outputs: ['y'], ${more} }`;

/** Registers importers and runs a file on `x`: its output; or the error. */
function ran(importers, file, x, { dims = [x.length], external = {}, ...options } = {}) {
  return here.page.evaluate(
    async ({ importers, file, x, dims, external, options }) => {
      let session;
      try {
        for (const [id, module] of Object.entries(importers)) kilim.registerImporter(id, module);
        const source = typeof file === 'string' ? file : new Uint8Array(file);
        const externalData = Object.fromEntries(Object.entries(external).map(([name, bytes]) => [name, new Uint8Array(bytes)]));
        session = await kilim.load(source, { backends: ['cpu'], externalData, ...options });
        const { y } = await session.run({ x: { type: 'float32', dims, data: Float32Array.from(x) } });
        return { y: [...y.data], names: session.report.nodes.map(({ name }) => name) };
      } catch (error) {
        const { code, message, node, op, expected, got } = error;
        return { typed: error instanceof kilim.KilimError, code, message, node, op, expected, got };
      } finally {
        session?.close();
      }
    },
    { importers, file: typeof file === 'string' ? file : [...file], x, dims, external, options },
  );
}

const bytes = (text) => new TextEncoder().encode(text);
const floats = (...list) => new Uint8Array(Float32Array.from(list).buffer);

test('a page without importers fetches none', async () => {
  const { code } = await ran({}, bytes('chain 1\nrelu\n'), [1]);
  assert.equal(code, 'UNKNOWN_FORMAT');
  assert.ok(!fetched.some((path) => path.includes('importer')), fetched.join(' '));
});

test('a format of the page is read from bytes and from an address, in a worker and in the page', async () => {
  const text = 'chain 1\nscale -0.5\nrelu\n';
  writeFileSync(join(modules, 'model.chain'), text);
  for (const file of [bytes(text), '/modules/model.chain'])
    for (const worker of [true, false]) {
      const { y, code, message } = await ran({ chain: '/shared/importer.js' }, file, [1, -2, 4], { worker });
      assert.deepEqual(y, [0, 1, 0], `${code} ${message}`);
    }
  assert.ok(fetched.includes('/kilim/importer.js'), fetched.join(' '));
  const unknown = await ran({}, bytes('chain 1\nbend 3\n'), [1]);
  assert.equal(unknown.code, 'UNSUPPORTED');
  assert.match(unknown.message, /the importer `chain` failed: line 2 has an operator that nobody knows/);
});

test('files that Kilim knows are read by Kilim, and importers are asked in the order in which they came', async () => {
  const known = model({ nodes: [['Neg', ['x'], ['y']]], inputs: [['x', ['n']]], outputs: [['y', ['n']]] });
  const all = importer("throw new Error('asked')", 'true');
  const own = await ran({ mine: all }, known, [1, -2]);
  assert.deepEqual(own.y, [-1, 2]);
  // The first that was registered knows it.
  assert.deepEqual((await ran({}, bytes('chain 1\nrelu\n'), [1, -2])).y, [1, 0]);
  const { code, message } = await ran({}, bytes('other'), [1]);
  assert.equal(code, 'INVALID_MODEL');
  assert.match(message, /the importer `mine` failed: asked/);
});

test('weights are views of the file, or come from files beside it', async () => {
  const constants = (data) => `constants: { w: { type: 'float32', dims: [2], data: ${data} } }`;
  const add = (data) => `return ${one("op: 'Add', inputs: ['x', 'w']", constants(data))}`;
  const file = [...bytes('mine----'), ...floats(0.5, -1)];
  const dims = [1, 2];
  const inside = importer(add('new Float32Array(file.bytes.buffer, 8, 2)'));
  assert.deepEqual((await ran({ mine: inside }, file, [1, 2], { dims })).y, [1.5, 1]);
  const beside = importer(add("new Float32Array(file.read('w.bin').buffer)"));
  const external = { 'w.bin': [...floats(2, 3)] };
  assert.deepEqual((await ran({ mine: beside }, file, [1, 2], { dims, external })).y, [3, 5]);
  const missing = await ran({ mine: beside }, file, [1, 2], { dims });
  assert.equal(missing.code, 'IO');
  assert.match(missing.message, /`w\.bin` was not given/);
});

test('attributes are of every kind', async () => {
  const node = (attributes) => importer(`return ${one(`op: 'LeakyRelu', attributes: ${attributes}`)}`);
  const dims = [1, 2];
  for (const alpha of ['{ alpha: 2 }', '{ alpha: 2n }', '{ alpha: [2] }', '{ alpha: [2.0] }'])
    assert.deepEqual((await ran({ mine: node(alpha) }, bytes('mine'), [1, -2], { dims })).y, [1, -4], alpha);
  assert.deepEqual((await ran({ mine: node('{ alpha: 0.5 }') }, bytes('mine'), [1, -2], { dims })).y, [1, -1]);
  const gelu = importer(`return ${one("op: 'Gelu', attributes: { approximate: 'none' }")}`);
  assert.deepEqual((await ran({ mine: gelu }, bytes('mine'), [0, 0], { dims })).y, [0, 0]);
  const value = "{ type: 'float32', dims: [1], data: Float32Array.of(7) }";
  const fill = importer(`return { inputs: [{ name: 'x', type: 'float32', dims: ['n'] }], nodes: [
    { op: 'Shape', inputs: ['x'], outputs: ['s'] },
    { op: 'ConstantOfShape', attributes: { value: ${value} }, inputs: ['s'], outputs: ['y'] },
  ], outputs: ['y'] }`);
  assert.deepEqual((await ran({ mine: fill }, bytes('mine'), [1, 2, 3])).y, [7, 7, 7]);
});

const identity = "{ op: 'Identity', inputs: ['going'], outputs: ['on'] }";

test('nodes have bodies, which see what is around them', async () => {
  const repeat = `{ op: 'Loop', attributes: { body: {
    inputs: [{ name: 'i' }, { name: 'going' }, { name: 's' }],
    nodes: [${identity}, { op: 'Add', inputs: ['s', 'x'], outputs: ['t'] }],
    outputs: ['on', 't'],
  } }, inputs: ['trips', null, 'x'], outputs: ['sum'] }`;
  const control = importer(`
    const trips = { type: 'int64', dims: [], data: BigInt64Array.of(3n) };
    const half = { type: 'float32', dims: [1], data: new Float32Array(file.bytes.buffer, 4, 1) };
    return { inputs: [{ name: 'x', type: 'float32', dims: ['n'] }], nodes: [
      { op: 'ReduceMax', attributes: { keepdims: 0 }, inputs: ['x'], outputs: ['most'] },
      { op: 'Cast', attributes: { to: 9 }, inputs: ['most'], outputs: ['c'] },
      { op: 'If', attributes: {
        then_branch: { constants: { half }, nodes: [{ op: 'Mul', inputs: ['x', 'half'], outputs: ['a'] }], outputs: ['a'] },
        else_branch: { constants: { trips }, nodes: [${repeat}], outputs: ['sum'] },
      }, inputs: ['c'], outputs: ['y'] },
    ], outputs: ['y'] }`);
  const file = [...bytes('mine'), ...floats(0.5)];
  assert.deepEqual((await ran({ mine: control }, file, [1, 4])).y, [0.5, 2]);
  assert.deepEqual((await ran({ mine: control }, file, [-1, 0])).y, [-4, 0]);
});

test('a session tells what the file says of itself', async () => {
  const said = (module, file, worker) =>
    here.page.evaluate(
      async ({ module, file, worker }) => {
        kilim.registerImporter('mine', module);
        try {
          const session = await kilim.load(new Uint8Array(file), { backends: ['cpu'], worker });
          const metadata = await session.metadata();
          session.close();
          return metadata;
        } catch ({ code, message }) {
          return { code, message };
        }
      },
      { module, file: [...file], worker },
    );
  const neg = (metadata) => importer(`return ${one("op: 'Neg'", `metadata: ${metadata}`)}`);
  const nothing = { name: '', description: '', producer: '', producerVersion: '', domain: '', version: '', entries: {} };
  const given = { name: 'sample', producerVersion: '2', entries: { general_name: 'kept as it is', labels: 'cat\ndog' } };
  const module = neg(JSON.stringify(given));
  for (const worker of [true, false]) assert.deepEqual(await said(module, bytes('mine'), worker), { ...nothing, ...given });
  assert.deepEqual(await said(neg('undefined'), bytes('mine'), true), nothing);
  const wrong = await said(neg('{ version: 2 }'), bytes('mine'), true);
  assert.equal(wrong.code, 'INVALID_VALUE');
  assert.match(wrong.message, /the metadata `version`/);
  // A file of ONNX, with `producer_name` and an entry of `metadata_props` behind the model.
  const field = (number, content) => [(number << 3) | 2, content.length, ...content];
  const entry = [...field(1, bytes('labels')), ...field(2, bytes('cat'))];
  const file = model({ nodes: [['Neg', ['x'], ['y']]], inputs: [['x', ['n']]], outputs: [['y', ['n']]] });
  const onnx = await said(module, [...file, ...field(2, bytes('by hand')), ...field(14, entry)], true);
  assert.equal(onnx.producer, 'by hand');
  assert.deepEqual(onnx.entries, { labels: 'cat' });
});

test('an importer may give a file of another format', async () => {
  const inner = model({ nodes: [['Neg', ['x'], ['y']]], inputs: [['x', ['n']]], outputs: [['y', ['n']]] });
  const wrapped = importer('return file.bytes.slice(4)');
  assert.deepEqual((await ran({ mine: wrapped }, [...bytes('mine'), ...inner], [1, -2])).y, [-1, 2]);
  assert.equal((await ran({}, bytes('mine!'), [1])).code, 'UNKNOWN_FORMAT');
});

test('what an importer gives wrong is a typed error', async () => {
  const dims = [1, 2];
  const node = "{ op: 'Neg', inputs: ['x'], outputs: ['y'] }";
  const branch = (from) => `{ nodes: [{ op: 'Neg', inputs: ['${from}'], outputs: ['a'] }], outputs: ['a'] }`;
  const cases = [
    ["throw new TypeError('no such layer')", 'INVALID_MODEL', /the importer `mine` failed: no such layer/],
    ['return 7', 'INVALID_VALUE', /what `load` gives of the importer `mine` is malformed/],
    ['return {}', 'INVALID_VALUE', /`inputs` of the importer `mine`/],
    [`return ${one("op: 'Twist'")}`, 'UNSUPPORTED', /the importer `mine`: .*ai\.onnx::Twist/],
    [`return ${one("op: 'Neg', outputs: ['x']")}`, 'INVALID_MODEL', /two values are called `x`/],
    [`return ${one("op: 'Neg', inputs: ['nothing']")}`, 'INVALID_GRAPH', /`nothing`/],
    [`return ${one("op: 'Add', inputs: ['x', 'y']")}`, 'INVALID_GRAPH', /cycle/],
    [`return ${one("op: 'Neg', attributes: { speed: 2 }")}`, 'UNSUPPORTED', /`speed`/],
    [`return ${one("op: 'Neg', attributes: { speed: {} }")}`, undefined, /./],
    [`return ${one("op: 'Neg', attributes: { speed: [1, 'a'] }")}`, 'INVALID_VALUE', /the attribute `speed`/],
    [`return ${one("op: 'Neg'", "constants: { w: { type: 'float32', dims: [3], data: new Float32Array(2) } }")}`, undefined, /./],
    [
      `return ${one("op: 'Neg'", "constants: { w: { type: 'float32', dims: [2 ** 40, 2 ** 40], data: new Float32Array(2) } }")}`,
      undefined,
      /./,
    ],
    [`return { ...${one("op: 'Neg'")}, inputs: [{ name: 'x', type: 'float32', dims: [-1] }] }`, 'INVALID_VALUE', /a dimension/],
    [`return { ...${one("op: 'Neg'")}, inputs: [{ name: 'x', type: 'float31', dims: [1] }] }`, 'INVALID_VALUE', /element type/],
    [`return { ...${one("op: 'Neg'")}, inputs: [{ name: 'x' }] }`, 'INVALID_VALUE', /the type of an input/],
    [`return ${one("op: 'If', attributes: { then_branch: { nodes: [{}] } }")}`, 'INVALID_VALUE', /the operator of a node/],
    [
      `const body = { nodes: [], outputs: [] }; body.nodes.push({ ...${node}, attributes: { body } }); return { ...body, inputs: [] }`,
      'LIMIT',
      /in each other/,
    ],
    [`return ${one(`op: 'If', attributes: { then_branch: ${branch('nothing')}, else_branch: ${branch('x')} }`)}`, undefined, /./],
  ];
  for (const [body, code, message] of cases) {
    const error = await ran({ mine: importer(body) }, bytes('mine'), [1, 2], { dims });
    assert.ok(error.typed, `${body}: ${JSON.stringify(error)}`);
    if (code) assert.equal(error.code, code, `${body}: ${error.message}`);
    assert.notEqual(error.code, 'INTERNAL', error.message);
    assert.match(error.message, message);
  }
});

test('what is no importer is refused', async () => {
  const refused = await here.page.evaluate(() => {
    const failed = (call) => {
      try {
        call();
      } catch (error) {
        return error.code;
      }
    };
    return [failed(() => kilim.registerImporter('a b', '/x.js')), failed(() => kilim.registerImporter('mine', 7))];
  });
  assert.deepEqual(refused, ['INVALID_VALUE', 'INVALID_VALUE']);
  writeFileSync(join(modules, 'none.js'), 'export default {};\n');
  assert.equal((await ran({ mine: '/modules/none.js' }, bytes('mine'), [1])).code, 'INVALID_VALUE');
  assert.equal((await ran({ mine: '/modules/missing.js' }, bytes('mine'), [1])).code, 'IO');
});
