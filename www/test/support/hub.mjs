// A server with the interface of a model hub, and files whose connection breaks off.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

export const COMMIT = '0123456789abcdef0123456789abcdef01234567';
export const LATER = 'fedcba9876543210fedcba9876543210fedcba98';

export const sha256 = (bytes, form = 'base64') => createHash('sha256').update(bytes).digest(form);

/** What a listing says of a file: of a large one also its hash. */
const sibling =
  (large) =>
  ([rfilename, bytes]) => ({
    rfilename,
    size: bytes.length,
    ...(large.includes(rfilename) && { lfs: { sha256: sha256(bytes, 'hex'), size: bytes.length } }),
  });

/**
 * `repositories` are by name `{ files, large, token, commit }`; `files` are at `/files/NAME`, as `{ bytes, tag, drops, changes, ranges }`: `drops` are the
 * bytes after which the connection breaks off, one after another; `changes` is the tag after the first of them.
 */
export async function serveHub(repositories, files = {}) {
  const asked = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const { range, authorization } = request.headers;
    asked.push([request.method, path, range].filter(Boolean).join(' '));
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'authorization, range');
    response.setHeader('access-control-expose-headers', 'ETag');
    if (request.method === 'OPTIONS') return response.writeHead(204).end();
    const [, list, revision] = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path) ?? [];
    const [, owned, commit, name] = /^\/([^/]+\/[^/]+)\/resolve\/([0-9a-f]{40})\/(.+)$/.exec(path) ?? [];
    const repository = repositories[list ?? owned];
    if (repository) {
      if (repository.token && authorization !== `Bearer ${repository.token}`) return response.writeHead(401).end('{}');
      if (list) {
        if (![repository.commit, 'main'].includes(revision)) return response.writeHead(404).end('{}');
        const siblings = Object.entries(repository.files).map(sibling(repository.large ?? []));
        return response.end(repository.answer ?? JSON.stringify({ id: list, sha: repository.commit, siblings }));
      }
      const bytes = repository.sent?.[name] ?? repository.files[name];
      if (commit !== repository.commit || !bytes) return response.writeHead(404).end();
      return response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
    }
    const file = path.startsWith('/files/') ? files[path.slice('/files/'.length)] : undefined;
    if (!file) return response.writeHead(404).end();
    send(file, range, request.method, response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    asked,
    repositories,
    files,
    close: () =>
      new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      }),
  };
}

function send(file, range, method, response) {
  const { bytes, tag, ranges = true } = file;
  if (tag) response.setHeader('etag', tag);
  // Browsers fill up what they have in their own cache.
  const [, first = '0', last = ''] = (ranges && /^bytes=(\d+)-(\d*)$/.exec(range ?? '')) || [];
  const [from, to] = [Number(first), last === '' ? bytes.length : Number(last) + 1];
  const part = from > 0 || last !== '';
  response.writeHead(part ? 206 : 200, {
    'content-length': to - from,
    ...(part && { 'content-range': `bytes ${from}-${to - 1}/${bytes.length}` }),
  });
  if (method === 'HEAD') return response.end();
  const drop = file.drops?.shift();
  if (drop === undefined) return response.end(bytes.subarray(from, to));
  if (file.changes) file.tag = file.changes;
  response.write(bytes.subarray(from, Math.min(to, from + drop)), () => setTimeout(() => response.destroy(), 50));
}
