import { reasonOf } from './describe.js';
import { KilimError } from './index.js';

/** What was thrown while a value that a caller gave was read; the caller's own error is the cause of `INVALID_VALUE`. */
export function unread(what: string, thrown: unknown): KilimError {
  if (thrown instanceof KilimError) return thrown;
  return new KilimError('INVALID_VALUE', `${what} cannot be read: ${reasonOf(thrown)}`, {}, thrown);
}

/**
 * What a call makes of what it was given, for entries beside the session's module.
 * @throws KilimError what `make` throws; `INVALID_VALUE` where a value throws when it is read.
 */
export function made<T>(what: string, make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    throw unread(what, thrown);
  }
}
