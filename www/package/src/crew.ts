import { type KilimError, fromPlain } from './errors.js';
import type { PlainError } from './errors.js';
import type { Binary } from './protocol.js';
import { spawnWorker } from './spawn.js';
import type { Thread } from './thread.js';

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

/** What the page tells every worker of the crew at once; `mail` counts the orders. */
export type Order = Command & { bell: Bell; mail: number; session: number };

type Command = { kind: 'join'; binary: Binary; memory: WebAssembly.Memory } | { kind: 'leave' } | { kind: 'none' };

/** What a worker of the crew reports: the instance on that session's memory trapped. */
export interface Fault {
  session: number;
  error: PlainError;
}

interface Member {
  /** Where the worker's script lies, where that is not beside this module. */
  assets: string | undefined;
  binary: Binary;
  memory: WebAssembly.Memory;
  failed(error: KilimError): void;
}

const joinOf = ({ binary, memory }: Member): Command => ({ kind: 'join', binary, memory });

/** Workers that compute for all sessions of the page, each with an instance of the binary on every session's memory. */
class Crew {
  readonly bell: Bell = new Int32Array(new SharedArrayBuffer(12));
  #workers: Thread[] = [];
  #members = new Map<number, Member>();
  #last = 0;

  /** Has so many workers compute for a session; gives what ends that. `failed` is told where one of them cannot go on. */
  join(member: Member, workers: number): () => void {
    const session = ++this.#last;
    this.#members.set(session, member);
    this.#tell(session, joinOf(member));
    while (this.#workers.length < workers) if (!this.#hire(member.assets)) break;
    return () => {
      if (!this.#members.delete(session)) return;
      this.#tell(session, { kind: 'leave' });
      if (this.#members.size > 0) return;
      for (const worker of this.#workers) worker.terminate();
      this.#workers = [];
    };
  }

  /** Sessions do without a worker that cannot be had. */
  #hire(assets: string | undefined): boolean {
    let worker: Thread;
    try {
      worker = spawnWorker('crew', () => undefined, assets);
    } catch {
      return false;
    }
    worker.addEventListener('message', ({ data: { session, error } }: { data: Fault }) =>
      this.#members.get(session)?.failed(fromPlain(error)),
    );
    this.#workers.push(worker);
    for (const [session, member] of this.#members) this.#tell(session, joinOf(member), worker);
    return true;
  }

  /** Workers see messages when they find that there is mail, and go on when they have read all of it: each gets every message, if only to go on. */
  #tell(session: number, what: Command, only?: Thread): void {
    const { bell } = this;
    const mail = Atomics.add(bell, MAIL, 1) + 1;
    for (const worker of this.#workers) {
      const told: Command = only === undefined || worker === only ? what : { kind: 'none' };
      worker.postMessage({ ...told, bell, mail, session } satisfies Order);
    }
    Atomics.add(bell, CALLS, 1);
    Atomics.notify(bell, CALLS);
  }
}

let crew: Crew | undefined;

/** The page's crew, made at its first use. */
export const crewOfPage = (): Crew => (crew ??= new Crew());

/** What a session's thread calls workers with. */
export const callerOf =
  ({ bell }: Share) =>
  (wanted: number): void => {
    Atomics.add(bell, CALLS, 1);
    if (Atomics.load(bell, SLEEPING) > 0) Atomics.notify(bell, CALLS, wanted);
  };
