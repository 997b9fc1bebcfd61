import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { broken } from './links.mjs';
import { misplaced } from './pages.mjs';
import { render } from './render.mjs';

const SITE = {
  repository: 'https://example.com/kilim',
  files: ['README.md', 'docs/guide/load.md', 'docs/plan.svg', 'tools/x.mjs'],
  assets: new Set(),
};

test('links that lead nowhere are named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kilim-site-'));
  mkdirSync(join(folder, 'a'));
  writeFileSync(
    join(folder, 'index.html'),
    '<h1 id="top">x</h1><a href="a/b.html#c">1</a><a href="#top">2</a><a href="https://example.com/none">3</a>',
  );
  writeFileSync(
    join(folder, 'a', 'b.html'),
    '<p id="c"></p><a href="../index.html#bottom">1</a><img src="none.png"><a class="x" href="..">2</a>',
  );
  const { looked, wrong } = broken(folder);
  rmSync(folder, { recursive: true });
  assert.equal(looked, 5);
  assert.deepEqual(wrong, [
    'a/b.html links to ../index.html#bottom, and there is no such place',
    'a/b.html links to none.png, which is not there',
  ]);
});

test('links of documents lead to pages, files and the repository', () => {
  const text = '# A\n[1](guide/load.md#sources) [2](../tools/x.mjs) [3](../tools) ![4](plan.svg) [5](#a)\n';
  const { title, html } = render('docs/formats.md', text, SITE);
  assert.equal(title, 'A');
  const links = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link);
  assert.deepEqual(links, [
    '#a',
    'guide/load.html#sources',
    'https://example.com/kilim/blob/main/tools/x.mjs',
    'https://example.com/kilim/tree/main/tools',
    'plan.svg',
    '#a',
  ]);
  assert.deepEqual([...SITE.assets], ['docs/plan.svg']);
  assert.throws(() => render('docs/formats.md', '[1](none.md)', SITE), /none\.md, which is not there/);
});

test('rows of a table are found by the code in their first cell', () => {
  const { found } = render('docs/guide/errors.md', '# E\n\n| code | |\n|---|---|\n| `LIMIT` | x |\n| y | `NONE` |\n', SITE);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['e', 'LIMIT'],
  );
});

test('a document without a place is named', () => {
  assert.ok(misplaced(['docs/new.md', 'tools/zoo/README.md']).includes('docs/new.md has no place in site/pages.mjs'));
});
