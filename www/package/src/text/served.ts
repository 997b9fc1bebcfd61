import { KilimError } from '../index.js';

/** The address of a folder. */
export function folderAt(address: string | URL): URL {
  return new URL(address, globalThis.location?.href);
}

/**
 * Whether there is a file at an address.
 * @throws KilimError `IO` where the server does not say, `ABORTED`.
 */
export async function exists(url: URL, signal?: AbortSignal): Promise<boolean> {
  let response: Response;
  try {
    response = await fetch(url, { method: 'HEAD', ...(signal && { signal }) });
  } catch (error) {
    if (signal?.aborted) throw new KilimError('ABORTED', 'the call was aborted', {}, signal.reason);
    throw new KilimError('IO', `${url.href} cannot be read: ${error}`, {}, error);
  }
  if (response.ok) return true;
  if (response.status === 404 || response.status === 410) return false;
  throw new KilimError('IO', `${url.href}: the server answered ${response.status}`);
}

/**
 * The text at an address.
 * @throws KilimError `IO`.
 */
export async function readAt(address: string | URL, signal?: AbortSignal): Promise<string> {
  const response = await fetch(address, signal ? { signal } : {}).catch((error) => {
    throw new KilimError('IO', `${address} cannot be read: ${error}`, {}, error);
  });
  if (!response.ok) throw new KilimError('IO', `${address}: the server answered ${response.status}`);
  return response.text();
}

/**
 * The first bytes at an address, at most `count`.
 * @throws KilimError `IO`, `ABORTED`.
 */
export async function beginAt(url: URL, count: number, signal?: AbortSignal): Promise<Uint8Array> {
  const headers = { Range: `bytes=0-${count - 1}` };
  const response = await fetch(url, { headers, ...(signal && { signal }) }).catch((error) => {
    if (signal?.aborted) throw new KilimError('ABORTED', 'the call was aborted', {}, signal.reason);
    throw new KilimError('IO', `${url.href} cannot be read: ${error}`, {}, error);
  });
  if (!response.ok || response.body === null) throw new KilimError('IO', `${url.href}: the server answered ${response.status}`);
  return firstOf(response.body, count);
}

/** What comes first of a stream, which is ended behind it: servers may send all, whatever they were asked for. */
async function firstOf(stream: ReadableStream<Uint8Array>, count: number): Promise<Uint8Array> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length < count) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.byteLength;
  }
  await reader.cancel();
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}
