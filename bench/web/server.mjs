// Serves the pages of a bench, cross-origin isolated, and counts what each visit fetches of an engine.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const TYPES = {
  '.html': 'text/html',
  '.mjs': 'text/javascript',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.json': 'application/json',
};
const COMPRESSED = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** The size of a file as servers send it, by brotli of quality 9. */
const sizes = new Map();
function sent(file) {
  if (!sizes.has(file)) sizes.set(file, brotliCompressSync(readFileSync(file), COMPRESSED).length);
  return sizes.get(file);
}

/**
 * `folders` by their paths in a visit, `engines` the paths of those that count. A visit's page is `${base}/${visit}/…`, its model
 * `${base}/${visit}/model`.
 */
export async function serve(folders, engines) {
  const visits = new Map();
  let model;
  const find = (path) => {
    if (path === 'model') return model;
    const mount = Object.keys(folders).find((prefix) => path.startsWith(prefix));
    return mount && join(folders[mount], normalize(`/${path.slice(mount.length)}`));
  };
  const server = createServer((request, response) => {
    const [, visit, ...rest] = decodeURIComponent(request.url.split('?')[0]).split('/');
    const path = rest.join('/');
    const file = find(path);
    response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
    response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
    if (!file || !existsSync(file) || !statSync(file).isFile()) {
      response.statusCode = 404;
      return response.end();
    }
    const fetched = visits.get(visit) ?? new Set();
    visits.set(visit, engines.some((prefix) => path.startsWith(prefix)) ? fetched.add(file) : fetched);
    response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
    return response.end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    base: `http://127.0.0.1:${server.address().port}`,
    setModel(file) {
      model = file;
    },
    /** Bytes that the visit has fetched of its engine: in all, and compressed. */
    fetched(visit) {
      const files = [...(visits.get(visit) ?? [])];
      const sum = (size) => files.reduce((all, file) => all + size(file), 0);
      return { bytes: sum((file) => statSync(file).size), brotli: sum(sent) };
    },
    close: () => server.close(),
  };
}
