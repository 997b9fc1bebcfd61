// Serves folders to the tests' browser, under a content security policy that allows no eval, no blob and no foreign code.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.wasm': 'application/wasm',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};
const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; img-src 'self'; style-src 'self' 'unsafe-inline'; manifest-src 'self'";

/**
 * `mounts` are a path's beginning and the folder, or the map of names to bytes, behind it; the first that fits is taken. `headers`
 * go before the policy. `asked` are the paths that were asked for.
 */
export async function serve(mounts, headers = {}) {
  const asked = [];
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
    asked.push(path);
    const mount = mounts.find(([prefix]) => path.startsWith(prefix));
    if (mount?.[1] instanceof Map) {
      const kept = mount[1].get(path.slice(mount[0].length));
      return response
        .writeHead(kept ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream', ...headers })
        .end(kept);
    }
    let file = mount && join(mount[1], path.slice(mount[0].length));
    if (file && existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html');
    for (const [name, value] of Object.entries({ 'content-security-policy': POLICY, ...headers })) response.setHeader(name, value);
    if (path === '/empty') return response.setHeader('content-type', TYPES['.html']).end('<!doctype html><title>test</title>');
    if (!file || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-length': statSync(file).size });
    createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  // A test that fails before it closes the server ends for all that.
  server.unref();
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    asked,
    close: () =>
      new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      }),
  };
}
