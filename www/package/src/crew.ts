import { KilimError, fromPlain } from './errors.js';
import type { PlainError } from './errors.js';
import { spawnWorker } from './spawn.js';

/** Where sessions say that there is something to do; `Int32Array` of these. */
export type Bell = Int32Array;
/** How often somebody called. */
export const CALLS = 0;
/** Workers that wait for the next call. */
export const SLEEPING = 1;
/** Messages of the page to all workers. */
export const MAIL = 2;

/** What a session's worker is told of the crew. */
export interface Share {
  bell: Bell;
  workers: number;
}

/** From the page to a worker of the crew; `mail` counts them. */
export type Order = { bell: Bell; mail: number; session: number } & (
  | { kind: 'join'; module: WebAssembly.Module; memory: WebAssembly.Memory }
  | { kind: 'leave' });

/** From a worker of the crew: the instance on that session's memory trapped. */
export interface Fault {
  session: number;
  error: PlainError;
}

interface Member {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  failed(error: KilimError): void;
}

/** Workers that compute for all sessions of the page, each with an instance of the binary on every session's memory. */
class Crew {
  readonly bell: Bell = new Int32Array(new SharedArrayBuffer(12));
  #workers: Worker[] = [];
  #members = new Map<number, Member>();
  #last = 0;

  /** Has so many workers compute for a session; gives what ends that. `failed` is told where one of them cannot go on. */
  join(member: Member, workers: number): () => void {
    const session = ++this.#last;
    this.#members.set(session, member);
    this.#tell(this.#workers, session, member);
    while (this.#workers.length < workers) if (!this.#hire()) break;
    return () => {
      if (!this.#members.delete(session)) return;
      this.#tell(this.#workers, session);
      if (this.#members.size > 0) return;
      for (const worker of this.#workers) worker.terminate();
      this.#workers = [];
    };
  }

  /** Sessions do without a worker that cannot be had. */
  #hire(): boolean {
    let worker: Worker;
    try {
      worker = spawnWorker('crew', () => undefined);
    } catch {
      return false;
    }
    worker.addEventListener('message', ({ data: { session, error } }: MessageEvent<Fault>) => this.#members.get(session)?.failed(fromPlain(error)));
    this.#workers.push(worker);
    for (const [session, member] of this.#members) this.#tell([worker], session, member);
    return true;
  }

  /** Workers that compute, or wait, see messages when they look for mail. */
  #tell(workers: Worker[], session: number, member?: Member): void {
    const { bell } = this;
    const mail = Atomics.add(bell, MAIL, 1) + 1;
    const order: Order = member
      ? { kind: 'join', bell, mail, session, module: member.module, memory: member.memory }
      : { kind: 'leave', bell, mail, session };
    for (const worker of workers) worker.postMessage(order);
    Atomics.add(bell, CALLS, 1);
    Atomics.notify(bell, CALLS);
  }
}

let crew: Crew | undefined;

/** The page's crew, made at its first use. */
export const crewOfPage = (): Crew => (crew ??= new Crew());

/** What a session's thread calls workers with. */
export const callerOf = ({ bell }: Share) => (wanted: number): void => {
  Atomics.add(bell, CALLS, 1);
  if (Atomics.load(bell, SLEEPING) > 0) Atomics.notify(bell, CALLS, wanted);
};
