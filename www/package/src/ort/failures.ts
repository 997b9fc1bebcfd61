import { KilimError } from '../index.js';
import type { ErrorCode } from '../index.js';

/** What onnxruntime calls kinds of failures: `OrtErrorCode` in onnxruntime_c_api.h. */
const NUMBERS: Partial<Record<ErrorCode, number>> = {
  INPUT: 2,
  SHAPE: 2,
  DTYPE: 2,
  INVALID_VALUE: 2,
  IO: 3,
  INVALID_MODEL: 7,
  UNKNOWN_FORMAT: 7,
  UNSUPPORTED: 9,
  INVALID_GRAPH: 10,
  DEVICE: 11,
  NO_BACKEND: 11,
};
const GENERAL_FAILURE = 1;

/** What onnxruntime-web's messages begin with, by the call that failed. */
const CALLS = { create: "Can't create a session.", run: 'failed to call OrtRun().' } as const;

/** What onnxruntime says of some failures of `create`, for which callers look in messages. */
const WORDS: Partial<Record<ErrorCode, string>> = { UNKNOWN_FORMAT: 'Failed to load model because protobuf parsing failed: ' };

/** An error of Kilim, with its code and parts, in a message of onnxruntime-web's form. */
export function failure(call: keyof typeof CALLS, error: unknown): unknown {
  if (!(error instanceof KilimError)) return error;
  const { code, summary, node, op, input, expected, got, hint } = error;
  const parts = Object.entries({ node, op, input, expected, got, hint }).filter(([, part]) => part !== undefined);
  const words = call === 'create' ? (WORDS[code] ?? '') : '';
  return failed(call, code, `${words}${summary}`, Object.fromEntries(parts), error);
}

/** An error of `code` that says what onnxruntime says. */
export function failed(
  call: keyof typeof CALLS,
  code: ErrorCode,
  message: string,
  parts: ConstructorParameters<typeof KilimError>[2] = {},
  cause?: unknown,
): KilimError {
  return new KilimError(code, `${CALLS[call]} ERROR_CODE: ${NUMBERS[code] ?? GENERAL_FAILURE}, ERROR_MESSAGE: ${message}`, parts, cause);
}
