import { KilimError } from 'kilim';
import { Given, readPlan, readSetting } from './settings.js';
import type { Plan, Setting } from './settings.js';

/** The quartiles of some times, in seconds. */
export interface Spread {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
}

/** What one setting gave: times in seconds, or why there are none. */
export interface Result {
  setting: Setting;
  /** The device's own name. */
  device?: string;
  /** Nodes that compute in half precision. */
  half?: number;
  /** Until the model was ready, its file in memory. */
  load?: number;
  /** The first run, which plans and compiles. */
  first?: number;
  spread?: Spread;
  failure?: string;
}

/** A benchmark as it is saved and shared. */
export interface Benchmark {
  model: string;
  date: string;
  /** The browser, as it names itself. */
  browser: string;
  cores: number;
  plan: Plan;
  results: Result[];
}

/** The value that so large a share of sorted values lies below, between the two nearest. */
function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const [below, above] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number];
  return below + (above - below) * (at - Math.floor(at));
}

export function spreadOf(times: readonly number[]): Spread {
  const sorted = [...times].sort((a, b) => a - b);
  const [least, lower, median, upper, most] = [0, 0.25, 0.5, 0.75, 1].map((share) => quantile(sorted, share)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  return { least, lower, median, upper, most };
}

/** Bytes that a link's fragment may take: what chats and mails pass on. */
const LINK_LIMIT = 16_384;

/** What a link carries: the settings, and results where the sender wants them to be seen. */
export interface Shared {
  plan: Plan;
  benchmark?: Benchmark;
}

/** Times of three digits are what a link has room for. */
const short = (_key: string, value: unknown) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;

export function fragmentOf(shared: Shared): string {
  const bytes = new TextEncoder().encode(JSON.stringify(shared, short));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws KilimError `INVALID_VALUE` for what `fragmentOf` did not write. */
export function sharedOf(fragment: string): Shared {
  if (fragment.length > LINK_LIMIT) throw new KilimError('INVALID_VALUE', 'the link is longer than those of this page');
  let read: unknown;
  try {
    const text = atob(fragment.replaceAll('-', '+').replaceAll('_', '/'));
    read = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
  } catch (error) {
    throw new KilimError('INVALID_VALUE', 'the link holds no benchmark', { hint: 'was it cut off?' }, error);
  }
  const given = new Given(read, 'benchmark');
  const benchmark = given.field('benchmark');
  return { plan: readPlan(given.field('plan')), ...(!benchmark.missing && { benchmark: readBenchmark(benchmark) }) };
}

function readBenchmark(given: Given): Benchmark {
  return {
    model: given.field('model').text(),
    date: given.field('date').text(40),
    browser: given.field('browser').text(400),
    cores: given.field('cores').whole(1, 4096),
    plan: readPlan(given.field('plan')),
    results: given.field('results').list(readResult, 128),
  };
}

function readResult(given: Given): Result {
  const result: Result = { setting: readSetting(given.field('setting')) };
  const read = <K extends keyof Result>(name: K, of: (field: Given) => Result[K]) => {
    const field = given.field(name);
    if (!field.missing) result[name] = of(field);
  };
  read('device', (field) => field.text());
  read('half', (field) => field.whole(0, 1e9));
  read('load', (field) => field.number());
  read('first', (field) => field.number());
  read('failure', (field) => field.text(1000));
  read('spread', (field) => {
    const at = (name: keyof Spread) => field.field(name).number();
    return { least: at('least'), lower: at('lower'), median: at('median'), upper: at('upper'), most: at('most') };
  });
  return result;
}
