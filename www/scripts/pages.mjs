// What a page fetches of the package, compressed by brotli as servers do, for kinds of models and backends. Fails where it is more than
// is allowed.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), 'dist', 'kilim');

/** Parts of the runtime, kilobytes of brotli that each may be, about one more than it is, and scripts beside the usual ones. */
const PAGES = [
  ['pictures, ONNX, CPU', [], 349],
  ['pictures, ONNX, WebGPU', ['gpu', 'several'], 451],
  ['pictures, TFLite, CPU', ['tflite'], 410],
  ['quantised, TFLite, CPU', ['tflite', 'quantized'], 505],
  ['language, ONNX, CPU', ['language', 'quantized'], 553],
  ['text, ONNX, CPU', ['language', 'text', 'quantized'], 617, ['text.js']],
  ['text, GGUF, CPU', ['gguf', 'language', 'text', 'quantized'], 673, ['text.js']],
  ['speech, ONNX, CPU', ['language', 'text', 'speech', 'quantized'], 640, ['speech.js']],
  ['language, ONNX, WebGPU', ['gpu', 'several', 'shaders', 'language', 'quantized'], 712],
  ["onnxruntime's interface, ONNX, CPU", [], 359, ['ort.js']],
  [
    'everything',
    [
      'gpu',
      'shaders',
      'tflite',
      'ncnn',
      'mnn',
      'tengine',
      'tnn',
      'pnnx',
      'gguf',
      'language',
      'text',
      'speech',
      'quantized',
      'more',
      'rest',
      'seldom',
      'several',
    ],
    1633,
    ['local.js'],
  ],
];
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

const tooLarge = [];
console.log(`what pages fetch, kB of brotli${' '.repeat(6)}${BUILDS.map((build) => build.padStart(10)).join('')}`);
for (const [page, parts, most, scripts = []] of PAGES) {
  const kilobytes = BUILDS.map((build) => {
    const files = [
      'index.js',
      ...scripts,
      `worker.${build}.js`,
      `kilim.${build}.wasm`,
      ...parts.map((part) => `kilim.${build}.${part}.wasm`),
    ];
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
