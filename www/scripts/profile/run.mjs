// Tells which points of a build are passed by what most pages do. `cargo xtask build` runs it: the folder of the build that counts,
// `kilim.mjs` and `kilim.wasm`, in; out a line for each kind of run, its name and the numbers of the points.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { references } from '../../test/support/references.mjs';
import { installGpu } from './gpu.mjs';
import { PICTURES } from './models.mjs';
import { TFLITE } from './tflite.mjs';

const [folder, out] = process.argv.slice(2);
const { createGlue } = await import(pathToFileURL(join(folder, 'kilim.mjs')));
const module = await WebAssembly.compile(readFileSync(join(folder, 'kilim.wasm')));
const BYTES = { float64: 8, int64: 8, uint64: 8, float32: 4, int32: 4, uint32: 4, float16: 2, bfloat16: 2, int16: 2, uint16: 2 };
const digits = readFileSync(new URL('../../../assets/digits.onnx', import.meta.url));

/** What is passed while `work` has a new instance. */
async function passed(work) {
  let exports;
  const glue = createGlue((of) => (exports = of));
  const threads = WebAssembly.Module.imports(module).some(({ kind }) => kind === 'memory');
  await glue.init({ module_or_path: module });
  // The thread with the session does what it offers to others, who never come.
  if (threads) glue.setWorkers(1, () => undefined);
  await work(glue);
  return Object.entries(exports)
    .filter(([name, of]) => name.startsWith('passed ') && of.value)
    .map(([name]) => Number(name.slice(7)));
}

const zeros = ({ name, type }, dims) => {
  const length = dims.reduce((a, b) => a * b, 1) * (BYTES[type] ?? 1);
  return { kind: 'tensor', name, type, dims, bytes: new Uint8Array(length) };
};

async function load(glue, bytes, options = {}) {
  const file = new glue.WasmFile(bytes.length);
  file.write(0, Uint8Array.from(bytes));
  return glue.WasmSession.load([file], [''], { backends: ['cpu'], pictures: () => Promise.reject(new Error('no pictures')), ...options });
}

/** Does what a page does with a session. */
async function use(glue, bytes, runs, options) {
  const session = await load(glue, bytes, options);
  const [inputs] = [session.inputs(), session.outputs(), session.report()];
  for (const dims of runs) {
    const feeds = inputs.map((port) => zeros(port, dims ?? (port.dims ?? []).map((d) => (typeof d === 'number' ? d : 2))));
    await session.run(feeds, 60_000, () => false);
    session.revision();
    await session.run(feeds, undefined, undefined);
    JSON.parse((await session.profile(feeds, undefined, undefined))[1]);
  }
  session.report();
  session.free();
}

/** What goes wrong in pages: errors are told without another fetch. */
async function mistakes(glue) {
  const failed = async (attempt) =>
    attempt().then(
      () => {
        throw new Error(`this should have failed: ${attempt}`);
      },
      (error) => String(error.message),
    );
  for (const bytes of [Buffer.from('<!doctype html><html>'), digits.subarray(0, 500), Buffer.alloc(0)])
    await failed(() => load(glue, bytes));
  await failed(() => load(glue, digits, { backends: ['gpu'] }));
  const session = await load(glue, digits);
  const [port] = session.inputs();
  const right = zeros(port, [1, 1, 28, 28]);
  for (const feeds of [
    [],
    [zeros(port, [1, 1, 3])],
    [zeros(port, [1, 3, 28, 28])],
    [{ ...right, name: 'picture' }],
    [zeros({ ...port, type: 'int32' }, [1, 1, 28, 28])],
  ]) {
    await failed(async () => session.run(feeds, undefined, undefined));
  }
  // So short a run may end before it is asked to.
  await session.run([right], 60_000, () => true).catch(() => undefined);
  await session.run([right], 0, undefined).catch(() => undefined);
  session.abort();
  session.free();
}

/** The cases of a kind whose names match, with inputs of zeros. What cannot be run so is left out. */
async function cases(glue, kind, names) {
  const files = references(kind);
  for (const { path, model = 'model.onnx', name } of JSON.parse(files.get('index.json')).cases) {
    if (!names.test(name)) continue;
    await use(glue, files.get(`${path}/${model}`), [undefined]).catch(() => undefined);
  }
}

/** Texts: recorded decoders take the sizes of their inputs from one step to the next, so that caches grow. */
async function texts(glue) {
  const files = references('language');
  for (const { path, files: recorded, data_sets: steps } of JSON.parse(files.get('index.json')).cases) {
    const session = await load(glue, files.get(`${path}/model.onnx`));
    const ports = session.inputs();
    for (let step = 0; step < steps; step++) {
      const dims = (i) => JSON.parse(/\[.*?\]/.exec(recorded[`test_data_set_${step}/input_${i}.pb`])[0]);
      await session.run(
        ports.map((port, i) => zeros(port, dims(i))),
        undefined,
        undefined,
      );
    }
    session.free();
  }
}

const profile = {
  core: await passed(async (glue) => {
    for (const [, bytes, runs] of PICTURES) await use(glue, bytes, runs);
    await use(glue, digits, [
      [1, 1, 28, 28],
      [3, 1, 28, 28],
    ]);
    await mistakes(glue);
  }),
  tflite_pictures: await passed(async (glue) => {
    for (const [, bytes] of TFLITE) await use(glue, bytes, [undefined]);
  }),
  tflite: await passed((glue) => cases(glue, 'tflite', /./)),
  quantized: await passed(async (glue) => {
    await cases(glue, 'opsets', /quantize|qlinear|integer/);
    await cases(glue, 'microsoft', /quantize|qlinear|integer/);
  }),
  language: await passed(async (glue) => {
    await cases(
      glue,
      'opsets',
      /^(gather|where|expand|shape|range|cumsum|less|greater|equal|not|and|pow|sqrt|erf|reduce|layer|trilu|cast|constant|squeeze|unsqueeze|slice|split|concat|topk|tile|scatter|nonzero|if|loop|attention|rms|rotary)/,
    );
    await cases(glue, 'microsoft', /attention|rotary|norm|gelu|matmul_\d_bits|gather_block|embed/);
    await texts(glue);
  }),
};
installGpu();
profile.gpu = await passed(async (glue) => {
  for (const [, bytes, runs] of PICTURES) await use(glue, bytes, runs, { backends: ['wgpu', 'cpu'] });
  for (const [, bytes] of TFLITE) await use(glue, bytes, [undefined], { backends: ['wgpu', 'cpu'] });
  await use(
    glue,
    digits,
    [
      [1, 1, 28, 28],
      [3, 1, 28, 28],
    ],
    { backends: ['wgpu', 'cpu'] },
  );
});
writeFileSync(
  out,
  Object.entries(profile)
    .map(([kind, points]) => `${kind} ${points.join(' ')}\n`)
    .join(''),
);
for (const [kind, points] of Object.entries(profile)) console.log(`${kind}: ${points.length} points`);
