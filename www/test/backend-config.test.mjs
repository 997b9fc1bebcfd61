// What a backend of a page offers and is told, and what it says that cannot be.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convPage } from './support/conv.mjs';
import { model } from './support/onnx.mjs';

const { here, changed, failure } = convPage();

test("what a page's backend makes of its nodes is checked", async () => {
  const wrong = async (changes) => failure(`optimise: ({ nodes }) => ${changes},`);
  const node = "{ name: 'n', domain: 'com.example', op: 'ConvPair', inputs: nodes[0].inputs, outputs: nodes[0].outputs }";
  const text = await wrong("'nothing'");
  assert.deepEqual([text.typed, text.code], [true, 'INVALID_VALUE']);
  assert.match(text.expected, /giveBack/);
  assert.equal((await wrong('[{ replace: [0] }]')).code, 'INVALID_VALUE');
  assert.equal((await wrong("[{ giveBack: -1, reason: '' }]")).code, 'INVALID_VALUE');
  const far = await wrong("[{ giveBack: 9, reason: '' }]");
  assert.equal(far.code, 'STATE');
  assert.match(far.message, /names the node 9/);
  const other = await wrong(`[{ replace: [0], with: { ...${node}, op: 'Relu', domain: '' } }]`);
  assert.deepEqual([other.code, other.got], ['STATE', '`::Relu`']);
  const lost = await wrong(`[{ replace: [0], with: { ...${node}, outputs: [99999] } }]`);
  assert.equal(lost.code, 'STATE');
  const thrown = await failure("optimise() { throw new Error('no idea'); },");
  assert.equal(thrown.code, 'DEVICE');
  assert.match(thrown.message, /`conv` failed: no idea/);
});

test("a model may have operators of a page's backend", async () => {
  const file = model({
    nodes: [['Twice', ['x'], ['y'], { domain: 'com.example', int: { times: 3 } }]],
    inputs: [['x', ['n']]],
    outputs: [['y', ['n']]],
  });
  const module = changed(`
  operators: [{ domain: 'com.example', name: 'Twice', infer: (_, [x]) => [x] }],
  supports: ({ domain, op, attributes: { times } }) => (domain === 'com.example' && op === 'Twice' && times === 3) || 'no',
  timers: false,
  prepare: () => ({ run: ([x]) => [{ type: 'float32', dims: x.dims, data: x.data.map((v) => 2 * v) }] }),`);
  const y = await here.page.evaluate(
    async ({ file, module }) => {
      const session = await started({}, module, new Uint8Array(file));
      const { y } = await session.run({ x: { type: 'float32', dims: [2], data: Float32Array.of(1, -4) } });
      session.close();
      return [...y.data];
    },
    { file, module },
  );
  assert.deepEqual(y, [2, -8]);
});

test("a page's backend hears options of its own and the config", async () => {
  const module = changed(`
  layout: ['NCHW', 'NHWC'], half: 'kept', quantized: 'native',
  options: {
    eager: { kind: 'switch', initial: false, meaning: 'starts early' },
    cores: { kind: 'integer', initial: 4, meaning: 'how many compute' },
    clock: { kind: 'number', initial: 1.5, meaning: 'how fast' },
    power: { kind: ['high', 'low'], initial: 'high', meaning: 'what it takes' },
    firmware: { kind: 'text', initial: '', meaning: 'what it runs' },
  },`);
  const heard = (options) =>
    here.page.evaluate(
      async ({ module, options }) => {
        told();
        const session = await started(options, module);
        await session.run(feed([7, 6]));
        session.close();
        return told()
          .filter((line) => line.startsWith('prepare '))
          .map((line) => JSON.parse(line.slice(8)));
      },
      { module, options },
    );
  const [usual] = await heard({});
  const options = { eager: false, cores: 4, clock: 1.5, power: 'high', firmware: '' };
  const config = { layout: 'NCHW', dynamicShapes: true, half: 'kept', quantized: 'exact', timers: false, memory: 'normal' };
  assert.deepEqual(usual, { ...config, options });
  const words = [
    'dynamic=off',
    'f16=chosen',
    'quantized=native',
    'timers=on',
    'eager=on',
    'cores=-2',
    'clock=2.5',
    'power=low',
    'firmware=a=b',
  ];
  const [wanted] = await heard({ configs: words.map((word) => `conv:${word}`), memory: 'limit', dims: { h: 7, w: 6 } });
  assert.deepEqual(wanted, {
    ...config,
    dynamicShapes: false,
    half: 'chosen',
    quantized: 'native',
    timers: true,
    memory: 'limit',
    options: { eager: true, cores: -2, clock: 2.5, power: 'low', firmware: 'a=b' },
  });
  const [last] = await heard({ configs: ['conv:layout=NHWC'] });
  assert.equal(last.layout, 'NHWC');
});

test("what a page's backend does not offer is refused", async () => {
  const refused = async (config, fields = '') => {
    const { code, expected } = await failure(fields, { configs: [`conv:${config}`] });
    return [code, expected];
  };
  assert.deepEqual(await refused('f16=chosen'), ['UNSUPPORTED', 'Off']);
  assert.deepEqual(await refused('layout=NHWC'), ['UNSUPPORTED', 'NCHW']);
  assert.deepEqual(await refused('quantized=native'), ['UNSUPPORTED', 'Exact']);
  assert.deepEqual(await refused('timers=on', 'timers: false,'), ['UNSUPPORTED', 'none']);
  assert.deepEqual(await refused('dynamic=on', 'dynamicShapes: false,'), ['UNSUPPORTED', 'one set of input shapes']);
  assert.deepEqual(await refused('lose=soon'), ['INVALID_VALUE', 'INTEGER']);
  const [code, expected] = await refused('loose=1');
  assert.equal(code, 'INVALID_VALUE');
  assert.match(expected, /lose/);
  for (const fields of [
    "half: 'all',",
    "quantized: 'rounded',",
    'layout: [],',
    "layout: 'NCXHW',",
    "options: { lose: { kind: 'integer', initial: 'never', meaning: '' } },",
    "options: { lose: { kind: 'date', initial: '', meaning: '' } },",
    'operators: [{}],',
    'choice: 1,',
  ])
    assert.equal((await failure(fields)).code, 'INVALID_VALUE', fields);
});
