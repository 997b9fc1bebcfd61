// The programs that the web app writes for a model hold: TypeScript is checked, the others are read by their languages' own tools.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { drop, appPage, dropModel, launchApp, test } from './support/app.mjs';
import { repository, www } from './support/browser.mjs';
import { model } from './support/onnx.mjs';

let app;
let folder;
before(async () => {
  app = await launchApp();
  folder = mkdtempSync(join(tmpdir(), 'kilim-code-'));
});
after(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Names that no language takes as they are, several types, a free dimension and a scalar. */
const odd = model({
  nodes: [
    ['Relu', ['1st "picture"'], ['relu']],
    ['Cast', ['ids'], ['wide'], { int: { to: 1 } }],
    ['Add', ['wide', 'scale'], ["the sum's"]],
    ['Identity', ['half'], ['same\\half']],
  ],
  inputs: [
    ['1st "picture"', [2, 3, 32, 24]],
    ['ids', ['N'], 'int64'],
    ['scale', []],
    ['half', [4], 'float16'],
  ],
  outputs: [
    ['relu', [2, 3, 32, 24]],
    ["the sum's", ['N']],
    ['same\\half', [4], 'float16'],
  ],
});

async function codeOf(page, language, files) {
  await page.getByTestId(`code-${language}`).check({ force: true });
  return Promise.all(files.map((name) => page.getByTestId(`source-of-${name}`).textContent()));
}

/** Fails where the package's types do not allow the program. */
function typeChecked(name, main, types, typesFile) {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, 'main.ts'), main);
  writeFileSync(join(project, typesFile), types);
  const paths = { kilim: [join(www, 'dist', 'kilim', 'index.d.ts')] };
  const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, noUnusedLocals: true, noEmit: true, paths };
  Object.assign(compilerOptions, { target: 'es2022', module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'], types: [] });
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
  const tsc = join(www, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    execFileSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8', stdio: 'pipe' });
  } catch ({ stdout }) {
    assert.fail(`${stdout}\n${main}`);
  }
}

/** Reads a program by `command`, which gets the file's path behind its arguments. */
function parsed(file, text, command, ...args) {
  const path = join(folder, file);
  writeFileSync(path, text);
  try {
    return execFileSync(command, [...args, path], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    assert.fail(`${error.stderr ?? error}\n${text}`);
  }
}

async function allHold(page, name, typesFile) {
  typeChecked(name, ...(await codeOf(page, 'typescript', ['main.ts', 'types'])), typesFile);
  parsed(`${name}.mjs`, ...(await codeOf(page, 'javascript', ['main.js'])), process.execPath, '--check');
  const [rust] = await codeOf(page, 'rust', ['main.rs']);
  parsed(`${name}.rs`, rust, 'rustfmt', '--edition', '2024', '--config', 'newline_style=Unix');
  const [python] = await codeOf(page, 'python', ['reference.py']);
  parsed(`${name}.py`, python, 'python3', '-c', 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read())');
  return { rust, python };
}

test('the programs for the digits hold, and say what the page runs on', async () => {
  const { page, done } = await appPage(app);
  await page.getByTestId('backends-cpu').check({ force: true });
  await page.waitForFunction(() => /backends: \['cpu'\]/.test(document.querySelector('[data-testid=code]')?.textContent));
  await page.getByRole('tab', { name: 'Code' }).click();
  const { rust, python } = await allHold(page, 'digits', 'digits.types.ts');
  assert.match(rust, /\("image", Tensor::zeros\(DType::F32, &\[1, 1, 28, 28\]\)\?\)/);
  assert.match(python, /"image": np\.zeros\(\(1, 1, 28, 28\), np\.float32\)/);
  await done();
});

test('the programs hold for names that no language takes as they are, and for pictures', async () => {
  const { page, done } = await appPage(app);
  await dropModel(page, 'odd names-2.onnx', odd);
  await page.getByRole('tab', { name: 'Code' }).click();
  await allHold(page, 'odd', 'odd names-2.types.ts');
  await drop(page, [{ name: 'five.png', type: 'image/png', bytes: readFileSync(join(repository, 'assets', 'digit-5.png')) }]);
  await page.getByTestId('code-javascript').check({ force: true });
  await page.waitForFunction(() =>
    /Tensor\.from\(\[picture, picture\], \{ size:/.test(document.querySelector('[data-testid=code]').textContent),
  );
  await allHold(page, 'pictures', 'odd names-2.types.ts');
  // The types are those of `npx kilim types`.
  const [types] = await codeOf(page, 'typescript', ['types']);
  writeFileSync(join(folder, 'odd names-2.onnx'), Uint8Array.from(odd));
  execFileSync(process.execPath, [join(www, 'dist', 'kilim', 'node.cli.js'), 'types', join(folder, 'odd names-2.onnx')]);
  assert.equal(types, readFileSync(join(folder, 'odd names-2.types.ts'), 'utf8'));
  await done();
});
