// Times onnxruntime, RTen, tract and Kilim on the CPU, in processes that take turns. `cargo xtask bench native` calls it:
//   node bench/native/run.mjs --models FOUND.json --kilim PROGRAM --peers PROGRAM --python PROGRAM --out RECORD.json
// A process loads the model, runs it once, and then again and again; its figure of the steady state is a median. Memory is that of
// a process that is not timed: looking at it takes a core from time to time, and two threads need two.
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

/** How long the runs of a process take together at least, in milliseconds: the first runs on several threads are slower. */
const STEADY = 1000;

/** Runs of the process whose memory is looked at. */
const FEW = 5;

/** The standard output of a program, and the most bytes that it had for itself if that is wanted. */
async function start(program, parameters, look) {
  const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, RUST_BACKTRACE: '0' } });
  let [output, errors, most] = ['', '', null];
  child.stdout.on('data', (text) => {
    output += text;
  });
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const looking =
    look &&
    setInterval(() => {
      most = Math.max(most, privateBytes(child.pid)) || null;
    }, LOOK);
  const code = await new Promise((done, failed) => child.on('close', done).on('error', failed)).finally(() => clearInterval(looking));
  if (code !== 0) throw new Error(/^\w*error: .*/im.exec(errors)?.[0] || `${program} ended with ${code}`);
  return { output, most };
}

/** What starts an engine of the program `bench-peers`. */
const peer = (engine) => (model, threads, runs, inputs) => [
  args.peers,
  [engine, model.path, threads, runs, JSON.stringify(inputs)],
  (figures) => figures,
];

/** For each engine the program, its parameters, and what takes the figures out of what it prints. */
const ENGINES = {
  onnxruntime: (model, threads, runs, inputs) => [
    args.python,
    [join(here, 'onnxruntime_engine.py'), model.path, threads, runs, JSON.stringify(inputs)],
    (figures) => figures,
  ],
  rten: peer('rten'),
  tract: peer('tract'),
  kilim: (model, threads, runs, inputs) => {
    const feeds = inputs.flatMap(({ name, file }) => ['--input', `${name}=${file}`]);
    const options = ['--json', '--backends', 'cpu', '--threads', threads, '--warmup', 3, '--runs', runs];
    return [
      args.kilim,
      ['bench', model.path, ...options, ...feeds],
      ({ load_ms: load, first_ms: first, median_ms: median }) => ({ load, first, median }),
    ];
  },
};

/** The figures of one process. */
async function time(engine, model, threads, runs, inputs, look = false) {
  const [program, parameters, figures] = ENGINES[engine](model, threads, runs, inputs);
  const { output, most } = await start(program, parameters.map(String), look);
  return { ...figures(JSON.parse(output)), most };
}

async function compare(model, threads) {
  const folder = join(dirname(args.out), 'inputs', model.name);
  const drawn = execFileSync(args.python, [join(here, 'inputs.py'), model.path, folder, JSON.stringify(model.inputs ?? {})], {
    encoding: 'utf8',
  });
  const inputs = JSON.parse(drawn);
  const rows = args.engines.split(',').map((engine) => ({ engine, figures: [] }));
  for (let round = 0; round <= Number(args.loads); round++) {
    for (const row of rows.filter(({ error }) => !error)) {
      try {
        if (round === 0) {
          const { median, most } = await time(row.engine, model, threads, FEW, inputs, true);
          row.memory = most;
          row.runs = Math.max(Number(args.runs), Math.ceil(STEADY / median));
        } else {
          row.figures.push(await time(row.engine, model, threads, row.runs, inputs));
        }
      } catch (error) {
        row.error = short(error);
      }
    }
  }
  return rows.map(({ engine, error, figures, memory }) => ({
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
          memory,
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
