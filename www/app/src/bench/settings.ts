import { KilimError } from 'kilim';

/** `file`: every node in the type that the file says. `half`: in `float16` where the backend is faster in it. */
export type Precision = 'file' | 'half';

/** One way to run the model. */
export interface Setting {
  backend: string;
  threads: number;
  precision: Precision;
}

/** What is to be measured: every backend with every number of threads in every precision. */
export interface Plan {
  backends: string[];
  threads: number[];
  precisions: Precision[];
  /** Runs before those that count. */
  warmup: number;
  runs: number;
}

export const PRECISIONS: Record<Precision, string> = { file: 'as in the file', half: 'half where faster' };

/** The most that fields and links may ask for. */
export const MOST = { warmup: 1000, runs: 10_000, threads: 256 };

/** The settings of a plan in their order. Threads are those of the CPU: other backends are measured once. */
export function settingsOf({ backends, threads, precisions }: Plan): Setting[] {
  return backends.flatMap((backend) =>
    (backend === 'cpu' ? threads : [1]).flatMap((count) => precisions.map((precision) => ({ backend, threads: count, precision }))),
  );
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A value of something that was read from outside. */
export class Given {
  constructor(
    readonly value: unknown,
    readonly path: string,
  ) {}

  field(name: string): Given {
    if (!isRecord(this.value)) throw this.wrong('an object');
    return new Given(this.value[name], `${this.path}.${name}`);
  }

  get missing(): boolean {
    return this.value === undefined || this.value === null;
  }

  text(most = 200): string {
    if (typeof this.value !== 'string' || this.value.length > most) throw this.wrong(`a text of at most ${most} letters`);
    return this.value;
  }

  number(): number {
    if (typeof this.value !== 'number' || !Number.isFinite(this.value) || this.value < 0) throw this.wrong('a number from 0');
    return this.value;
  }

  whole(least: number, most: number): number {
    const number = this.number();
    if (!Number.isInteger(number) || number < least || number > most) throw this.wrong(`a whole number from ${least} to ${most}`);
    return number;
  }

  oneOf<T extends string>(choices: readonly T[]): T {
    const found = choices.find((choice) => choice === this.value);
    if (found === undefined) throw this.wrong(choices.join(', '));
    return found;
  }

  list<T>(read: (item: Given) => T, most = 64): T[] {
    if (!Array.isArray(this.value) || this.value.length > most) throw this.wrong(`a list of at most ${most}`);
    return this.value.map((item, i) => read(new Given(item, `${this.path}[${i}]`)));
  }

  wrong(expected: string): KilimError {
    const got = JSON.stringify(this.value)?.slice(0, 80) ?? 'nothing';
    return new KilimError('INVALID_VALUE', `the link's \`${this.path}\` cannot be used`, { expected, got });
  }
}

export function readSetting(given: Given): Setting {
  return {
    backend: given.field('backend').text(40),
    threads: given.field('threads').whole(1, MOST.threads),
    precision: given.field('precision').oneOf(Object.keys(PRECISIONS) as Precision[]),
  };
}

/** @throws KilimError `INVALID_VALUE` for what is no plan. */
export function readPlan(given: Given): Plan {
  return {
    backends: given.field('backends').list((item) => item.text(40), 8),
    threads: given.field('threads').list((item) => item.whole(1, MOST.threads), 8),
    precisions: given.field('precisions').list((item) => item.oneOf(Object.keys(PRECISIONS) as Precision[]), 2),
    warmup: given.field('warmup').whole(0, MOST.warmup),
    runs: given.field('runs').whole(1, MOST.runs),
  };
}
