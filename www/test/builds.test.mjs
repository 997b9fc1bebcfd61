// The ONNX suite, the cases of other runtimes and random graphs on the package as users get it. Its builds may differ in floats,
// since that for relaxed SIMD fuses multiplications with additions; what is no float must be the reference to the bit.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { repository, www } from './support/browser.mjs';
import { packagePage } from './support/page.mjs';
import { KINDS, references } from './support/references.mjs';

const suite = process.env.KILIM_CONFORMANCE;
const skip = suite && existsSync(suite) ? false : 'the ONNX suite is not there';
const python = ['bin/python', 'Scripts/python.exe'].map((name) => join(repository, '.venv', name)).find(existsSync);
const GRAPHS = 600;

const tests = join(repository, 'tests');
const floors = JSON.parse(readFileSync(join(tests, 'floors.json'), 'utf8'))['browser-cpu'];
const excluded = readFileSync(join(tests, 'exclusions.txt'), 'utf8')
  .split('\n')
  .filter((line) => !line.startsWith('#'))
  .map((line) => line.split(/\s/)[0]);

const graphs = mkdtempSync(join(tmpdir(), 'kilim-graphs-'));
const here = packagePage({
  folders: [
    ['/support/', join(www, 'test', 'support')],
    ['/suite/', suite ?? graphs],
    ...KINDS.map((kind) => [`/references/${kind}/`, references(kind)]),
    ['/graphs/', graphs],
  ],
  opened: (page) =>
    page.evaluate(async () => {
      globalThis.suite = await import('/support/suite.mjs');
    }),
});
after(() => rmSync(graphs, { recursive: true }));

/** Cases that failed, but for those that cannot pass. */
const unexcused = (wrong) => wrong.filter(({ name }) => !excluded.includes(name)).map(({ name, why }) => `${name}: ${why}`);

const optionsOf = (variant) => ({ backends: ['cpu'], worker: false, variant });

// On the other build it is what `tests/tests/browser.rs` runs.
test('the ONNX suite on relaxed SIMD', { skip, timeout: 900_000 }, async () => {
  const { kinds, wrong } = await here.page.evaluate((options) => suite.runSuite(kilim, '/suite', options), optionsOf('relaxed'));
  assert.deepEqual(
    unexcused(wrong).filter((why) => !/: (UNSUPPORTED|NO_BACKEND):/.test(why)),
    [],
  );
  for (const [kind, floor] of Object.entries(floors)) assert.ok(kinds[kind] >= floor, `${kind}: ${kinds[kind]} of ${floor}`);
});

test('what other runtimes make of small models, with the same integers on both builds', { timeout: 900_000 }, async () => {
  const results = [];
  for (const variant of ['simd', 'relaxed']) {
    const all = {};
    for (const kind of KINDS) {
      const { wrong, integers } = await here.page.evaluate(
        ([kind, options]) => suite.runSuite(kilim, `/references/${kind}`, options),
        [kind, optionsOf(variant)],
      );
      assert.deepEqual(unexcused(wrong), [], `${kind} on ${variant}`);
      all[kind] = integers;
    }
    results.push(all);
  }
  assert.deepEqual(results[1], results[0]);
});

test('random graphs on both builds', { skip: python ? false : 'there is no .venv', timeout: 900_000 }, async () => {
  const drawn = spawnSync(python, [join(repository, 'tools', 'fuzz', 'main.py'), '--seed', '2', '--cases', String(GRAPHS)], {
    maxBuffer: 2 ** 28,
  });
  assert.equal(drawn.status, 0, String(drawn.stderr));
  writeFileSync(join(graphs, 'graphs.bin'), drawn.stdout);
  for (const variant of ['simd', 'relaxed']) {
    const { passed, wrong } = await here.page.evaluate(
      (options) => suite.runGraphs(kilim, '/graphs/graphs.bin', options),
      optionsOf(variant),
    );
    assert.deepEqual(unexcused(wrong), [], variant);
    assert.ok(passed > GRAPHS * 0.85, `only ${passed} of ${GRAPHS} ran on ${variant}`);
  }
});
