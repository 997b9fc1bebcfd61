import type { Variant } from './detect.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import { OFFLINE, isOffline } from './fetch.js';

/** No worker may be started here: this JavaScript engine has none, or the page's content security policy forbids it. */
export class NoWorker extends KilimError {
  constructor(
    readonly reason: string,
    cause?: unknown,
  ) {
    super('IO', `no worker can be started: ${reason}`, { hint: 'load with `worker: false` to compute in the calling thread' }, cause);
  }
}

/** The scripts of workers: of a session by its build, and of what computes for all sessions. */
export type Script = Variant | 'crew';

// Bundlers find the workers by exactly this form. With a `name` webpack would make one file of both.
const spawn: Record<Script, () => Worker> = {
  simd: () => new Worker(new URL('./worker.simd.js', import.meta.url), { type: 'module' }),
  relaxed: () => new Worker(new URL('./worker.relaxed.js', import.meta.url), { type: 'module' }),
  threads: () => new Worker(new URL('./worker.threads.js', import.meta.url), { type: 'module' }),
  crew: () => new Worker(new URL('./worker.crew.js', import.meta.url), { type: 'module' }),
};

/** A worker whose script lies on another origin, as on a CDN, from where none may be started: a script of this page imports it. */
function spawnForeign(name: Script): Worker {
  const file = `worker.${name}.js`; // no bundler should take it for a file of its own
  const script = `import ${JSON.stringify(new URL(/* webpackIgnore: true */ file, import.meta.url))};`;
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(url, { type: 'module' });
  for (const event of ['message', 'error']) worker.addEventListener(event, () => URL.revokeObjectURL(url), { once: true });
  return worker;
}

/** @throws NoWorker where none can be. What else hinders it is told to `failed`, once: before its first message, why its script does not run. */
export function spawnWorker(name: Script, failed: (error: KilimError) => void): Worker {
  if (typeof Worker === 'undefined') throw new NoWorker('this JavaScript engine has no `Worker`');
  const policy = watchPolicy();
  const worker = start(name);
  let alive = false;
  worker.addEventListener(
    'message',
    () => {
      alive = true;
      policy.leave();
    },
    { once: true },
  );
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    if (alive || event.message) return failed(new KilimError('INTERNAL', `the worker failed: ${event.message}`));
    // The policy's own event may come after this one.
    setTimeout(() => {
      policy.leave();
      failed(policy.refused() ? new NoWorker('the content security policy does not allow it by `worker-src`') : notLoaded());
    });
  });
  worker.addEventListener('messageerror', () => failed(new KilimError('INTERNAL', 'a message of the worker could not be read')));
  return worker;
}

function start(name: Script): Worker {
  try {
    return spawn[name]();
  } catch {
    try {
      return spawnForeign(name);
    } catch (error) {
      throw new NoWorker(reasonOf(error), error);
    }
  }
}

/** Listens for what the content security policy says of workers. */
function watchPolicy(): { refused(): boolean; leave(): void } {
  let refused = false;
  const listener = (event: Event) => {
    const { effectiveDirective, disposition } = event as SecurityPolicyViolationEvent;
    if (effectiveDirective === 'worker-src' && disposition === 'enforce') refused = true;
  };
  globalThis.addEventListener('securitypolicyviolation', listener);
  return { refused: () => refused, leave: () => globalThis.removeEventListener('securitypolicyviolation', listener) };
}

function notLoaded(): KilimError {
  return new KilimError('IO', "the worker's script could not be loaded", {
    hint: isOffline()
      ? OFFLINE
      : "the package's worker.*.js must be served beside its index.js; from another origin than the page's, with CORS, and with it and `blob:` in the `worker-src` of a content security policy",
  });
}
