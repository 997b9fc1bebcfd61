import type { WireSource } from '../source.js';

/** What is known of something that is kept. */
export interface About {
  /** `file` is of a model; `listing` are the names of a repository's files, `found` what was found out of this machine's devices. */
  kind: 'file' | 'listing' | 'found';
  /** What `load` was given. */
  address: string;
  /** The commit, of what is from a hub. */
  revision?: string;
  name: string;
  bytes: number;
  /** In base 64, where it is known. */
  sha256?: string;
  /** What the server said of its version. */
  tag?: string;
  /** When it came, in milliseconds since 1970. */
  time: number;
}

/** Where files stay from one visit to the next, by keys that are addresses. */
export interface Store {
  find(key: string): Promise<{ about: About; source: WireSource } | undefined>;
  put(key: string, about: About, bytes: Uint8Array | Blob): Promise<void>;
  remove(key: string): Promise<void>;
  entries(): Promise<[key: string, about: About][]>;
  /** Asks for a place that is not cleared when room is short; whether it is one. */
  persist(): Promise<boolean>;
}

const NAME = 'kilim';
const HEADER = 'x-kilim';

const read = (response: Response | undefined): About | undefined => {
  const about = response?.headers.get(HEADER);
  return about ? JSON.parse(decodeURIComponent(about)) : undefined;
};

/** The browser's Cache API; `undefined` where there is none, as in pages without https. */
export function openStore(): Store | undefined {
  if (!('caches' in globalThis)) return undefined;
  const opened = () => caches.open(NAME);
  return {
    async find(key) {
      const response = await (await opened()).match(key);
      const about = read(response);
      if (!response || !about) return undefined;
      const blob = await response.blob();
      // What is not whole is as good as nothing.
      return blob.size === about.bytes ? { about, source: { blob, name: about.name } } : undefined;
    },
    async put(key, about, bytes) {
      const headers = { [HEADER]: encodeURIComponent(JSON.stringify(about)), 'content-type': 'application/octet-stream' };
      await (await opened()).put(key, new Response(bytes as BodyInit, { headers }));
    },
    async remove(key) {
      await (await opened()).delete(key);
    },
    async entries() {
      const cache = await opened();
      const all = (await cache.keys()).map(async (request): Promise<[string, About][]> => {
        const about = read(await cache.match(request));
        return about ? [[request.url, about]] : [];
      });
      return (await Promise.all(all)).flat();
    },
    persist: async () => (await navigator.storage?.persist?.()) ?? false,
  };
}
