// The app's page that talks to a language model.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { alphabet, bigrams, END, TEMPLATE, tokenizer } from './support/language.mjs';
import { serve } from './support/server.mjs';

let browser;
let server;
let folder;
const files = new Map([
  ['config.json', Buffer.from(JSON.stringify({ eos_token_id: END, max_position_embeddings: 64 }))],
  ['tokenizer.json', Buffer.from(tokenizer())],
  ['tokenizer_config.json', Buffer.from(JSON.stringify({ chat_template: TEMPLATE }))],
  ['onnx/model.onnx', bigrams(alphabet).bytes],
]);
before(async () => {
  browser = await launch();
  folder = join(mkdtempSync(join(tmpdir(), 'kilim-talk-')), 'letters');
  mkdirSync(join(folder, 'onnx'), { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
  server = await serve([
    ['/letters/', files],
    ['/', join(www, 'dist', 'app')],
  ]);
});
after(async () => {
  await browser?.close();
  await server?.close();
  if (folder) rmSync(join(folder, '..'), { recursive: true });
});

test('a folder of the visitor answers, turn after turn', async () => {
  const { page, problems } = await open(browser, `${server.url}/talk.html`);
  try {
    await page.getByTestId('backends-cpu').check({ force: true });
    await page.getByTestId('folder').setInputFiles(folder);
    await page.waitForFunction(() => document.body.dataset.state === 'ready');
    assert.equal(await page.getByTestId('model-name').textContent(), 'letters');
    const turns = async (count) => {
      await page.waitForFunction(
        (count) =>
          document.querySelectorAll('[data-testid=talk] li').length === count &&
          document.querySelector('[data-testid=send]').textContent === 'Send',
        count,
      );
      return page.getByTestId('talk').locator('li').allTextContents();
    };
    // Behind the mark that ends a turn stands no letter: the model says the first ones.
    await page.getByTestId('say').fill('hello');
    await page.getByTestId('say').press('Enter');
    assert.deepEqual(await turns(2), ['hello', 'abcdefghijk']);
    assert.match(await page.getByTestId('speed').textContent(), /words a second, 12 words; the first after .* behind 7$/);
    await page.getByTestId('say').fill('more');
    await page.getByTestId('send').click();
    assert.deepEqual(await turns(4), ['hello', 'abcdefghijk', 'more', 'abcdefghijk']);
    assert.match(await page.getByTestId('speed').textContent(), /known already/);
    await page.getByTestId('plain').check();
    await page.getByTestId('say').fill('xyz');
    await page.getByTestId('send').click();
    assert.deepEqual((await turns(6)).slice(4), ['xyz', 'é!']);
    assert.match(await page.getByTestId('summary').textContent(), /cpu/);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
  }
});

test('a folder by its address, and one that is none', async () => {
  const { page, problems } = await open(browser, `${server.url}/talk.html`);
  try {
    const load = async (path) => {
      await page.getByTestId('url').fill(`${server.url}/${path}`);
      await page.getByRole('button', { name: 'Load' }).click();
    };
    await load('none');
    await page.getByTestId('error').waitFor();
    assert.match(await page.getByTestId('error').textContent(), /IO the folder has no settings/);
    await load('letters');
    await page.waitForFunction(() => document.body.dataset.state === 'ready');
    assert.equal(await page.getByTestId('error').count(), 0);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
  }
});
