// The app's page that writes what is said.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, www } from './support/browser.mjs';
import { references } from './support/references.mjs';
import { serve } from './support/server.mjs';
import { RATE, RECORDING, SAID, sound } from './support/tones.mjs';
import { wav } from './support/wav.mjs';

let browser;
let server;
let scratch;
const MODEL = 'whisper/';
before(async () => {
  browser = await launch();
  scratch = mkdtempSync(join(tmpdir(), 'kilim-listen-'));
  mkdirSync(join(scratch, MODEL));
  for (const [name, bytes] of references('speech')) if (name.startsWith(MODEL)) writeFileSync(join(scratch, name), bytes);
  writeFileSync(join(scratch, 'recording.wav'), wav(sound(RECORDING), RATE));
  server = await serve([['/', join(www, 'dist', 'app')]]);
});
after(async () => {
  await browser?.close();
  await server?.close();
  if (scratch) rmSync(scratch, { recursive: true });
});

test('a recording of the visitor is written, part by part', async () => {
  const { page, problems } = await open(browser, `${server.url}/listen.html`);
  try {
    await page.getByTestId('backends-cpu').check({ force: true });
    await page.getByTestId('folder').setInputFiles(join(scratch, MODEL));
    await page.waitForFunction(() => document.body.dataset.state === 'ready');
    assert.equal(await page.getByTestId('language').locator('option').count(), 4);
    const written = async () => {
      await page.waitForFunction(() => document.querySelector('[data-testid=speed]').textContent !== '');
      return page.getByTestId('parts').locator('li').allTextContents();
    };
    await page.getByTestId('file').setInputFiles(join(scratch, 'recording.wav'));
    const parts = await written();
    assert.equal(parts.map((part) => part.replace(/^\d:\d\d/, '')).join(' '), SAID);
    assert.match(parts.at(-1), /^0:05/);
    assert.match(await page.getByTestId('speed').textContent(), /^0:06 in .* times as fast, language en$/);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
  }
});
