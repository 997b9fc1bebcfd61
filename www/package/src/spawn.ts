import { MISPLACED } from './assets.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import { OFFLINE, isOffline } from './fetch.js';
import { NoWorker } from './thread.js';
import type { Script, Thread } from './thread.js';

// Bundlers find the workers by exactly this form. With a `name` webpack would make one file of both.
const spawn: Record<Script, () => Worker> = {
  simd: () => new Worker(new URL('./worker.simd.js', import.meta.url), { type: 'module' }),
  relaxed: () => new Worker(new URL('./worker.relaxed.js', import.meta.url), { type: 'module' }),
  threads: () => new Worker(new URL('./worker.threads.js', import.meta.url), { type: 'module' }),
  crew: () => new Worker(new URL('./worker.crew.js', import.meta.url), { type: 'module' }),
};

export const HAS_WORKERS = typeof Worker === 'function';

/** A worker whose script lies on another origin, as on a CDN, from where none may be started: a script of this page imports it. */
function spawnForeign(address: URL): Worker {
  const script = `import ${JSON.stringify(address)};`;
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(url, { type: 'module' });
  for (const event of ['message', 'error']) worker.addEventListener(event, () => URL.revokeObjectURL(url), { once: true });
  return worker;
}

/** @throws NoWorker where none can be. What else hinders it is told to `failed`, once: before its first message, why its script does not run. */
export function spawnWorker(name: Script, failed: (error: KilimError) => void, assets?: string): Thread {
  if (!HAS_WORKERS) throw new NoWorker('this JavaScript engine has no `Worker`');
  const policy = watchPolicy();
  const worker = start(name, assets);
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

function start(name: Script, assets: string | undefined): Worker {
  const file = `worker.${name}.js`; // no bundler should take it for a file of its own
  const address = () => new URL(/* webpackIgnore: true */ file, assets ?? import.meta.url);
  try {
    return assets === undefined ? spawn[name]() : new Worker(address(), { type: 'module' });
  } catch {
    try {
      return spawnForeign(address());
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

/** Pages go on whatever their workers do. */
export const holdProcess = (_worker: Thread, _held: boolean): void => undefined;

function notLoaded(): KilimError {
  return new KilimError('IO', "the worker's script could not be loaded", {
    hint: isOffline()
      ? OFFLINE
      : `${MISPLACED}. From another origin they need CORS, and the \`worker-src\` of a content security policy needs it and \`blob:\``,
  });
}
