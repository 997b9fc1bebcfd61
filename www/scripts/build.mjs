// Builds the npm package into dist/kilim and the web app into dist/app. `cargo xtask build` runs it after the web
// binaries, which it finds in pkg/.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const www = dirname(dirname(fileURLToPath(import.meta.url)));
const out = join(www, 'dist', 'kilim');
const binaries = ['simd', 'relaxed'].flatMap((variant) => [`kilim.${variant}.js`, `kilim.${variant}.wasm`]);

const missing = binaries.filter((file) => !existsSync(join(www, 'pkg', file)));
if (missing.length) {
  console.error(`www/pkg lacks ${missing.join(', ')}; run \`cargo xtask build\``);
  process.exit(1);
}

/** Runs a tool of node_modules. */
function tool(script, ...args) {
  execFileSync(process.execPath, [join(www, 'node_modules', script), ...args], { cwd: www, stdio: 'inherit' });
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
tool('typescript/bin/tsc', '-p', 'package');
for (const file of binaries) copyFileSync(join(www, 'pkg', file), join(out, file));
for (const variant of ['simd', 'relaxed']) {
  const types = `kilim.${variant}.d.ts`;
  copyFileSync(join(www, 'package', 'src', types), join(out, types));
}
for (const licence of ['LICENSE-MIT', 'LICENSE-APACHE']) copyFileSync(join(www, '..', licence), join(out, licence));

tool('typescript/bin/tsc', '-p', 'app');
tool('vite/bin/vite.js', 'build', 'app', '--logLevel', 'warn');
writeFileSync(join(www, 'dist', 'index.html'), '<!doctype html>\n<meta http-equiv="refresh" content="0; url=app/">\n<a href="app/">Kilim</a>\n');
