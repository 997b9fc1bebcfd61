// Whatever is thrown at the package, what leaves it is a KilimError: some six thousand calls with garbage, in Node and in the page.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as kilim from '../dist/kilim/node.js';
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

test('garbage in Node', { timeout: 300_000 }, async () => {
  isRight(await throwGarbage(kilim, Uint8Array.from(relu)));
});

test('garbage in the page', { timeout: 300_000 }, async () => {
  isRight(
    await here.page.evaluate(async (relu) => {
      const { throwGarbage } = await import('/support/garbage.mjs');
      return throwGarbage(kilim, Uint8Array.from(relu));
    }, relu),
  );
});
