// A service worker that adds the headers of isolation where a server does not. It answers for pages and scripts of workers, and leaves
// all else to the browser.
import { isolated, needsHeaders } from './headers.js';

/** What TypeScript's library of pages does not have. */
interface Fetching extends Event {
  request: Request;
  respondWith(response: Promise<Response>): void;
}

globalThis.addEventListener('fetch', (event) => {
  const { request } = event as Fetching;
  if (needsHeaders(request)) (event as Fetching).respondWith(isolated(fetch(request)));
});
