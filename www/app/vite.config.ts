import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  base: './',
  resolve: { alias: { kilim: path('../dist/kilim/index.js') } },
  // The model and the package lie outside of the app's folder.
  server: { fs: { allow: [path('..'), path('../../assets')] } },
  worker: { format: 'es' },
  build: { outDir: '../dist/app', emptyOutDir: true, target: 'es2022', assetsInlineLimit: 0 },
});
