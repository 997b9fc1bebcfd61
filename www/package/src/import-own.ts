import { MISPLACED } from './assets.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';

/**
 * Imports a module of the package.
 * @throws KilimError `IO` where it cannot be had.
 */
export async function importOwn<T>(by: string): Promise<T> {
  try {
    return await import(/* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ by);
  } catch (error) {
    throw new KilimError('IO', `cannot import ${by}: ${reasonOf(error)}`, { hint: MISPLACED }, error);
  }
}
