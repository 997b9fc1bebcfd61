// Whatever is thrown at the package, what leaves it is a KilimError: some nine thousand calls with garbage, in Node and in the page.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as cache from '../dist/kilim/node.cache.js';
import * as kilim from '../dist/kilim/node.js';
import * as pictures from '../dist/kilim/node.pictures.js';
import * as sound from '../dist/kilim/node.sound.js';
import { www } from './support/browser.mjs';
import { throwGarbage } from './support/garbage.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';

const relu = [...model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2]]], outputs: [['y', [2]]] })];
const here = packagePage({ folders: [['/support/', join(www, 'test', 'support')]] });
// The page's policy forbids most of the addresses.
after(() =>
  assert.deepEqual(
    here.problems.filter((problem) => !/content security policy/i.test(problem)),
    [],
  ),
);

function isRight({ made, wrong, y }) {
  assert.deepEqual(wrong, []);
  assert.deepEqual(y, [1, 0], 'the session goes on');
  assert.ok(made > 5000, `only ${made} calls`);
}

process.env.KILIM_CACHE = join(tmpdir(), `kilim-garbage-${process.pid}`);
test('garbage in Node', { timeout: 300_000 }, async () => {
  isRight(await throwGarbage({ kilim, pictures, sound, cache }, Uint8Array.from(relu)));
});

test('garbage in the page', { timeout: 300_000 }, async () => {
  isRight(
    await here.page.evaluate(async (relu) => {
      const { throwGarbage } = await import('/support/garbage.mjs');
      const [pictures, sound, cache] = await Promise.all(['pictures', 'sound', 'cache'].map((name) => import(`/kilim/${name}.js`)));
      return throwGarbage({ kilim, pictures, sound, cache }, Uint8Array.from(relu));
    }, relu),
  );
});
