import { closest, describe } from './describe.js';
import { KilimError, reading } from './errors.js';

/** What an option has to be, and whether a value is that. */
export interface Kind {
  expected: string;
  fits(value: unknown): boolean;
}

export const flag: Kind = { expected: '`true` or `false`', fits: (value) => typeof value === 'boolean' };
export const text: Kind = { expected: 'a string', fits: (value) => typeof value === 'string' };
export const texts: Kind = {
  expected: 'an array of strings',
  fits: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
};
export const bytes: Kind = { expected: 'a Uint8Array', fits: (value) => value instanceof Uint8Array };
export const milliseconds: Kind = {
  expected: 'a number of milliseconds, zero or more',
  fits: (value) => typeof value === 'number' && value >= 0,
};
export const amount: Kind = { expected: 'a number, zero or more', fits: (value) => typeof value === 'number' && value >= 0 };
export const count: Kind = { expected: 'a whole number, one or more', fits: (value) => Number.isInteger(value) && (value as number) >= 1 };
export const callback: Kind = { expected: 'a function', fits: (value) => typeof value === 'function' };
export const record: Kind = { expected: 'an object', fits: (value) => typeof value === 'object' && !Array.isArray(value) };
export const samples: Kind = {
  expected: 'an array of objects with inputs',
  fits: (value) => Array.isArray(value) && value.every(record.fits),
};
export const anything: Kind = { expected: 'anything', fits: () => true };
export const signal: Kind = {
  expected: 'an AbortSignal',
  fits: (value) =>
    typeof value === 'object' && 'aborted' in (value as object) && typeof (value as EventTarget).addEventListener === 'function',
};

export const oneOf = (...words: readonly string[]): Kind => ({
  expected: words.map((word) => `\`${word}\``).join(' or '),
  fits: (value) => words.some((word) => word === value),
});

export const address: Kind = {
  expected: 'an address or a Blob',
  fits: (value) => typeof value === 'string' || value instanceof URL || value instanceof Blob,
};

export const place: Kind = { expected: 'an address', fits: (value) => typeof value === 'string' || value instanceof URL };

export type Kinds<T> = { [Name in keyof Required<T>]: Kind };

/** What options of other runtimes are called here. */
const OTHER_NAMES: Record<string, string> = {
  executionProviders: 'backends',
  freeDimensionOverrides: 'dims',
  providers: 'backends',
  wasmPaths: 'assets',
};

/**
 * The options, each read once. `null` is as good as none: that is what storage gives for what it does not have.
 * @throws KilimError `INVALID_VALUE` for one that there is not, and for a value of another kind.
 */
export function readOptions<T extends object>(call: string, kinds: Kinds<T>, given: unknown): T {
  return reading(`an option of \`${call}\``, () => {
    if (given === undefined || given === null) return {} as T;
    if (typeof given !== 'object')
      throw new KilimError('INVALID_VALUE', `the options of \`${call}\` are no object`, { got: describe(given) });
    const names = Object.keys(kinds);
    const unknown = Object.keys(given).find((name) => !Object.hasOwn(kinds, name));
    if (unknown !== undefined) throw noOption(call, unknown, names);
    const read: Record<string, unknown> = {};
    for (const [name, kind] of Object.entries<Kind>(kinds)) {
      const value = (given as Record<string, unknown>)[name];
      if (value === undefined || value === null) continue;
      if (!kind.fits(value)) throw wrongOption(name, kind.expected, value);
      read[name] = value;
    }
    return read as T;
  });
}

function noOption(call: string, name: string, names: readonly string[]): KilimError {
  const meant = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : closest(name, names);
  return new KilimError(
    'INVALID_VALUE',
    `\`${call}\` has no option \`${name}\``,
    meant === undefined ? { expected: names.join(', ') } : { hint: `did you mean \`${meant}\`?` },
  );
}

export function wrongOption(name: string, expected: string, got: unknown): KilimError {
  return new KilimError('INVALID_VALUE', `the option \`${name}\` is of another kind`, { expected, got: describe(got) });
}
