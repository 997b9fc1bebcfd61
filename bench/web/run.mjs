// Times the engines of this folder in one Chromium, in turns. `cargo xtask bench web` calls it:
//   node bench/web/run.mjs --models FOUND.json --kilim www/dist/kilim --out RECORD.json
// For each model: loads and first runs, each in a browser context of its own with nothing in its cache; then steady runs in the pages of
// the last loads; then, each in a browser of its own, what the engine and the model have added to its memory after some runs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { difference } from '../common/inputs.mjs';
import { privateBytes } from '../common/memory.mjs';
import { commit, machine, save, short, spread } from '../common/record.mjs';
import { takeTurns } from '../common/rounds.mjs';
import { bench, chromiumOptions, openPage, place, timed, version } from './browser.mjs';
import { serve } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    models: { type: 'string' },
    kilim: { type: 'string' },
    before: { type: 'string' },
    out: { type: 'string' },
    engines: { type: 'string', default: 'onnxruntime-web,litert,kilim' },
    on: { type: 'string', default: '1' },
    runs: { type: 'string', default: '15' },
    loads: { type: 'string', default: '3' },
    timeout: { type: 'string', default: '300' },
  },
});

/** What reads each format. */
const READS = { onnx: ['onnxruntime-web', 'before', 'kilim'], tflite: ['litert', 'before', 'kilim'] };

const browser = await chromium.launch(chromiumOptions);
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': args.kilim };
if (args.before) packages['bench/before/'] = args.before;
const server = await serve({ ...packages, 'bench/': bench }, Object.keys(packages));

const within = (promise) => timed(promise, Number(args.timeout));
let visits = 0;

const open = (browser, name) => openPage(browser, `${server.base}/${name}/bench/web/page.html`);

/** A page with the model in it, after its first run. */
async function visit(engine, { gpu, threads }, model) {
  const name = `visit${visits++}`;
  const page = await open(browser, name);
  const context = page.context();
  try {
    const load = await within(page.evaluate((given) => bench.load(...given), [engine, { gpu, threads }, model.inputs]));
    return { context, page, load, ...(await within(page.evaluate(() => bench.first()))), fetched: server.fetched(name) };
  } catch (error) {
    await context.close();
    throw error;
  }
}

/** Bytes that the model has in an engine after three runs, with the engine, in a browser of its own. */
async function memory(engine, { gpu, threads }, model) {
  const own = await chromium.launchServer(chromiumOptions);
  try {
    const page = await open(await chromium.connect(own.wsEndpoint()), `visit${visits++}`);
    const before = privateBytes(own.process().pid);
    await within(page.evaluate((given) => bench.load(...given), [engine, { gpu, threads }, model.inputs]));
    await within(page.evaluate(() => bench.time(3)));
    return before && privateBytes(own.process().pid) - before;
  } finally {
    await own.close();
  }
}

/** One row for each engine. */
async function compare(model, where) {
  const wanted = args.engines.split(',').filter((engine) => READS[model.format].includes(engine));
  const rows = wanted.map((engine) => ({ engine, loads: [], firsts: [] }));
  for (let round = 0; round < Number(args.loads); round++) {
    for (const row of rows.filter(({ error }) => !error)) {
      try {
        await row.visit?.context.close();
        row.visit = await visit(row.engine, where, model);
        row.loads.push(row.visit.load);
        row.firsts.push(row.visit.first);
      } catch (error) {
        row.error = short(error);
      }
    }
  }
  const live = rows.filter(({ error }) => !error);
  for (const row of live) row.time = (times) => within(row.visit.page.evaluate((n) => bench.time(n), times));
  await takeTurns(live, Number(args.runs));
  for (const row of live) row.memory = await memory(row.engine, where, model);
  const reference = live.find(({ error }) => !error)?.visit.outputs;
  for (const row of live) await row.visit.context.close();
  return rows.map(({ engine, error, loads, firsts, samples, memory, visit: last }) => ({
    model: model.name,
    what: model.what,
    place: where.name,
    engine,
    ...(error
      ? { error }
      : {
          load: spread(loads),
          first: spread(firsts),
          loadAndFirst: spread(loads.map((load, i) => load + firsts[i])),
          steady: spread(samples),
          memory,
          fetched: last.fetched,
          difference: difference(last.outputs, reference),
        }),
  }));
}

const here = machine();
const rows = [];
const chromiumVersion = browser.version();
try {
  for (const model of JSON.parse(readFileSync(args.models, 'utf8'))) {
    server.setModel(model.path);
    for (const where of args.on.split(',').map(place)) {
      const made = await compare(model, where);
      rows.push(...made);
      for (const { engine, error, steady, load, first } of made) {
        console.log(
          `${model.name}, ${where.name}, ${engine}: ${error ?? `load ${load.median.toFixed(0)} ms, first ${first.median.toFixed(1)} ms, steady ${steady.median.toFixed(2)} ms`}`,
        );
      }
    }
  }
} finally {
  await browser.close();
  server.close();
}
save(args.out, {
  kind: 'web',
  date: new Date().toISOString().slice(0, 10),
  machine: here,
  versions: {
    Chromium: chromiumVersion,
    Kilim: commit(),
    'onnxruntime-web': version('onnxruntime-web'),
    'LiteRT.js': version('@litertjs/core'),
  },
  runs: Number(args.runs),
  loads: Number(args.loads),
  rows,
});
