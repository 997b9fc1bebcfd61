import { describe, reasonOf } from './describe.js';

/** What went wrong. The first fourteen are the codes of the Rust library; `INTERNAL` means that the runtime itself failed. */
export type ErrorCode =
  | 'UNKNOWN_FORMAT'
  | 'INVALID_MODEL'
  | 'INVALID_GRAPH'
  | 'UNSUPPORTED'
  | 'NO_BACKEND'
  | 'SHAPE'
  | 'DTYPE'
  | 'INPUT'
  | 'INVALID_VALUE'
  | 'LIMIT'
  | 'DEVICE'
  | 'ABORTED'
  | 'IO'
  | 'STATE'
  | 'INTERNAL';

/** The parts of an error that are known where it happened. */
export interface ErrorContext {
  /** The node's name in the model. */
  node?: string;
  /** The operator's name. */
  op?: string;
  /** The input or value concerned. */
  input?: string;
  expected?: string;
  got?: string;
  /** What to do about it. */
  hint?: string;
}

/** An error as it crosses from the runtime: `message` is the summary. */
export interface PlainError extends ErrorContext {
  code: ErrorCode;
  message: string;
}

/** Parts that are names, with what a message calls them. */
const NAMES = { node: 'node', op: 'operator', input: 'input' } as const;
/** The others, with what stands before them. */
const FACTS = { expected: 'expected ', got: 'got ', hint: 'hint: ' } as const;
type Part = keyof typeof NAMES | keyof typeof FACTS;
const PARTS = [...Object.keys(NAMES), ...Object.keys(FACTS)] as Part[];

/** The parts of an error that are known, as texts. One that cannot be read is left out: an error about another error would hide it. */
function contextOf(error: ErrorContext): ErrorContext {
  const known = PARTS.flatMap((part) => {
    try {
      const value: unknown = error[part];
      return value === undefined || value === '' ? [] : [[part, textOf(value)]];
    } catch {
      return [];
    }
  });
  return Object.fromEntries(known);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : describe(value);
}

/** The summary, and the parts that it does not mention, as the library writes them: ``summary (node `n`): expected A; got B; hint: C``. */
function messageOf(summary: string, context: ErrorContext): string {
  const missing = (part: string): string[] => {
    const text = context[part as Part];
    return text === undefined || mentions(summary, text) ? [] : [text];
  };
  const names = Object.entries(NAMES).flatMap(([part, name]) => missing(part).map((text) => `${name} \`${text}\``));
  const facts = Object.entries(FACTS).flatMap(([part, before]) => missing(part).map((text) => before + text));
  const separator = facts.length === 1 && facts[0]?.startsWith(FACTS.hint) ? '; ' : ': ';
  return [summary, names.length > 0 ? ` (${names.join(', ')})` : '', facts.length > 0 ? separator + facts.join('; ') : ''].join('');
}

/** Whether `text` has `part`, which is not empty, in it, not as a piece of a longer word or number. */
function mentions(text: string, part: string): boolean {
  const letter = /[\p{L}\p{N}_]/u;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    if (!letter.test(text.charAt(at - 1)) && !letter.test(text.charAt(at + part.length))) return true;
  }
  return false;
}

/**
 * Every failure of this package is one of these. The `message` says all that is known; the parts are fields, too.
 *
 *     await load('model.onnx').catch((error) => {
 *       if (error instanceof KilimError && error.code === 'IO') console.log(error.summary, error.hint);
 *     });
 */
export class KilimError extends Error {
  declare readonly name: 'KilimError';
  readonly code: ErrorCode;
  /** What went wrong, without the parts below. */
  readonly summary: string;
  declare readonly node?: string;
  declare readonly op?: string;
  declare readonly input?: string;
  declare readonly expected?: string;
  declare readonly got?: string;
  declare readonly hint?: string;

  static {
    // On the prototype, so that the stack begins with it.
    Object.defineProperty(KilimError.prototype, 'name', { value: 'KilimError', configurable: true, writable: true });
  }

  constructor(code: ErrorCode, summary: string, context: ErrorContext = {}, cause?: unknown) {
    const parts = contextOf(Object(context));
    super(messageOf(textOf(summary), parts), cause === undefined ? undefined : { cause });
    this.code = code;
    this.summary = textOf(summary);
    Object.assign(this, parts);
  }
}

/** The error that crossed as a plain object. */
export function fromPlain(plain: PlainError, cause?: unknown): KilimError {
  const { code, message, ...context } = plain;
  return new KilimError(code, message, context, cause);
}

/** Any thrown value in the form that crosses threads. */
export function toPlain(thrown: unknown): PlainError {
  if (isKilim(thrown)) return { code: thrown.code, message: thrown.summary, ...contextOf(thrown) };
  if (isPlain(thrown)) return thrown;
  const name = thrown instanceof Error ? `${thrown.name}: ` : '';
  return { code: 'INTERNAL', message: `${name}${reasonOf(thrown)}` };
}

/** Whether it is an error of the package's, also one of another file of it, which has a class of its own. */
const isKilim = (value: unknown): value is KilimError => value instanceof Error && value.name === 'KilimError';

function isPlain(value: unknown): value is PlainError {
  return typeof value === 'object' && value !== null && !(value instanceof Error) && 'code' in value && 'message' in value;
}

/** Whatever was thrown as a KilimError: `INTERNAL` where it is not one of the package's own. */
export function toKilimError(thrown: unknown): KilimError {
  return thrown instanceof KilimError ? thrown : fromPlain(toPlain(thrown), thrown instanceof Error ? thrown : undefined);
}

/**
 * Reads what a caller gave.
 * @throws KilimError what `read` throws; `INVALID_VALUE` with the caller's own error as its cause, where a value throws when it is read.
 */
export function reading<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof KilimError) throw thrown;
    throw new KilimError('INVALID_VALUE', `${what} cannot be read: ${reasonOf(thrown)}`, {}, thrown);
  }
}

/** The error of an aborted call; its `cause` is the signal's reason. */
export function aborted(signal?: AbortSignal): KilimError {
  return new KilimError('ABORTED', 'the call was aborted', {}, signal?.reason);
}
