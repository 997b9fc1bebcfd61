// What `npx kilim types` writes, and the examples in the documentation of exports, hold under the strictest types.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repository, www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';
import { projects, run } from './support/project.mjs';

const here = projects({ pages: false });

const kinds = model({
  nodes: [
    ['Add', ['x/1', 'x/1'], ['the sum']],
    ['Identity', ['ids'], ['ids_out']],
  ],
  inputs: [
    ['x/1', ['N']],
    ['ids', ['past + 1'], 'int64'],
  ],
  outputs: [
    ['the sum', ['N']],
    ['ids_out', ['past + 1'], 'int64'],
  ],
});

/** The documentation of each export of a module of the package, by its name. */
function documented(folder, names) {
  const files = readdirSync(folder, { recursive: true }).filter((name) => /^((pictures|sound)[\\/])?[\w.-]+\.d\.ts$/.test(name));
  const text = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  return names.map((name) => {
    const found = new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\s*export (?:declare )?(?:class|function|const|type) ${name}\\b`).exec(text);
    return [name, found?.[1] ?? ''];
  });
}

test('every export has an example, and all hold', { timeout: 60_000 }, async () => {
  const project = await here.install('types');
  const folder = join(project, 'node_modules', 'kilim', 'dist', 'kilim');
  const from = new Map();
  for (const entry of ['', 'cache', 'pictures', 'sound', 'speech', 'text', 'types']) {
    const module = entry === '' ? 'kilim' : `kilim/${entry}`;
    const text = readFileSync(join(folder, `${entry || 'index'}.d.ts`), 'utf8');
    const listed = [...text.matchAll(/^export \{ (.*) \}/gm)].flatMap(([, names]) => names.split(', '));
    const own = [...text.matchAll(/^export declare (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    for (const name of [...listed, ...own]) from.set(name, module);
  }
  assert.ok(from.size > 15, String([...from.keys()]));
  for (const [name, documentation] of documented(folder, [...from.keys()])) {
    const lines = documentation.split('\n').map((line) => line.replace(/^ *\* ?/, ''));
    const example = lines.filter((line) => line.startsWith('    ')).join('\n');
    assert.notEqual(example, '', name);
    const used = ['Session', 'Tensor', 'TextModel', ...from.keys()].filter((other) => new RegExp(`\\b${other}\\b`).test(example));
    const imports = new Set(['Session', 'Tensor', 'TextModel', ...used]);
    const head = [...imports].map((other) => `import { ${other} } from '${from.get(other)}';`);
    const given = [
      'const pixels = new Float32Array(784);',
      "const tensor: Tensor = new Tensor('float32', [1]);",
      'declare const output: Tensor, textModel: TextModel;',
      example.includes('session: Session') || example.includes('const session') ? '' : 'declare const session: Session;',
    ];
    writeFileSync(join(project, `example-${name}.ts`), [...head, ...given, example, 'export {};'].join('\n'));
  }
  await run(project, process.execPath, [join(www, 'node_modules', 'typescript/bin/tsc')]).catch(({ stdout }) => assert.fail(stdout));
});

test('types of models are written, and hold', { timeout: 120_000 }, async () => {
  const project = await here.install('typed');
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(project, 'digits.onnx'));
  writeFileSync(join(project, '2-kinds.onnx'), Uint8Array.from(kinds));
  const bin = join(project, 'node_modules', 'kilim', 'dist', 'kilim', 'node.cli.js');
  const said = await run(project, process.execPath, [bin, 'types', 'digits.onnx', '2-kinds.onnx']);
  assert.match(said, /digits\.types\.ts: `load<Digits>`\n.*2-kinds\.types\.ts: `load<Model2Kinds>`/);
  assert.match(readFileSync(join(project, '2-kinds.types.ts'), 'utf8'), /\/\*\* float32, \[N\] \*\/\n {4}"the sum": Tensor<'float32'>;/);
  await run(project, process.execPath, [join(www, 'node_modules', 'typescript/bin/tsc')]).catch(({ stdout }) => assert.fail(stdout));
  const failure = await run(project, process.execPath, [bin, 'types']).then(
    () => '',
    ({ stderr, code }) => `${code} ${stderr}`,
  );
  assert.match(failure, /^1 types is not called so: expected npx kilim types MODEL… /);
});
