// What `npx kilim types` writes holds under the strictest types, and is what the models are.
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
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
