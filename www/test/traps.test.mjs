// Traps of the runtime: a typed error for what is under way and for all that follows, and a fresh runtime for what is loaded next.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load as loadHere } from '../dist/kilim/node.js';
import { www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';
import { trapping } from './support/traps.mjs';

const here = packagePage({ opened: (page) => page.evaluate(`globalThis.trap = ${trap}`) });
after(() => assert.deepEqual(here.problems, []));

const relu = Uint8Array.from(model({ nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [2]]], outputs: [['y', [2]]] }));
const [binary, script] = ['wasm', 'js'].map((kind) => readFileSync(join(www, 'dist', 'kilim', `kilim.simd.${kind}`)));

/**
 * Two sessions of one binary; the first one traps in `call`. Gives what its calls and the other session's come to, and those of a
 * session that is loaded then. The page runs it, too.
 */
async function trap(load, model, wasm, call, options) {
  const outcome = async (promise) => {
    try {
      return [...(await promise).y.data];
    } catch (error) {
      return [error.name, error.code, error.cause?.code];
    }
  };
  const start = () => load(model, { backends: ['cpu'], wasm, ...options });
  const feeds = { x: [1, -1] };
  const [first, other] = [await start(), await start()];
  const before = await outcome(first.run(feeds));
  const [trapped, queued] = await Promise.all([outcome(first[call](feeds)), outcome(first.run(feeds))]);
  const seen = { before, trapped, queued, after: await outcome(first.run(feeds)), other: await outcome(other.run(feeds)) };
  first.close();
  other.close();
  const next = await start();
  seen.next = await outcome(next.run(feeds));
  next.close();
  return seen;
}

const right = [1, 0];
const failed = ['KilimError', 'INTERNAL', undefined];
const ended = ['KilimError', 'STATE', 'INTERNAL'];
/** The calling thread has one runtime for both sessions. */
const inOneThread = { before: right, trapped: failed, queued: ended, after: ended, other: ended, next: right };
/** Causes stay in their worker. */
const inWorkers = {
  before: right,
  trapped: failed,
  queued: ['KilimError', 'STATE', undefined],
  after: ['KilimError', 'STATE', undefined],
  other: right,
  next: right,
};

const plain = (seen) => JSON.parse(JSON.stringify(seen, (_key, value) => (value === undefined ? null : value)));

for (const [call, how] of [
  ['profile', 'unreachable'],
  ['saveCache', 'unreachable'],
  ['saveCache', 'bounds'],
  ['saveCache', 'stack'],
]) {
  const what = `${how} ${call === 'profile' ? 'in a microtask' : 'in a call'}`;
  const bytes = trapping(binary, String(script), how);
  for (const worker of [false, true]) {
    test(`${what}, ${worker ? 'in a worker' : 'in the page'}`, { timeout: 60_000 }, async () => {
      const seen = await here.page.evaluate(
        async ([model, bytes, call, worker]) => {
          const wasm = await WebAssembly.compile(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)));
          return trap(kilim.load, Uint8Array.from(model), wasm, call, { worker, variant: 'simd' });
        },
        [[...relu], bytes.toString('base64'), call, worker],
      );
      assert.deepEqual(plain(seen), plain(worker ? inWorkers : inOneThread));
    });
  }

  test(`${what}, in Node`, { timeout: 60_000 }, async () => {
    const seen = await trap(loadHere, relu, await WebAssembly.compile(bytes), call, { worker: false, variant: 'simd' });
    assert.deepEqual(plain(seen), plain(inOneThread));
  });
}
