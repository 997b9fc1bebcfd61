import { fetchBytes } from './fetch.js';

/** What comes from a byte on; `undefined` where the server does not go on with the same file. */
export type Resume = (from: number) => Promise<ReadableStream<Uint8Array> | undefined>;

/** Milliseconds before a broken download is taken up again, each after the one before has failed. */
const PAUSES = [100, 500, 2000, 5000];

/** What says that a file is the same; a weak tag says it of its meaning alone. Servers need not allow other origins to see the first. */
const tagOf = ({ headers }: Response): string | null =>
  [headers.get('etag'), headers.get('last-modified')].find((tag) => tag && !tag.startsWith('W/')) ?? null;

const lengthOf = ({ headers }: Response): number => Number(headers.get('content-length') ?? NaN);

/** The rest of what an answer began with. It is taken where its version and its length are right: `If-Range` is not for other origins. */
export async function resumed(
  first: Response,
  from: number,
  url: string,
  { signal, headers }: { signal: AbortSignal | undefined; headers?: Record<string, string> },
): Promise<ReadableStream<Uint8Array> | undefined> {
  const tag = tagOf(first);
  // Ranges of a compressed body are not those of its content.
  if (!tag || first.headers.get('content-encoding')) return undefined;
  for (const pause of PAUSES) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (signal?.aborted) return undefined;
    const rest = await fetchBytes(url, signal, { ...headers, Range: `bytes=${from}-` }).catch(() => undefined);
    if (!rest || rest.status >= 500) continue;
    if (rest.status === 206 && tagOf(rest) === tag && lengthOf(rest) === lengthOf(first) - from && rest.body) return rest.body;
    void rest.body?.cancel().catch(() => undefined);
    return undefined;
  }
  return undefined;
}
