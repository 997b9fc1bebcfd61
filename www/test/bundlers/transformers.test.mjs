// transformers.js, as it is, on `kilim/ort`: by aliases of a bundler, by an import map, and by the symbol that it looks for.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { open, www } from '../support/browser.mjs';
import { projects, run } from '../support/project.mjs';
import { references } from '../support/references.mjs';
import { serve } from '../support/server.mjs';
import { RATE, RECORDING, sound } from '../support/tones.mjs';

const here = projects();

/** Whisper, laid out as models on the hub are. */
const whisper = new Map(
  [...references('speech')]
    .filter(([name]) => name.startsWith('whisper/'))
    .map(([name, bytes]) => [name.replace(/([^/]+\.onnx)$/, 'onnx/$1'), bytes]),
);
const special = { bos_token: '<s>', eos_token: '<|endoftext|>', pad_token: '<pad>' };
whisper.set('whisper/tokenizer_config.json', Buffer.from(JSON.stringify({ tokenizer_class: 'WhisperTokenizer', ...special })));
const spectrum = JSON.parse(whisper.get('whisper/preprocessor_config.json'));
whisper.set('whisper/preprocessor_config.json', Buffer.from(JSON.stringify({ ...spectrum, processor_class: 'WhisperProcessor' })));

const samples = [...sound(RECORDING)].slice(0, 2 * RATE);
/** What onnxruntime-web makes of them. */
const SAID = ' 123 45';

let serving;
/** A server of the pages, made once. */
const pages = () => (serving ??= make());
after(async () => (await serving)?.close());

async function make() {
  const project = await here.install('transformers');
  const vite = join(www, 'node_modules', 'vite', 'bin', 'vite.js');
  await run(project, process.execPath, [vite, 'build', '--logLevel', 'error', '--base', '/alias/']);
  // Import maps are scripts in a page's text.
  const policy = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; worker-src 'self'";
  return serve(
    [
      ['/models/', whisper],
      ['/alias/', join(project, 'dist')],
      ['/', project],
    ],
    { 'content-security-policy': policy },
  );
}

for (const [way, path, devices] of [
  ['aliases of Vite', 'alias/', ['wasm', 'webgpu']],
  ['an import map', 'map.html', ['wasm']],
  // A runtime that is given has no devices by name.
  ['the symbol', 'symbol.html', ['auto']],
]) {
  test(`transformers.js hears what it hears on onnxruntime-web: ${way}`, { timeout: 120_000 }, async () => {
    const { page, problems } = await open(here.browser, `${(await pages()).url}/${path}`);
    await page.waitForFunction(() => document.getElementById('answer').textContent, null, { timeout: 60_000 });
    for (const device of devices)
      assert.equal(await page.evaluate(([samples, device]) => hear(samples, device), [samples, device]), SAID, device);
    const foreign = await page.evaluate(() =>
      performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith(location.origin) || /ort-wasm/.test(name)),
    );
    await page.close();
    assert.deepEqual([problems, foreign], [[], []]);
  });
}
