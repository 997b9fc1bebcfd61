import { CALLS, MAIL, SLEEPING } from './crew.js';
import type { Bell, Fault, Order } from './crew.js';
import { toPlain } from './errors.js';
import type { ThreadsGlue } from './glue.js';
import { createGlue } from './kilim.threads.js';
import { placesOf } from './parts.js';
import { build } from './parts.threads.js';
import { Runtime } from './runtime.js';
import { scope } from './scope.js';

/** Turns of a loop without work before a worker sleeps: about as long as a run takes between two kernels that are shared. */
const TURNS = 20_000;

const sessions = new Map<number, Runtime<ThreadsGlue>>();
/** The last message that was read. */
let read = 0;

async function obey(order: Order): Promise<void> {
  const { session } = order;
  read = order.mail;
  if (order.kind === 'leave') sessions.delete(session);
  if (order.kind !== 'join') return;
  try {
    sessions.set(
      session,
      await Runtime.start(createGlue, order.binary.module, { places: placesOf(order.binary, build.places), memory: order.memory }),
    );
  } catch {
    // That session goes on without this worker.
  }
}

/** Helps in all sessions in turn. Whether there was something to do in one. */
function help(): boolean {
  let helped = false;
  for (const [session, runtime] of sessions) {
    if (runtime.glue.help(Math.ceil(TURNS / sessions.size)) === true) helped = true;
    if (runtime.fault) {
      sessions.delete(session);
      scope.postMessage({ session, error: toPlain(runtime.fault) } satisfies Fault, []);
    }
  }
  return helped;
}

/** Until there is mail: messages come when nothing is computed. */
function serve(bell: Bell): void {
  for (;;) {
    const calls = Atomics.load(bell, CALLS);
    if (Atomics.load(bell, MAIL) !== read) return;
    if (help()) continue;
    Atomics.add(bell, SLEEPING, 1);
    Atomics.wait(bell, CALLS, calls);
    Atomics.sub(bell, SLEEPING, 1);
  }
}

let queue = Promise.resolve();
scope.addEventListener('message', ({ data: order }: { data: Order }) => {
  queue = queue.then(() => obey(order)).then(() => serve(order.bell));
});
