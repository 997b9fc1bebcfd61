/** Policies under which a page is isolated, the one to try first at the front: not every browser knows it. */
export const POLICIES = ['credentialless', 'require-corp'] as const;
export type Policy = (typeof POLICIES)[number];

/** Service workers are started anew at any time, so that pages leave the policy where both can read it. */
const CACHE = 'kilim-isolation';
const KEY = '/kilim-isolation';

/** Has answers carry this policy from now on. */
export async function keepPolicy(policy: Policy): Promise<void> {
  await (await caches.open(CACHE)).put(KEY, new Response(policy));
}

async function policyOf(): Promise<Policy> {
  const kept = await (await caches.match(KEY, { cacheName: CACHE }))?.text();
  return POLICIES.find((policy) => policy === kept) ?? POLICIES[0];
}

/**
 * An answer of a service worker with the headers that make a page cross-origin isolated, and let an isolated page start a worker. Headers
 * that the answer has stay, and answers of other origins that scripts may not read are given back as they are. Rejects where the answer does.
 *
 *     addEventListener('fetch', (event) => {
 *       event.respondWith(isolated(fetch(event.request)));
 *     });
 */
export async function isolated(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  // An opaque answer, or one that redirects, can only be handed on.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  const add = (name: string, value: string) => headers.has(name) || headers.set(name, value);
  add('cross-origin-opener-policy', 'same-origin');
  add('cross-origin-embedder-policy', await policyOf().catch(() => POLICIES[0]));
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

/** Whether an answer must carry the headers: it is a page, or the script of a worker. */
export function needsHeaders({ mode, destination }: Request): boolean {
  return mode === 'navigate' || destination === 'worker' || destination === 'sharedworker';
}
