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

/** An error as it crosses from the worker. */
export interface PlainError extends ErrorContext {
  code: ErrorCode;
  message: string;
}

/** Every failure of this package is one of these. */
export class KilimError extends Error {
  override readonly name = 'KilimError';
  readonly code: ErrorCode;
  readonly node?: string;
  readonly op?: string;
  readonly input?: string;
  readonly expected?: string;
  readonly got?: string;
  readonly hint?: string;

  constructor(code: ErrorCode, message: string, context: ErrorContext = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    Object.assign(this, context);
  }

  static from(plain: PlainError, cause?: unknown): KilimError {
    const { code, message, ...context } = plain;
    return new KilimError(code, message, context, cause);
  }
}

/** Any thrown value in the form that crosses threads. */
export function toPlain(error: unknown): PlainError {
  if (error instanceof KilimError) {
    const { code, message, node, op, input, expected, got, hint } = error;
    const fields = Object.entries({ node, op, input, expected, got, hint }).filter(([, v]) => v !== undefined);
    return { code, message, ...Object.fromEntries(fields) };
  }
  if (isPlain(error)) return error;
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { code: 'INTERNAL', message };
}

function isPlain(value: unknown): value is PlainError {
  return typeof value === 'object' && value !== null && !(value instanceof Error) && 'code' in value && 'message' in value;
}

/** The error of an aborted call; its `cause` is the signal's reason. */
export function aborted(signal?: AbortSignal): KilimError {
  return new KilimError('ABORTED', 'the call was aborted', {}, signal?.reason);
}
