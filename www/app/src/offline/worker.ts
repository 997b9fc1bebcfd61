// The app's service worker: keeps the app's own files, so that it opens without a network, with the headers of isolation. Models are not
// its business.
import { isolated } from 'kilim/isolation';

/** What TypeScript's library of pages does not have. */
interface Scope extends EventTarget {
  registration: { scope: string };
  skipWaiting(): Promise<void>;
}
interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Extendable {
  request: Request;
  respondWith(response: Promise<Response>): void;
}
interface Told extends Extendable {
  data: unknown;
  ports: readonly MessagePort[];
}

/** The app's files by their paths, and a name for all of them together; `vite.config.ts` writes both into the built worker. */
const FILES = JSON.parse('__KILIM_FILES__') as string[];
const VERSION = '__KILIM_VERSION__';

const PREFIX = 'kilim-app-';
const scope = globalThis as unknown as Scope;
const addressOf = (path: string) => new URL(path, scope.registration.scope).href;
/** Files that have a hash in their names never change. */
const isHashed = (path: string) => path.startsWith('assets/');
/** Binaries are large and of three builds: a page asks for those that its browser runs. */
const isBinary = (path: string) => path.endsWith('.wasm');

/** A response that may answer any request: one that came by a redirect may not open a page. */
function plain(response: Response): Response {
  const { status, statusText, headers, redirected, body } = response;
  return redirected ? new Response(body, { status, statusText, headers }) : response;
}

/** Puts files into the cache of this version, from one of another where they are the same. */
async function keep(paths: string[]): Promise<void> {
  const cache = await caches.open(PREFIX + VERSION);
  await Promise.all(
    paths.map(async (path) => {
      const address = addressOf(path);
      if (await cache.match(address)) return;
      const known = isHashed(path) ? await caches.match(address) : undefined;
      const response = known ?? (await fetch(address, { cache: isHashed(path) ? 'default' : 'no-cache' }));
      if (!response.ok) throw new Error(`${address}: status ${response.status}`);
      await cache.put(address, plain(response));
    }),
  );
}

async function removeOthers(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION).map((name) => caches.delete(name)));
}

/** The path of one of the app's own files that a request asks for. */
function pathOf({ method, url }: Request): string | undefined {
  const base = scope.registration.scope;
  const { origin, pathname } = new URL(url);
  const own = new URL(base);
  if (method !== 'GET' || origin !== own.origin || !pathname.startsWith(own.pathname)) return undefined;
  const path = decodeURIComponent(pathname.slice(own.pathname.length)) || 'index.html';
  return FILES.includes(path) ? path : undefined;
}

async function answer(path: string, request: Request): Promise<Response> {
  const cache = await caches.open(PREFIX + VERSION);
  const kept = await cache.match(addressOf(path));
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok && isHashed(path)) await cache.put(addressOf(path), plain(response.clone()));
  return response;
}

scope.addEventListener('install', (event) => (event as Extendable).waitUntil(keep(FILES.filter((path) => !isBinary(path)))));
scope.addEventListener('activate', (event) => (event as Extendable).waitUntil(removeOthers()));
scope.addEventListener('fetch', (event) => {
  const { request } = event as Fetching;
  const path = pathOf(request);
  if (path !== undefined) (event as Fetching).respondWith(isolated(answer(path, request)));
});
scope.addEventListener('message', (event) => {
  const told = (event as Told).data as { builds?: unknown; use?: unknown } | null;
  if (told?.use === true) void scope.skipWaiting();
  if (!Array.isArray(told?.builds)) return;
  const builds = told.builds;
  const wanted = FILES.filter((path) => isBinary(path) && builds.some((build) => path.includes(`kilim.${build}`)));
  const [port] = (event as Told).ports;
  (event as Extendable).waitUntil(keep(wanted).then(() => port?.postMessage({ kept: wanted.length })));
});
