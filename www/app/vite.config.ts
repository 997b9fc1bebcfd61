import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import type { Plugin } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** The package that the app is built with; `scripts/build.mjs` names another where it makes one. */
const kilim = process.env.KILIM_PACKAGE ?? path('../dist/kilim');

/** Names the app's files, and their contents together, in the service worker that keeps them. */
const namesFiles: Plugin = {
  name: 'names-files',
  apply: 'build',
  writeBundle({ dir = '' }) {
    const worker = join(dir, 'sw.js');
    const files = readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .map((name) => name.replaceAll('\\', '/'))
      .filter((name) => name !== 'sw.js' && !name.endsWith('.map') && statSync(join(dir, name)).isFile())
      .sort();
    const hash = createHash('sha256');
    for (const name of files) hash.update(name).update(readFileSync(join(dir, name)));
    const code = readFileSync(worker, 'utf8');
    const named = code.replace('__KILIM_FILES__', JSON.stringify(files)).replace('__KILIM_VERSION__', hash.digest('hex').slice(0, 16));
    if (/__KILIM_/.test(named) || named === code) throw new Error('sw.js has no place for the names of files');
    writeFileSync(worker, named);
  },
};

export default defineConfig({
  plugins: [namesFiles],
  base: './',
  resolve: {
    alias: [
      { find: /^kilim$/, replacement: join(kilim, 'index.js') },
      { find: /^kilim\/pictures$/, replacement: join(kilim, 'pictures.js') },
      { find: /^kilim\/sound$/, replacement: join(kilim, 'sound.js') },
      { find: /^kilim\/text$/, replacement: join(kilim, 'text.js') },
      { find: /^kilim\/isolation$/, replacement: join(kilim, 'isolation.js') },
      { find: /^kilim\/types$/, replacement: join(kilim, 'types.js') },
      { find: /^kilim\/speech$/, replacement: join(kilim, 'speech.js') },
    ],
  },
  // The model and the package lie outside of the app's folder.
  server: { fs: { allow: [path('..'), path('../../assets')] } },
  worker: { format: 'es' },
  build: {
    outDir: '../dist/app',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: { index: path('index.html'), talk: path('talk.html'), listen: path('listen.html'), sw: path('src/offline/worker.ts') },
      // A service worker is known by its address, and is in charge of what is beside it and below.
      output: { entryFileNames: ({ name }) => (name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js') },
    },
  },
});
