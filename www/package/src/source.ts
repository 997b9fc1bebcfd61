import { onAbort } from './abort.js';
import { bytesOf } from './bytes.js';
import { describe, reasonOf } from './describe.js';
import { KilimError, aborted } from './errors.js';
import { absolute, fetchBytes } from './fetch.js';

/** Where a model, or a file beside it, comes from. A string is a URL. */
export type ModelSource = string | URL | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | Response;

/** A source in a form that can be posted to a worker. URLs are absolute. */
export type WireSource = { url: string } | { blob: Blob } | { bytes: Uint8Array };

/** Called with the bytes read so far, and all of them where that is known. */
export type OnBytes = (loaded: number, total: number | undefined) => void;

/** What can be handed to a worker is; streams and responses are read here, as their chunks come. */
export async function toWireSource(source: ModelSource, onBytes: OnBytes, signal?: AbortSignal): Promise<WireSource> {
  if (typeof source === 'string' || source instanceof URL) return { url: absolute(source).href };
  if (source instanceof Blob) return { blob: source };
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) return { bytes: bytesOf(source, 'IO') };
  if (source instanceof Response) return { bytes: await readResponse(source, onBytes, signal) };
  if (source instanceof ReadableStream) return { bytes: await readStream(source, undefined, onBytes, signal) };
  throw new KilimError('IO', 'a model must be a URL, bytes, a file, a stream or a response', { got: describe(source) });
}

/** The bytes of a source, read where the runtime is. */
export async function readSource(source: WireSource, onBytes: OnBytes, signal?: AbortSignal): Promise<Uint8Array> {
  if ('bytes' in source) return source.bytes;
  try {
    if ('blob' in source) return await readStream(source.blob.stream(), source.blob.size, onBytes, signal);
    return await readResponse(await fetchBytes(source.url, signal), onBytes, signal);
  } catch (error) {
    if (error instanceof KilimError) throw error;
    throw new KilimError('IO', `cannot read the file: ${reasonOf(error)}`, {}, error);
  }
}

async function readResponse(response: Response, onBytes: OnBytes, signal?: AbortSignal): Promise<Uint8Array> {
  if (!response.ok) {
    throw new KilimError('IO', `cannot read ${response.url || 'the response'}: the server answered ${response.status}`, { got: `${response.status} ${response.statusText}`.trim() });
  }
  // A compressed body's length is not that of the bytes which come out.
  const length = response.headers.get('content-encoding') ? null : response.headers.get('content-length');
  if (response.bodyUsed) throw new KilimError('IO', 'the response was read already');
  if (!response.body) return new Uint8Array(await response.arrayBuffer());
  return readStream(response.body, length === null ? undefined : Number(length), onBytes, signal);
}

async function readStream(stream: ReadableStream<Uint8Array>, total: number | undefined, onBytes: OnBytes, signal?: AbortSignal): Promise<Uint8Array> {
  if (stream.locked) throw new KilimError('IO', 'the stream is being read, or was read already');
  const reader = stream.getReader();
  const buffer = new Growing(total);
  const stopListening = onAbort(signal, () => void reader.cancel(signal?.reason).catch(() => undefined));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (signal?.aborted) throw aborted(signal);
      if (done) return buffer.finish();
      buffer.push(value);
      onBytes(buffer.length, total);
    }
  } catch (error) {
    if (error instanceof KilimError) throw error;
    throw new KilimError('IO', `the stream broke off: ${reasonOf(error)}`, {}, error);
  } finally {
    stopListening();
  }
}

/** Bytes that come in pieces; one allocation where the length was known beforehand. */
class Growing {
  length = 0;
  #bytes: Uint8Array;

  constructor(expected: number | undefined) {
    // A server may claim any length, so that no more than this is taken on trust.
    this.#bytes = new Uint8Array(Math.min(expected || 1 << 16, 1 << 28));
  }

  push(chunk: Uint8Array): void {
    if (!(chunk instanceof Uint8Array)) throw new KilimError('IO', 'a stream must give bytes', { expected: 'Uint8Array', got: describe(chunk) });
    const end = this.length + chunk.length;
    if (end > this.#bytes.length) {
      const bigger = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      bigger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = bigger;
    }
    this.#bytes.set(chunk, this.length);
    this.length = end;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}
