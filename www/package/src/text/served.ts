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
