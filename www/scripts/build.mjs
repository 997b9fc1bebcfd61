// Builds the npm package into dist/kilim and the web app into dist/app. `cargo xtask build` runs it after the web
// binaries, which it finds in pkg/.
//   --variants simd   a package of these variants alone, for pages, without the decoders of pictures
//   --out FOLDER      in place of dist
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';

const www = dirname(dirname(fileURLToPath(import.meta.url)));
const VARIANTS = ['simd', 'relaxed', 'threads'];
const { values: args } = parseArgs({
  options: {
    variants: { type: 'string', default: VARIANTS.join(',') },
    out: { type: 'string', default: join(www, 'dist') },
  },
});
const dist = resolve(args.out);
const out = join(dist, 'kilim');
const modules = join(dist, 'modules');
/** Scripts of wasm-bindgen, which are files of their own where a runtime is in the caller's thread. */
const GLUE = /kilim\.(simd|relaxed|threads)\.js$/;
/** How modules import the one that has the session's classes. */
const SESSIONS = /^(\.\.?\/)+index\.js$/;
/** Entries that the session's module fetches on demand. */
const ENTRIES = /^\.\/(pictures|downloads)\.js$/;
const variants = args.variants.split(',');
const whole = VARIANTS.every((variant) => variants.includes(variant));
const parts = [
  'gpu',
  'shaders',
  'gpu_rare',
  'tflite',
  'ncnn',
  'mnn',
  'tengine',
  'tnn',
  'pnnx',
  'gguf',
  'text',
  'speech',
  'brought',
  'common1',
  'common2',
  'common3',
  'common4',
  'common5',
  'common6',
  'common7',
  'common8',
  'common9',
  'common10',
  'common11',
  'common12',
  'common13',
  'common14',
  'common15',
  'common16',
  'common17',
  'common18',
  'common19',
  'common20',
  'common21',
  'common22',
  'common23',
  'common24',
  'common25',
  'common26',
  'common27',
  'common28',
  'common29',
  'common30',
  'common31',
  'common32',
  'rare1',
  'rare2',
  'rare3',
  'rare4',
  'rare5',
  'rare6',
  'rare7',
  'rare8',
  'rare9',
  'rare10',
  'rare11',
  'rare12',
  'rare13',
  'rare14',
  'rare15',
  'rare16',
];
const binaries = [
  ...[...variants, ...(whole ? ['pictures'] : [])].flatMap((name) => [`kilim.${name}.js`, `kilim.${name}.wasm`]),
  ...variants.flatMap((name) => [`kilim.${name}.needs.js`, ...parts.map((part) => `kilim.${name}.${part}.wasm`)]),
  // For pages that want one file: the build that runs everywhere.
  'kilim.simd.whole.wasm',
];

const missing = binaries.filter((file) => !existsSync(join(www, 'pkg', file)));
if (missing.length) {
  console.error(`www/pkg lacks ${missing.join(', ')}; run \`cargo xtask build\``);
  process.exit(1);
}

/** Runs a tool of node_modules. */
function tool(script, ...args) {
  execFileSync(process.execPath, [join(www, 'node_modules', script), ...args], { cwd: www, stdio: 'inherit' });
}

/** Makes one file of a module and what it imports: a page would ask for each only when it has read who imports it. What it fetches on
 * demand is a file of its own, which uses the module's own classes. */
