// Builds the npm package into dist/kilim and the web app into dist/app. `cargo xtask build` runs it after the web
// binaries, which it finds in pkg/.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const www = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(www, 'dist', 'kilim');
const modules = join(www, 'dist', 'modules');
const variants = ['simd', 'relaxed', 'threads'];
const parts = ['gpu', 'tflite', 'language', 'quantized', 'rest'];
const binaries = [
  ...[...variants, 'pictures'].flatMap((name) => [`kilim.${name}.js`, `kilim.${name}.wasm`]),
  ...variants.flatMap((name) => parts.map((part) => `kilim.${name}.${part}.wasm`)),
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

/** Makes one file of a module and what it imports: a page would ask for each only when it has read who imports it. */
async function bundle(name, external = []) {
  const bundle = await rolldown({ input: join(modules, name), external, cwd: modules });
  // Names stay for those who read a stack; comments that bundlers read stay, too.
  await bundle.write({
    file: join(out, name),
    format: 'esm',
    minify: { compress: true, mangle: false, codegen: false },
    comments: { annotation: true, jsdoc: false, legal: false },
  });
  await bundle.close();
}

for (const dir of [out, modules]) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
}
tool('typescript/bin/tsc', '-p', 'package');
for (const file of binaries) {
  if (file.endsWith('.js')) copyFileSync(join(www, 'pkg', file), join(modules, file));
  // The glue of the pictures is small and goes into the bundles that may need it.
  if (file !== 'kilim.pictures.js') copyFileSync(join(www, 'pkg', file), join(out, file));
}
await bundle('index.js', [/kilim\.(simd|relaxed|threads)\.js$/]);
for (const variant of [...variants, 'crew']) await bundle(`worker.${variant}.js`);
for (const variant of variants) {
  const types = `kilim.${variant}.d.ts`;
  copyFileSync(join(www, 'package', 'src', types), join(out, types));
}
for (const licence of ['LICENSE-MIT', 'LICENSE-APACHE']) copyFileSync(join(www, '..', licence), join(out, licence));

tool('typescript/bin/tsc', '-p', 'app');
tool('vite/bin/vite.js', 'build', 'app', '--logLevel', 'warn');
writeFileSync(
  join(www, 'dist', 'index.html'),
  '<!doctype html>\n<meta http-equiv="refresh" content="0; url=app/">\n<a href="app/">Kilim</a>\n',
);
