import { onAbort } from './abort.js';
import { bytesOf } from './bytes.js';
import { describe, reasonOf } from './describe.js';
import { KilimError, aborted } from './errors.js';
import { absolute, fetchBytes } from './fetch.js';
import { HEAD } from './hints.js';
import { resumed } from './resume.js';
import type { Resume } from './resume.js';

/** Where a model, or a file beside it, comes from. A string is a URL; in Node it may be a path. */
export type ModelSource = string | URL | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | Response;

/** A source in a form that can be posted to a worker. URLs are absolute; Node posts a file as a blob without its name. */
export type WireSource = { url: string } | { blob: Blob; name: string } | { bytes: Uint8Array; name?: string };

/** What errors call a model; empty where that is not known. */
export function nameOf(source: WireSource): string {
  if ('url' in source) return source.url.slice(0, 1000);
  return source.name ?? '';
}

/** Called with the bytes read so far, and all of them where that is known. */
export type OnBytes = (loaded: number, total: number | undefined) => void;

/** How a source is read. */
export interface Reading {
  onBytes: OnBytes;
  /** Bytes that it may have. */
  most: number;
  signal: AbortSignal | undefined;
  /** Called once, while the file comes, with what `partsIn` needs of it. */
  onHead?: (head: Uint8Array) => void;
  /** Called with all bytes, piece by piece in their order. */
  onChunk?: (chunk: Uint8Array) => void;
  /** Told of a server's answer, before its body is read. */
  onAnswer?: (response: Response) => void;
  /** What a server is told. */
  headers?: Record<string, string>;
}

/** What can be handed to a worker is; streams and responses are read here, as their chunks come. */
export async function toWireSource(source: ModelSource, reading: Reading): Promise<WireSource> {
  if (typeof source === 'string' || source instanceof URL) return { url: absolute(source).href };
  if (source instanceof Blob) return { blob: source, name: source instanceof File ? source.name : '' };
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) return { bytes: bytesOf(source, 'IO') };
  if (source instanceof Response) return { bytes: await readResponse(source, reading) };
  if (source instanceof ReadableStream) return { bytes: await readStream(source, undefined, reading) };
  throw new KilimError('IO', 'a model must be a URL, bytes, a file, a stream or a response', { got: describe(source) });
}

/** The bytes of a source, read where the runtime is. */
export async function readSource(source: WireSource, reading: Reading): Promise<Uint8Array> {
  if ('bytes' in source) return source.bytes;
  try {
    if ('blob' in source) return await readStream(source.blob.stream(), source.blob.size, reading);
    const response = await fetchBytes(source.url, reading.signal, reading.headers);
    reading.onAnswer?.(response);
    return await readResponse(response, reading, (from) => resumed(response, from, source.url, reading));
  } catch (error) {
    if (error instanceof KilimError) throw error;
    throw new KilimError('IO', `cannot read the file: ${reasonOf(error)}`, {}, error);
  }
}

async function readResponse(response: Response, reading: Reading, resume?: Resume): Promise<Uint8Array> {
  if (!response.ok) {
    throw new KilimError('IO', `cannot read ${response.url || 'the response'}: the server answered ${response.status}`, {
      got: `${response.status} ${response.statusText}`.trim(),
    });
  }
  // A compressed body's length is not that of the bytes which come out.
  const length = response.headers.get('content-encoding') ? null : response.headers.get('content-length');
  if (response.bodyUsed) throw new KilimError('IO', 'the response was read already');
  if (!response.body) return new Uint8Array(await response.arrayBuffer());
  return readStream(response.body, length === null ? undefined : Number(length), reading, resume);
}

async function readStream(
  stream: ReadableStream<Uint8Array>,
  total: number | undefined,
  { onBytes, most, signal, onHead, onChunk }: Reading,
  resume?: Resume,
): Promise<Uint8Array> {
  if (stream.locked) throw new KilimError('IO', 'the stream is being read, or was read already');
  let reader = stream.getReader();
  const within = (bytes: number | undefined) => {
    if (bytes !== undefined && bytes > most) throw tooLarge(bytes, most);
  };
  let begun = -1;
  /** What comes next. Where the stream breaks off it is taken up again, unless that brought nothing since the last time. */
  const next = async (from: number): Promise<ReadableStreamReadResult<Uint8Array>> => {
    try {
      return await reader.read();
    } catch (error) {
      const rest = signal?.aborted || begun === from ? undefined : await resume?.(from);
      if (!rest) throw error;
      begun = from;
      reader = rest.getReader();
      return next(from);
    }
  };
  const stopListening = onAbort(signal, () => void reader.cancel(signal?.reason).catch(() => undefined));
  try {
    within(total);
    const buffer = new Growing(total);
    let headToCome = onHead !== undefined;
    for (;;) {
      const { done, value } = await next(buffer.length);
      if (signal?.aborted) throw aborted(signal);
      if (done) return buffer.bytes();
      buffer.push(value);
      onChunk?.(value);
      within(buffer.length);
      if (headToCome && buffer.length >= HEAD) {
        headToCome = false;
        onHead?.(buffer.bytes());
      }
      onBytes(buffer.length, total);
    }
  } catch (error) {
    // What is not read any more need not come.
    void reader.cancel(error).catch(() => undefined);
    if (error instanceof KilimError) throw error;
    throw new KilimError('IO', `the stream broke off: ${reasonOf(error)}`, {}, error);
  } finally {
    stopListening();
  }
}

/** The error of a model file that is too large, in the library's words. */
function tooLarge(bytes: number, most: number): KilimError {
  return new KilimError('LIMIT', 'the model file is too large', {
    expected: `at most ${most} bytes`,
    got: `${bytes} bytes`,
    hint: 'the limit `fileBytes` can be raised',
  });
}

/** Bytes that come in pieces; one allocation where the length was known beforehand. */
class Growing {
  length = 0;
  #room: Uint8Array;

  constructor(expected: number | undefined) {
    // A server may claim any length, so that no more than this is taken on trust.
    this.#room = new Uint8Array(Math.min(expected || 1 << 16, 1 << 28));
  }

  push(chunk: Uint8Array): void {
    if (!(chunk instanceof Uint8Array))
      throw new KilimError('IO', 'a stream must give bytes', { expected: 'Uint8Array', got: describe(chunk) });
    const end = this.length + chunk.length;
    if (end > this.#room.length) {
      const bigger = new Uint8Array(Math.max(end, this.#room.length * 2));
      bigger.set(this.#room.subarray(0, this.length));
      this.#room = bigger;
    }
    this.#room.set(chunk, this.length);
    this.length = end;
  }

  /** The bytes that have come. */
  bytes(): Uint8Array {
    return this.#room.subarray(0, this.length);
  }
}
