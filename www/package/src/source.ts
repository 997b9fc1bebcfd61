import { onAbort } from './abort.js';
import { LARGE_FILE } from './apart.js';
import { bytesOf } from './bytes.js';
import { describe, reasonOf } from './describe.js';
import { KilimError, aborted } from './errors.js';
import { absolute, fetchBytes } from './fetch.js';
import { HEAD } from './hints.js';
import { resumed } from './resume.js';
import type { Resume } from './resume.js';
import { wired } from './wired.js';

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
  /** Called once, while the file comes, with what `kindsIn` needs of it. */
  onHead?: (head: Uint8Array) => void;
  /** Called with all bytes, piece by piece in their order. */
  onChunk?: (chunk: Uint8Array) => void;
  /** Whether many bytes may come as a blob: this thread then holds a piece of them at a time. */
  blobs?: boolean;
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
  if (source instanceof Response) return wired(await readResponse(source, reading));
  if (source instanceof ReadableStream) return wired(await readStream(source, undefined, reading));
  throw new KilimError('IO', 'a model must be a URL, bytes, a file, a stream or a response', { got: describe(source) });
}

/** The bytes of a source, read where the runtime is. */
export function readSource(source: WireSource, reading: Reading & { blobs?: false }): Promise<Uint8Array>;
export function readSource(source: WireSource, reading: Reading): Promise<Uint8Array | Blob>;
export async function readSource(source: WireSource, reading: Reading): Promise<Uint8Array | Blob> {
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

async function readResponse(response: Response, reading: Reading, resume?: Resume): Promise<Uint8Array | Blob> {
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
  { onBytes, most, signal, onHead, onChunk, blobs }: Reading,
  resume?: Resume,
): Promise<Uint8Array | Blob> {
  if (stream.locked) throw new KilimError('IO', 'the stream is being read, or was read already');
  let reader = stream.getReader();
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
    checkBytes(total, most);
    const buffer = new Growing(total, blobs ? LARGE_FILE : Infinity);
    let headToCome = onHead !== undefined;
    for (;;) {
      const { done, value } = await next(buffer.length);
      if (signal?.aborted) throw aborted(signal);
      if (done) return buffer.whole();
      buffer.push(value);
      onChunk?.(value);
      checkBytes(buffer.length, most);
      if (headToCome && buffer.length >= HEAD) {
        headToCome = false;
        onHead?.(buffer.latest());
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

/** @throws KilimError `LIMIT` for a model file that is too large, in the library's words. */
export function checkBytes(bytes: number | undefined, most: number): void {
  if (bytes === undefined || bytes <= most) return;
  throw new KilimError('LIMIT', 'the model file is too large', {
    expected: `at most ${most} bytes`,
    got: `${bytes} bytes`,
    hint: 'the limit `fileBytes` can be raised',
  });
}

/** Bytes that come in pieces; one allocation where the length was known beforehand. More than `piece` of them go into blobs. */
class Growing {
  length = 0;
  #room: Uint8Array<ArrayBuffer>;
  #held = 0;
  readonly #blobs: Blob[] = [];
  readonly #piece: number;

  constructor(expected: number | undefined, piece: number) {
    // A server may claim any length, so that no more than this is taken on trust.
    this.#room = new Uint8Array(Math.min(expected || 1 << 16, 1 << 28, piece));
    this.#piece = piece;
  }

  push(chunk: Uint8Array): void {
    if (!(chunk instanceof Uint8Array))
      throw new KilimError('IO', 'a stream must give bytes', { expected: 'Uint8Array', got: describe(chunk) });
    if (this.#held > 0 && this.#held + chunk.length > this.#piece) {
      this.#blobs.push(new Blob([this.latest()]));
      this.#held = 0;
    }
    const end = this.#held + chunk.length;
    if (end > this.#room.length) {
      const bigger = new Uint8Array(Math.max(end, this.#room.length * 2));
      bigger.set(this.latest());
      this.#room = bigger;
    }
    this.#room.set(chunk, this.#held);
    this.#held = end;
    this.length += chunk.length;
  }

  /** The bytes that have come and are in no blob. */
  latest(): Uint8Array<ArrayBuffer> {
    return this.#room.subarray(0, this.#held);
  }

  /** All bytes that have come. */
  whole(): Uint8Array | Blob {
    return this.#blobs.length === 0 ? this.latest() : new Blob([...this.#blobs, this.latest()]);
  }
}
