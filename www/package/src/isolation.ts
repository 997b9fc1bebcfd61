/**
 * Cross-origin isolation where a server sends no headers of its own, as on GitHub Pages: a service worker adds them. Isolated pages have
 * sessions with `threads`.
 *
 *     // Beside the pages: npx kilim isolation public
 *     await isolate('/isolation.worker.js');
 *     const session = await load('model.onnx', { threads: 4 });
 */
import { reasonOf } from './describe.js';
import { runsThreadsWhereIsolated } from './detect.js';
import { POLICIES, keepPolicy } from './isolation/headers.js';

export { isolated } from './isolation/headers.js';

/** Whether the page is cross-origin isolated, and why not. */
export interface Isolation {
  isolated: boolean;
  /** `null` where it is isolated. */
  reason: string | null;
}

/** How often this tab was loaded again since it was isolated last: whoever does not know that may do it for ever. */
const TRIES = 'kilim-isolation';

const not = (reason: string): Isolation => ({ isolated: false, reason });

/**
 * Makes the page cross-origin isolated by a service worker, and loads it again where that helps; the promise then stays open, as the page
 * goes away. Call it first in a page. Does nothing where the page is isolated, and where isolation would not give it threads. Once in a
 * tab, or twice in a browser without the policy `credentialless`, the page is loaded again, and never more often. It never rejects.
 *
 * `worker` is the address of a service worker beside the pages or above them: `isolation.worker.js` as `npx kilim isolation` writes it, or
 * one that answers with `isolated`. It may also be a registration that the page has.
 *
 *     const { reason } = await isolate('/isolation.worker.js');
 *     if (reason) console.log('one thread:', reason);
 */
export async function isolate(worker: string | URL | ServiceWorkerRegistration): Promise<Isolation> {
  try {
    return await tryToIsolate(worker);
  } catch (error) {
    // Settings of the visitor may forbid a page to keep anything.
    return not(`the service worker cannot be used: ${reasonOf(error)}`);
  }
}

async function tryToIsolate(worker: string | URL | ServiceWorkerRegistration): Promise<Isolation> {
  if (globalThis.crossOriginIsolated) {
    forgetTries();
    return { isolated: true, reason: null };
  }
  const reason = whyInVain();
  if (reason !== undefined) return not(reason);
  const { serviceWorker } = navigator;
  const tries = Number(sessionStorage.getItem(TRIES));
  if (tries > 0 && !serviceWorker.controller) return not('the service worker is not in charge of this page');
  if (tries >= POLICIES.length) {
    await keepPolicy(POLICIES[0]);
    return not('pages that the service worker answers for are not isolated: it, or the server, sends other headers');
  }
  const registration = typeof worker === 'string' || worker instanceof URL ? await serviceWorker.register(worker) : worker;
  if (!location.href.startsWith(registration.scope))
    return not(`the service worker is in charge of ${registration.scope} and what is below, which this page is not`);
  if (!(await isActive(registration))) return not('the service worker could not be installed');
  // A page that a worker answers for and that is not isolated is in a browser without the first policy.
  if (tries > 0) await keepPolicy(POLICIES[1]);
  sessionStorage.setItem(TRIES, String(tries + 1));
  location.reload();
  return new Promise(() => undefined);
}

function forgetTries(): void {
  try {
    globalThis.sessionStorage?.removeItem(TRIES);
  } catch {
    // Where nothing may be read nothing was written.
  }
}

/** Why the page need not be loaded again. */
function whyInVain(): string | undefined {
  if (globalThis.document === undefined) return 'this is no page';
  if (!isSecureContext) return 'a page that is not served over https cannot be isolated';
  if (globalThis.navigator.serviceWorker === undefined) return 'this browser has no service workers, or does not allow them here';
  if (!runsThreadsWhereIsolated()) return 'the build with threads does not run in this browser';
  if (globalThis.top !== globalThis.self) return 'the page is in a frame, and its outermost page must be isolated first';
  return undefined;
}

/** Waits until the worker answers for pages that are loaded from then on; `false` where it is given up. */
function isActive({ active, waiting, installing }: ServiceWorkerRegistration): Promise<boolean> {
  const worker = active ?? waiting ?? installing;
  return new Promise((resolve) => {
    const look = () => {
      if (worker === null || worker.state === 'redundant') resolve(false);
      else if (worker.state === 'activating' || worker.state === 'activated') resolve(true);
    };
    worker?.addEventListener('statechange', look);
    look();
  });
}
