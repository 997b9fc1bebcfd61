import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** The package that the app is built with; `scripts/build.mjs` names another where it makes one. */
const kilim = process.env.KILIM_PACKAGE ?? path('../dist/kilim');

export default defineConfig({
  base: './',
  resolve: {
    alias: [
      { find: /^kilim$/, replacement: join(kilim, 'index.js') },
      { find: /^kilim\/pictures$/, replacement: join(kilim, 'pictures.js') },
      { find: /^kilim\/sound$/, replacement: join(kilim, 'sound.js') },
      { find: /^kilim\/text$/, replacement: join(kilim, 'text.js') },
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
    rolldownOptions: { input: [path('index.html'), path('talk.html'), path('listen.html')] },
  },
});
