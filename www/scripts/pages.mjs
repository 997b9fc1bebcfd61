// What a page fetches of the package, compressed by brotli as servers do, for kinds of models and backends. Fails where it is more than
// is allowed.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const www = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(www, 'dist', 'kilim');
const pkg = join(www, 'pkg');

/**
 * Pages, the kinds of their models and backends, kilobytes of brotli that each may be, and scripts beside the usual ones. A build
 * differs with the folder that it is made in, by one in a hundred mostly, for TNN and Tengine by six: the cut into parts does. By more than
 * that a page may not grow unseen.
 */
const PAGES = [
  ['pictures, ONNX, CPU', [], 365],
  ['pictures, ONNX, WebGPU', ['gpu'], 472],
  ['pictures, TFLite, CPU', ['tflite'], 398],
  ['quantised, TFLite, CPU', ['tflite_quantized'], 452],
  ['language, ONNX, CPU', ['language'], 412],
  ['text, ONNX, CPU', ['language', 'text'], 520, ['text.js']],
  ['text, GGUF, CPU', ['gguf', 'text'], 592, ['text.js']],
  ['speech, ONNX, CPU', ['speech'], 542, ['speech.js']],
  ['language, ONNX, WebGPU', ['language', 'gpu', 'gpu_language'], 548],
  ["onnxruntime's interface, ONNX, CPU", [], 376, ['ort.js']],
  ['ncnn, CPU', ['ncnn'], 452],
  ['MNN, CPU', ['mnn'], 472],
  ['TNN, CPU', ['tnn'], 460],
  ['Tengine, CPU', ['tengine'], 438],
  ['PNNX, CPU', ['pnnx'], 464],
];
/** The page that fetches every part. */
const EVERYTHING = 1850;
const BUILDS = ['relaxed', 'simd', 'threads'];

const sizes = new Map();
function brotli(file) {
  let size = sizes.get(file);
  if (size === undefined) {
    const bytes = readFileSync(join(dist, file));
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_LGWIN]: 22,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    };
    size = brotliCompressSync(bytes, { params }).length;
    sizes.set(file, size);
  }
  return size;
}

/** What each build's models of a kind need. */
const needs = Object.fromEntries(
  await Promise.all(BUILDS.map(async (build) => [build, (await import(join(pkg, `kilim.${build}.needs.js`))).needs])),
);
const every = readdirSync(dist).flatMap((name) => /^kilim\.relaxed\.(\w+)\.wasm$/.exec(name)?.[1] ?? []);

const tooLarge = [];
console.log(`what pages fetch, kB of brotli${' '.repeat(6)}${BUILDS.map((build) => build.padStart(10)).join('')}`);
const rows = PAGES.map(([page, kinds, most, scripts = []]) => {
  const parts = (build) => new Set(kinds.flatMap((kind) => needs[build][kind]));
  return { page, most, scripts, parts };
});
rows.push({ page: 'everything', most: EVERYTHING, scripts: ['local.js'], parts: () => every });
for (const { page, parts, most, scripts } of rows) {
  const kilobytes = BUILDS.map((build) => {
    const files = ['index.js', ...scripts, `worker.${build}.js`, `kilim.${build}.wasm`];
    for (const part of parts(build)) files.push(`kilim.${build}.${part}.wasm`);
    if (build === 'threads') files.push('worker.crew.js');
    return files.reduce((sum, file) => sum + brotli(file), 0) / 1000;
  });
  console.log(`${page.padEnd(36)}${kilobytes.map((size) => size.toFixed(1).padStart(10)).join('')}`);
  if (kilobytes[0] > most) tooLarge.push(`${page}: ${kilobytes[0].toFixed(1)} of ${most} kB`);
}
if (tooLarge.length) {
  console.error(`pages fetch more than they may:\n${tooLarge.join('\n')}`);
  process.exit(1);
}