async function bundle(name, { as = name, chunks = '[name].js', external = [], plugins = [], banner = '', minify = true } = {}) {
  const bundle = await rolldown({
    input: join(modules, name),
    external,
    plugins,
    cwd: modules,
    preserveEntrySignatures: 'allow-extension',
    // The modules may be in a folder elsewhere.
    resolve: { modules: [join(www, 'node_modules')] },
    onLog(level, log, report) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
      report(level, log);
    },
  });
  // Source maps have the names, for those who read a stack; comments that bundlers read stay.
  const { output } = await bundle.write({
    dir: out,
    entryFileNames: as,
    chunkFileNames: chunks,
    format: 'esm',
    minify,
    sourcemap: minify,
    banner,
    comments: { annotation: true, jsdoc: false, legal: false },
  });
  await bundle.close();
  // Bundlers look for addresses as strings, which the minifier writes as templates of the same length.
  for (const { fileName } of output.filter(({ type }) => type === 'chunk')) {
    const text = readFileSync(join(out, fileName), 'utf8');
    writeFileSync(join(out, fileName), text.replace(/(new URL\()`([^`$]*)`(,import\.meta\.url)/g, "$1'$2'$3"));
  }
}

/** Has the modules in a folder stand in place of those of the same path in the package: each may import the one whose place it has. */
function insteadOf(folder) {
  const own = join(modules, folder);
  return {
    name: folder,
    resolveId(source, importer) {
      if (!importer || !source.startsWith('.')) return null;
      const path = relative(modules, resolve(dirname(importer), source));
      return existsSync(join(own, path)) && importer !== join(own, path) ? join(own, path) : null;
    },
  };
}

/** Makes the file that programs in Node import in place of `name`. What matches `index` is the one of these that has the session's classes. */
async function bundleForNode(name, as, { index, banner } = {}) {
  if (!whole) return;
  const beside = {
    name: 'beside',
    resolveId(source) {
      const file = index?.test(source) ? 'node.js' : ENTRIES.test(source) ? `node.${source.slice(2)}` : GLUE.exec(source)?.[0];
      return file ? { id: `./${file}`, external: true } : null;
    },
  };
  // Bundlers of servers would take the addresses for those of a page.
  const plain = { name: 'plain', transform: (code) => code.replaceAll(', import.meta.url)', ', String(import.meta.url))') };
  // Nobody waits for it on a network: it stays readable.
  await bundle(name, {
    as,
    chunks: 'node.[name].js',
    external: /^node:/,
    plugins: [beside, insteadOf('node'), plain],
    banner,
    minify: false,
  });
}

/** The scripts of workers that these variants have. */
const scripts = (some) => (some.includes('threads') ? [...some, 'crew'] : some);

/** Tells the modules which variants there are. In place of the others are empty modules, so that bundlers find what the package names. */
function leaveOut() {
  writeFileSync(join(modules, 'built.js'), `export const BUILT = ${JSON.stringify(variants)};\n`);
  writeFileSync(
    join(modules, 'kilim.pictures.js'),
    "export const createGlue = () => { throw new Error('this package has no decoders of pictures'); };\n",
  );
  const others = VARIANTS.filter((variant) => !variants.includes(variant));
  for (const variant of others) {
    writeFileSync(join(out, `kilim.${variant}.js`), 'export {};\n');
    writeFileSync(join(modules, `kilim.${variant}.needs.js`), 'export const needs = {};\n');
  }
  for (const script of scripts(others)) writeFileSync(join(out, `worker.${script}.js`), 'export {};\n');
}

/** Makes a module of a shader that scripts launch: without comments and the indentation of its lines. */
function writeShader(path, name) {
  const text = readFileSync(join(www, '..', 'shaders', 'page', path), 'utf8');
  const short = text.replace(/\/\/.*/g, '').replace(/\s*\n\s*/g, '\n');
  writeFileSync(join(modules, name), `export const SHADER = ${JSON.stringify(short)};\n`);
}

/** Copies the types of onnxruntime-common to where those of `ort.js` read them, so that the package needs no other. */
function copyOrtTypes() {
  const own = 'onnxruntime-common';
  const types = join(www, 'node_modules', own, 'dist', 'esm');
  mkdirSync(join(out, own), { recursive: true });
  const copy = (from, to, edit) => writeFileSync(to, edit(readFileSync(from, 'utf8')));
  const withoutMap = (text) => text.replace(/^\/\/# sourceMappingURL.*$/m, '');
  for (const file of readdirSync(types).filter((name) => name.endsWith('.d.ts'))) copy(join(types, file), join(out, own, file), withoutMap);
  for (const [file, folder] of [['ort.d.ts', '.'], ...readdirSync(join(out, 'ort')).map((name) => [join('ort', name), '..'])])
    copy(join(out, file), join(out, file), (text) => text.replaceAll(`'${own}'`, `'${folder}/${own}/index.js'`));
}

for (const dir of [out, modules]) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
}
tool('typescript/bin/tsc', '-p', 'package', '--outDir', modules, '--declarationDir', out);
tool('typescript/bin/tsc', '-p', 'package/tsconfig.instead.json', '--outDir', modules);
copyOrtTypes();
writeShader('picture.wgsl', 'painter-shader.js');
if (!whole) leaveOut();
for (const file of binaries) {
  if (file.endsWith('.js')) copyFileSync(join(www, 'pkg', file), join(modules, file));
  // The glue of the pictures is small and goes into the bundles that may need it, as do the parts that models need.
  if (file !== 'kilim.pictures.js' && !file.endsWith('.needs.js')) copyFileSync(join(www, 'pkg', file), join(out, file));
}
await bundle('index.js', { external: [GLUE, ENTRIES] });
// For service workers, which import nothing later.
if (whole) await bundle('index.js', { as: 'single.js', plugins: [insteadOf('single')] });
// Sessions with backends and importers of the page, or with pictures for a GPU, import these, by their addresses.
for (const name of ['backend.js', 'webnn.js', 'importer.js', 'painter.js']) await bundle(name);
await bundleForNode('index.js', 'node.js');
await bundleForNode(join('node', 'worker.js'), 'node.worker.js');
await bundleForNode('worker.crew.js', 'node.crew.js');
await bundleForNode(join('node', 'cli.js'), 'node.cli.js', { banner: '#!/usr/bin/env node' });
// Pages call it, and service workers answer with it.
await bundle('isolation.js');
// A service worker is in charge of what lies beside it, so that it is copied elsewhere: one file.
await bundle(join('isolation', 'worker.js'), { as: 'isolation.worker.js' });
// Shares the session's classes with the page's own import.
const index = [/[\\/]modules[\\/]index\.js$/, /^\.\.?\/index\.js$/];
const HOLDERS = {
  'cache.js': '',
  'downloads.js': '',
  'pictures.js': '',
  'sound.js': '',
  'types.js': '',
  'text.js': '/* Holds @huggingface/tokenizers (Apache-2.0) and @huggingface/jinja (MIT), by Hugging Face. */',
  'speech.js': '/* Holds @huggingface/tokenizers (Apache-2.0), by Hugging Face. */',
  'ort.js': '/* Holds onnxruntime-common (MIT), by Microsoft. */',
};
for (const [name, banner] of Object.entries(HOLDERS)) {
  await bundle(name, { external: [...index, ENTRIES], banner });
  await bundleForNode(name, `node.${name}`, { index: SESSIONS, banner });
}
for (const script of scripts(variants)) await bundle(`worker.${script}.js`);
for (const variant of variants) {
  const types = `kilim.${variant}.d.ts`;
  copyFileSync(join(www, 'package', 'src', types), join(out, types));
}
for (const licence of ['LICENSE-MIT', 'LICENSE-APACHE']) copyFileSync(join(www, '..', licence), join(out, licence));
// The package onnxruntime-common has no file of it.
copyFileSync(join(www, 'package', 'LICENSE-onnxruntime-common'), join(out, 'LICENSE-onnxruntime-common'));
// Those of what `text.js` and `speech.js` hold.
for (const library of ['tokenizers', 'jinja'])
  copyFileSync(join(www, 'node_modules', '@huggingface', library, 'LICENSE'), join(out, `LICENSE-huggingface-${library}`));

if (whole) tool('typescript/bin/tsc', '-p', 'app');
process.env.KILIM_PACKAGE = out;
tool('vite/bin/vite.js', 'build', 'app', '--logLevel', 'warn', '--outDir', join(dist, 'app'));
writeFileSync(join(dist, 'index.html'), '<!doctype html>\n<meta http-equiv="refresh" content="0; url=app/">\n<a href="app/">Kilim</a>\n');
