import { amount, flag, readOptions } from './kinds.js';
import type { Kinds } from './kinds.js';

/** What one model may use. What goes beyond a limit is refused or stopped with `LIMIT`, or `ABORTED` for the limits in seconds. */
export interface Limits {
  /** The other limits are those of `limits: 'strict'`; otherwise they refuse nothing that the browser could run. */
  strict?: boolean;
  /** Bytes of the model file, and of each file that belongs to it. */
  fileBytes?: number;
  /** Nodes in all graphs together, with functions written out. */
  nodes?: number;
  /** Graphs, functions and messages of the file in each other. */
  depth?: number;
  /** Bytes of constants that are computed while the model is loaded. What goes beyond them is computed by each run. */
  foldedBytes?: number;
  /** Bytes of one tensor. */
  tensorBytes?: number;
  /** Bytes of weights in the form that a backend keeps, on each backend. */
  weightBytes?: number;
  /** Bytes of intermediates and scratch memory, on each backend. */
  intermediateBytes?: number;
  /** Bytes of outputs and of what else single stages keep, on each backend. */
  outputBytes?: number;
  /** Iterations of one Loop. */
  iterations?: number;
  /** Operations of one run, estimated from shapes: a multiplication with an addition counts two. */
  operations?: number;
  /** Seconds that loading may take, once the bytes are there. */
  loadSeconds?: number;
  /** Seconds that one run may take. */
  runSeconds?: number;
}

const LIMITS: Kinds<Limits> = {
  strict: flag,
  fileBytes: amount,
  nodes: amount,
  depth: amount,
  foldedBytes: amount,
  tensorBytes: amount,
  weightBytes: amount,
  intermediateBytes: amount,
  outputBytes: amount,
  iterations: amount,
  operations: amount,
  loadSeconds: amount,
  runSeconds: amount,
};

/** The bytes that a file may have in `limits: 'strict'`; the library's number. */
const STRICT_FILE_BYTES = 2 ** 30;

/** The bytes that the model file, and each file that belongs to it, may have. */
export function mostFileBytes({ limits }: { limits?: 'strict' | Limits }): number {
  if (limits === undefined) return Infinity;
  if (limits === 'strict') return STRICT_FILE_BYTES;
  return limits.fileBytes ?? (limits.strict ? STRICT_FILE_BYTES : Infinity);
}

/** In the library's names. */
export function limitsText(given: 'strict' | Limits): string {
  if (given === 'strict') return given;
  const { strict, ...limits } = readOptions<Limits>('limits', LIMITS, given);
  const words = Object.entries(limits).map(([name, value]) => `${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}=${value}`);
  return [strict ? 'strict' : 'default', ...words].join();
}
