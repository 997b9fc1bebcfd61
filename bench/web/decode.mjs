// Times how engines go on with a text in one Chromium, in turns. `cargo xtask bench decode` calls it:
//   node bench/web/decode.mjs --model MODEL --kilim www/dist/kilim --out RECORD.json
// MODEL is a folder of onnxruntime-genai's builder, or a decoder with growing caches in one file. For each place and each length of a
// prompt: loads, each in a browser context of its own; the prompt, some times; then words behind it, ten at a time or more.
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { privateBytes } from '../common/memory.mjs';
import { commit, machine, save, short, spread } from '../common/record.mjs';
import { bench, chromiumOptions, openPage, place, timed, version } from './browser.mjs';
import { serve } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    model: { type: 'string' },
    kilim: { type: 'string' },
    out: { type: 'string' },
    engines: { type: 'string', default: 'onnxruntime-web,kilim' },
    on: { type: 'string', default: '1' },
    prompts: { type: 'string', default: '128,1024' },
    words: { type: 'string', default: '100' },
    loads: { type: 'string', default: '3' },
    timeout: { type: 'string', default: '300' },
  },
});
/** Words of a sample, at least. */
const WORDS = 10;
/** Milliseconds that a sample takes, about, where words are short. */
const SAMPLE = 50;

const model = resolve(args.model);
const alone = model.endsWith('.onnx');
const folder = alone ? dirname(model) : model;
const name = basename(model, '.onnx');
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': args.kilim };
const server = await serve({ ...packages, 'folder/': folder, 'bench/': bench }, Object.keys(packages));
const browser = await chromium.launch(chromiumOptions);
const within = (promise) => timed(promise, Number(args.timeout));
let visits = 0;

/** A page with the model in it. */
async function visit(browser, engine, { gpu, threads }) {
  const page = await openPage(browser, `${server.base}/visit${visits++}/bench/web/decode.html`);
  try {
    return {
      page,
      load: await within(page.evaluate((given) => bench.load(...given), [engine, { gpu, threads }, alone ? `${name}.onnx` : null])),
    };
  } catch (error) {
    await page.context().close();
    throw error;
  }
}

/** Bytes that the model has in an engine, with the engine, behind a prompt and some words; in a browser of its own. */
async function memory(engine, where, prompt) {
  const own = await chromium.launchServer(chromiumOptions);
  try {
    const connected = await chromium.connect(own.wsEndpoint());
    await openPage(connected, `${server.base}/visit${visits++}/bench/web/decode.html`);
    const before = privateBytes(own.process().pid);
    const { page } = await visit(connected, engine, where);
    await within(page.evaluate((count) => bench.prompt(count), prompt));
    await within(page.evaluate((count) => bench.go(count), WORDS));
    return before && privateBytes(own.process().pid) - before;
  } finally {
    await own.close();
  }
}

/** One row for each engine. */
async function compare(where, prompt) {
  const rows = args.engines.split(',').map((engine) => ({ engine, loads: [], prompts: [], samples: [], words: [] }));
  const live = () => rows.filter(({ error }) => !error);
  async function each(job) {
    for (const row of live()) {
      try {
        await job(row);
      } catch (error) {
        row.error = short(error);
      }
    }
  }
  for (let round = 0; round < Number(args.loads); round++) {
    await each(async (row) => {
      await row.page?.context().close();
      const { page, load } = await visit(browser, row.engine, where);
      row.page = page;
      row.loads.push(load);
    });
  }
  // The first is thrown away: what it compiles is part of the load.
  for (let round = 0; round <= Number(args.loads); round++) {
    await each(async (row) => {
      const { took, word } = await within(row.page.evaluate((count) => bench.prompt(count), prompt));
      if (round > 0) row.prompts.push(took);
      row.words = [word];
    });
  }
  // As many words for all, so that the caches are as long.
  let together = WORDS;
  for (let count = 0; count < Number(args.words); count += WORDS) {
    let fastest = Number.POSITIVE_INFINITY;
    await each(async (row) => {
      const { took, words } = await within(row.page.evaluate((count) => bench.go(count), together));
      if (count > 0) row.samples.push(took);
      row.words.push(...words);
      fastest = Math.min(fastest, took);
    });
    if (count === 0) together = Math.max(WORDS, Math.ceil(SAMPLE / fastest));
  }
  await each(async (row) => {
    await row.page.context().close();
    row.memory = await memory(row.engine, where, prompt);
  });
  const [first] = live();
  return rows.map(({ engine, error, loads, prompts, samples, memory, words }) => ({
    model: `${name} ${prompt}`,
    what: `${name}, ${prompt}`,
    place: where.name,
    engine,
    ...(error
      ? { error }
      : {
          load: spread(loads),
          prompt: spread(prompts),
          steady: spread(samples),
          memory,
          words,
          // The place of the first word that is another.
          same: words.findIndex((word, i) => word !== first.words[i]),
        }),
  }));
}

const here = machine();
const rows = [];
const chromiumVersion = browser.version();
try {
  for (const where of args.on.split(',').map(place)) {
    for (const prompt of args.prompts.split(',').map(Number)) {
      const made = await compare(where, prompt);
      rows.push(...made);
      for (const { what, engine, error, load, prompt, steady, same } of made) {
        const told =
          error ??
          `load ${load.median.toFixed(0)} ms, prompt ${prompt.median.toFixed(0)} ms, a word ${steady.median.toFixed(2)} ms, same ${same}`;
        console.log(`${what}, ${where.name}, ${engine}: ${told}`);
      }
    }
  }
} finally {
  await browser.close();
  server.close();
}
save(args.out, {
  kind: 'decode',
  date: new Date().toISOString().slice(0, 10),
  machine: here,
  versions: { Chromium: chromiumVersion, Kilim: commit(), 'onnxruntime-web': version('onnxruntime-web') },
  loads: Number(args.loads),
  rows,
});
