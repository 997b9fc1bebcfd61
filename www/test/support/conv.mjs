// A page with the device that convolves (`fixtures/shared/conv.js`), for tests of what a backend of a page can do.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { www } from './browser.mjs';
import { model, tensor } from './onnx.mjs';
import { packagePage } from './page.mjs';

/** Numbers between -1 and 1 that repeat late. */
const numbers = (count, seed) => Array.from({ length: count }, (_, i) => ((i * 37 + seed * 11) % 61) / 30 - 1);

// y = conv(sin(conv(relu(conv(x))))): output channels, input channels and kernel of each.
const network = model({
  nodes: [
    ['Conv', ['x', 'w0', 'b0'], ['c0']],
    ['Relu', ['c0'], ['r']],
    ['Conv', ['r', 'w1', 'b1'], ['c1']],
    ['Sin', ['c1'], ['s']],
    ['Conv', ['s', 'w2', 'b2'], ['y']],
  ],
  inputs: [['x', [1, 3, 'h', 'w']]],
  outputs: [['y', [1, 2, 'p', 'q']]],
  initializers: [
    [4, 3, 3],
    [5, 4, 1],
    [2, 5, 3],
  ].flatMap(([m, c, k], i) => [
    tensor(`w${i}`, [m, c, k, k], { floats: numbers(m * c * k * k, i) }),
    tensor(`b${i}`, [m], { floats: numbers(m, 7 + i) }),
  ]),
});

/** What tests use in the page. */
function prepare(bytes) {
  globalThis.heard = [];
  /** The calls since this was asked last. */
  globalThis.told = () => heard.splice(0);
  globalThis.network = new Uint8Array(bytes);
  globalThis.feed = ([h, w]) => {
    const data = Float32Array.from({ length: 3 * h * w }, (_, i) => ((i * 37 + 33) % 61) / 30 - 1);
    return { x: { type: 'float32', dims: [1, 3, h, w], data } };
  };
  globalThis.started = (options, module = '/shared/conv.js', file = network) => {
    kilim.registerBackend('conv', module);
    return kilim.load(file.slice(), { backends: ['conv', 'cpu'], worker: false, ...options });
  };
  /** How far a tensor is from what `cpu` gives, relative to that. */
  globalThis.off = async (found, size) => {
    const cpu = await kilim.load(network.slice(), { backends: ['cpu'] });
    const { y } = await cpu.run(feed(size));
    cpu.close();
    const largest = y.data.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    if (found.dims.join() !== y.dims.join()) return found.dims;
    return y.data.reduce((most, v, i) => Math.max(most, Math.abs(v - found.data[i])), 0) / largest;
  };
  globalThis.checked = async (session, size) => off((await session.run(feed(size))).y, size);
  globalThis.places = (session) =>
    session.report.nodes.filter(({ backend }) => backend !== 'plan').map(({ op, backend }) => `${op} ${backend}`);
}

export const shared = process.env.KILIM_SHARED;

/**
 * The page: `here`, as `packagePage` gives it, with what `prepare` has; `changed`, the address of a module of the device with other fields, which are
 * text; and `failure`, the error of loading and running the network with such a module.
 */
export function convPage() {
  const modules = mkdtempSync(join(tmpdir(), 'kilim-conv-'));
  const here = packagePage({
    folders: [
      ['/modules/', modules],
      ['/shared/', join(www, 'fixtures', 'shared')],
      ...(shared ? [['/models/', join(shared, 'models')]] : []),
    ],
    opened: (page) => page.evaluate(prepare, network),
  });
  after(() => rmSync(modules, { recursive: true }));
  let written = 0;
  const changed = (fields) => {
    const name = `${written++}.js`;
    writeFileSync(join(modules, name), `import conv from '/shared/conv.js';\nexport default { ...conv, ${fields} };\n`);
    return `/modules/${name}`;
  };
  const failure = (fields, options = {}) =>
    here.page.evaluate(
      ({ module, options }) => {
        const run = async () => {
          const session = await started(options, module);
          try {
            await session.run(feed([7, 6]));
          } finally {
            session.close();
          }
        };
        return failureOf(run());
      },
      { module: changed(fields), options },
    );
  return { here, changed, failure };
}

export const near = (off) => assert.ok(typeof off === 'number' && off <= 1e-5, `off by ${off}`);
