// The applications in examples/, with the package as it is installed. The Next project is in bundlers/.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { alphabet, bigrams, END, TEMPLATE, tokenizer as bytes } from './support/language.mjs';
import { model, tensor } from './support/onnx.mjs';
import { example, projects, run } from './support/project.mjs';
import { serve } from './support/server.mjs';

const here = projects();
const digits = join(repository, 'assets', 'digits.onnx');
/** The pages have an import map in their text. */
const policy = { 'content-security-policy': "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'" };

test('the page with a camera answers, frame after frame', async () => {
  const project = await here.install(example('camera'));
  copyFileSync(digits, join(project, 'digits.onnx'));
  const server = await serve([['/', project]], policy);
  const browser = await launch(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
  try {
    const { page, problems } = await open(browser, `${server.url}/`);
    await page.waitForFunction(() => /^\d \(\d+ %\)$/.test(document.getElementById('answer').textContent), null, { timeout: 60_000 });
    // Later frames are answered, too.
    await page.evaluate(() => {
      document.getElementById('answer').textContent = '';
    });
    await page.waitForFunction(() => document.getElementById('answer').textContent !== '', null, { timeout: 60_000 });
    assert.deepEqual(problems, []);
  } finally {
    await Promise.all([browser.close(), server.close()]);
  }
});

/** A tokenizer of whole words. */
const tokenizer = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: { type: 'Lowercase' },
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: null,
  decoder: null,
  model: { type: 'WordPiece', vocab: { '[UNK]': 0, cats: 1, sleep: 2, dogs: 3 }, unk_token: '[UNK]' },
};

/** A sentence encoder whose vectors are rows of a table. */
const encoder = model({
  nodes: [['Gather', ['table', 'input_ids'], ['last_hidden_state']]],
  inputs: [['input_ids', ['batch', 'sequence'], 'int64']],
  outputs: [['last_hidden_state', ['batch', 'sequence', 3]]],
  initializers: [tensor('table', [4, 3], { floats: [0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0] })],
});

test('the page with text compares sentences', async () => {
  const project = await here.install(example('text'));
  writeFileSync(join(project, 'model.onnx'), Uint8Array.from(encoder));
  writeFileSync(join(project, 'tokenizer.json'), JSON.stringify(tokenizer));
  const server = await serve([['/', project]], policy);
  const { page, problems } = await open(here.browser, `${server.url}/`);
  try {
    await page.waitForFunction(() => document.getElementById('answer').textContent, null, { timeout: 60_000 });
    const compare = async (first, second) => {
      await page.fill('#first', first);
      await page.fill('#second', second);
      await page.evaluate(() => {
        document.getElementById('answer').textContent = '';
      });
      await page.click('button');
      await page.waitForFunction(() => document.getElementById('answer').textContent);
      return page.locator('#answer').textContent();
    };
    assert.equal(await compare('Cats sleep', 'dogs sleep'), '1.000');
    assert.equal(await compare('cats', 'sleep'), '0.000');
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
    await server.close();
  }
});

test('the page that chats answers, and goes on', async () => {
  const project = await here.install(example('chat'));
  const folder = {
    'config.json': JSON.stringify({ eos_token_id: END }),
    'tokenizer.json': bytes(),
    'chat_template.jinja': TEMPLATE,
    'model.onnx': bigrams(alphabet).bytes,
  };
  mkdirSync(join(project, 'model'), { recursive: true });
  for (const [name, content] of Object.entries(folder)) writeFileSync(join(project, 'model', name), content);
  const server = await serve([['/', project]], policy);
  const { page, problems } = await open(here.browser, `${server.url}/`);
  try {
    await page.waitForFunction(() => document.getElementById('status').textContent === 'Say something.', null, { timeout: 60_000 });
    for (const [said, lines] of [
      ['hello', 2],
      ['more', 4],
    ]) {
      await page.fill('#said', said);
      await page.click('#send');
      await page.waitForFunction(
        (lines) =>
          document.querySelectorAll('li').length === lines &&
          /words a second/.test(document.getElementById('status').textContent) &&
          document.getElementById('send').textContent === 'Send',
        lines,
      );
    }
    assert.deepEqual(await page.locator('li').allTextContents(), ['hello', 'abcdefghijk', 'more', 'abcdefghijk']);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
    await server.close();
  }
});

test('the Vite project holds its types, is built, and names digits', async () => {
  const project = await here.install(example('vite'));
  mkdirSync(join(project, 'public'), { recursive: true });
  copyFileSync(digits, join(project, 'public', 'digits.onnx'));
  const tools = join(www, 'node_modules');
  await run(project, process.execPath, [join(tools, 'typescript/bin/tsc')]).catch(({ stdout }) => assert.fail(stdout));
  await run(project, process.execPath, [join(tools, 'vite/bin/vite.js'), 'build', '--logLevel', 'error']);
  const server = await serve([['/', join(project, 'dist')]]);
  try {
    assert.match(await here.digitAt(`${server.url}/`, 3), /^3 \(\d+ %\)$/);
  } finally {
    await server.close();
  }
});
