// The JavaScript in the documents: all of it holds under the strictest types, and the page of the README answers.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repository, www } from './support/browser.mjs';
import { projects, run } from './support/project.mjs';
import { serve } from './support/server.mjs';

const here = projects();

/** The blocks of the documents in one of `languages` that are not part of a file, which a comment above them would name. */
function blocks(languages) {
  const folders = { '.': false, docs: true, examples: true, www: false };
  return Object.entries(folders)
    .flatMap(([folder, recursive]) => readdirSync(join(repository, folder), { recursive }).map((name) => join(folder, name)))
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .flatMap((document) => {
      const text = readFileSync(join(repository, document), 'utf8');
      const found = text.matchAll(/(<!-- \S+ -->\n)?^( *)```(\w+)\n(.*?)^ *```$/gms);
      return [...found].map(([all, source, indent, language, code]) => ({
        place: `${document}:${text.slice(0, text.indexOf(all)).split('\n').length}`,
        source,
        language,
        code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      }));
    })
    .filter(({ source, language }) => source === undefined && languages.includes(language));
}

test('the TypeScript in documents, and what else users write, holds under the strictest types', async () => {
  const project = await here.install('types');
  const found = blocks(['js', 'ts']);
  assert.ok(found.length > 25, `${found.length} blocks`);
  for (const { place, code } of found) {
    // What imports and exports nothing would share its names with all others.
    writeFileSync(join(project, `${place.replaceAll(/\W+/g, '-')}.ts`), `${code}\nexport {};\n`);
  }
  const compiler = join(www, 'node_modules', 'typescript/bin/tsc');
  await run(project, process.execPath, [compiler]).catch(({ stdout }) => assert.fail(stdout));
  // The compiler looks at them.
  writeFileSync(join(project, 'wrong.ts'), "import { load } from 'kilim';\nload('model.onnx', { nope: true });\n");
  await assert.rejects(run(project, process.execPath, [compiler]), ({ stdout }) => /nope/.test(stdout));
  rmSync(join(project, 'wrong.ts'));
});

test('the page of the README answers', async () => {
  const pages = blocks(['html']);
  assert.deepEqual(pages.length, 1);
  const project = await here.install('plain');
  writeFileSync(join(project, 'index.html'), pages[0].code);
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'digits.onnx'));
  const policy = "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";
  const server = await serve([['/', project]], { 'content-security-policy': policy });
  try {
    const { text, problems } = await here.answerAt(`${server.url}/`);
    assert.equal(text.split(' ').map(Number).filter(Number.isFinite).length, 10);
    assert.deepEqual(problems, []);
  } finally {
    await server.close();
  }
});
