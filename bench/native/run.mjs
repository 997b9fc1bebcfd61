// Times onnxruntime, RTen, tract and Kilim on the CPU, in processes that take turns. `cargo xtask bench native` calls it:
//   node bench/native/run.mjs --models FOUND.json --kilim PROGRAM --peers PROGRAM --python PROGRAM --out RECORD.json
// A process loads the model, runs it once, and then again and again; its figure of the steady state is a median.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { privateBytes } from '../common/memory.mjs';
import { commit, machine, save, short, spread } from '../common/record.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values: args } = parseArgs({
  options: {
    models: { type: 'string' },
    engines: { type: 'string', default: 'onnxruntime,rten,tract,kilim' },
    kilim: { type: 'string' },
    peers: { type: 'string' },
    python: { type: 'string' },
    out: { type: 'string' },
    on: { type: 'string', default: '1' },
    runs: { type: 'string', default: '15' },
    loads: { type: 'string', default: '3' },
  },
});

/** How often the memory of a process is looked at, in milliseconds. */
const LOOK = 20;

/** The standard output of a program, and the most bytes that it had for itself. */
async function observe(program, parameters) {
  const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, RUST_BACKTRACE: '0' } });
  let [output, errors, most] = ['', '', null];
  child.stdout.on('data', (text) => {
    output += text;
  });
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const looking = setInterval(() => {
    most = Math.max(most, privateBytes(child.pid)) || null;
  }, LOOK);
  const code = await new Promise((done, failed) => child.on('close', done).on('error', failed)).finally(() => clearInterval(looking));
  if (code !== 0) throw new Error(/^\w*error: .*/im.exec(errors)?.[0] || `${program} ended with ${code}`);
  return { output, most };
}

/** An engine of the program `bench-peers`. */
const peer = (engine) => async (model, threads, inputs) => {
  const { output, most } = await observe(args.peers, [engine, model.path, threads, args.runs, JSON.stringify(inputs)].map(String));
  return { ...JSON.parse(output), most };
};

const ENGINES = {
  async onnxruntime(model, threads, inputs) {
    const parameters = [join(here, 'onnxruntime_engine.py'), model.path, threads, args.runs, JSON.stringify(inputs)];
    const { output, most } = await observe(args.python, parameters.map(String));
    return { ...JSON.parse(output), most };
  },
  rten: peer('rten'),
  tract: peer('tract'),
  async kilim(model, threads, inputs) {
    const feeds = inputs.flatMap(({ name, file }) => ['--input', `${name}=${file}`]);
    const parameters = [
      'bench',
      model.path,
      '--json',
      '--backends',
      'cpu',
      '--threads',
      threads,
      '--warmup',
      3,
      '--runs',
      args.runs,
      ...feeds,
    ];
    const { output, most } = await observe(args.kilim, parameters.map(String));
    const { load_ms: load, first_ms: first, median_ms: median } = JSON.parse(output);
    return { load, first, median, most };
  },
};

async function compare(model, threads) {
  const folder = join(dirname(args.out), 'inputs', model.name);
  const drawn = execFileSync(args.python, [join(here, 'inputs.py'), model.path, folder, JSON.stringify(model.inputs ?? {})], {
    encoding: 'utf8',
  });
  const inputs = JSON.parse(drawn);
  const rows = args.engines.split(',').map((engine) => ({ engine, figures: [] }));
  for (let round = 0; round < Number(args.loads); round++) {
    for (const row of rows.filter(({ error }) => !error)) {
      try {
        row.figures.push(await ENGINES[row.engine](model, threads, inputs));
      } catch (error) {
        row.error = short(error);
      }
    }
  }
  return rows.map(({ engine, error, figures }) => ({
    model: model.name,
    what: model.what,
    place: threads === 1 ? '1 thread' : `${threads} threads`,
    engine,
    ...(error
      ? { error }
      : {
          load: spread(figures.map(({ load }) => load)),
          first: spread(figures.map(({ first }) => first)),
          loadAndFirst: spread(figures.map(({ load, first }) => load + first)),
          steady: spread(figures.map(({ median }) => median)),
          memory: Math.max(...figures.map(({ most }) => most)) || null,
        }),
  }));
}

const unknown = args.engines.split(',').filter((engine) => !(engine in ENGINES));
if (unknown.length) throw new Error(`there is no engine ${unknown.join(', ')}; there are ${Object.keys(ENGINES).join(', ')}`);
const before = machine();
const rows = [];
for (const model of JSON.parse(readFileSync(args.models, 'utf8'))) {
  if (model.format !== 'onnx') {
    console.log(`${model.name}: skipped, the other engines read ONNX alone`);
    continue;
  }
  for (const word of args.on.split(',')) {
    const threads = word === 'all' ? cpus().length : Number(word);
    if (!Number.isInteger(threads) || threads < 1) throw new Error(`--on takes numbers of threads and all, not ${word}`);
    const made = await compare(model, threads);
    rows.push(...made);
    for (const { place, engine, error, steady } of made)
      console.log(`${model.name}, ${place}, ${engine}: ${error ?? `steady ${steady.median.toFixed(2)} ms`}`);
  }
}
const version = execFileSync(args.python, ['-c', 'import onnxruntime; print(onnxruntime.__version__)'], { encoding: 'utf8' }).trim();
/** Pinned in peers/Cargo.toml. */
const pinned = (name) => new RegExp(`^${name} = .*?"=([\\d.]+)"`, 'm').exec(readFileSync(join(here, 'peers/Cargo.toml'), 'utf8'))[1];
save(args.out, {
  kind: 'native',
  date: new Date().toISOString().slice(0, 10),
  machine: before,
  versions: { Kilim: commit(), onnxruntime: version, RTen: pinned('rten'), tract: pinned('tract-onnx') },
  runs: Number(args.runs),
  loads: Number(args.loads),
  rows,
});
