// What `load` does with `hf:` addresses, `cache: true` and `integrity`: a file of its own, which is fetched for these alone.
import { KilimError } from './index.js';
import type { LoadOptions } from './index.js';
export { hubFolder } from './downloads/folder.js';
import { HUB, checkFile, fileAddress, hubFile, isCommit, listingAddress, readListing, weightsBeside } from './downloads/hub.js';
import type { HubFile, Listing } from './downloads/hub.js';
import { sha256 } from './downloads/sha256.js';
import { openStore } from './downloads/store.js';
import type { About, Store } from './downloads/store.js';
import type { Engine } from './protocol.js';
import type { Reading, WireSource } from './source.js';
import { wired } from './wired.js';

/** A model and the files that belong to it, by the names it has for them. */
export interface Files {
  source: WireSource;
  external: Record<string, WireSource>;
}

/** What was found out of this machine when the model was loaded before, and what keeps that of a session from now on. */
export interface Kept extends Files {
  found?: Uint8Array;
  keepFound?: (engine: Engine) => void;
}

/** Reads a source, with what is to be read otherwise than `load` does. */
export type Read<T = Uint8Array> = (source: WireSource, more: Partial<Reading>) => Promise<T>;
/** Reads one that may be large. */
type ReadLarge = Read<Uint8Array | Blob>;

type Settings = Pick<LoadOptions, 'cache' | 'integrity' | 'revision' | 'token' | 'hub' | 'signal'>;

/** A file that is to be had from an address. */
interface Place {
  url: string;
  name: string;
  about: Pick<About, 'address' | 'revision'>;
  /** The hash that it must have, in base 64. */
  expected: string | undefined;
  /** Whether there is no other file at this address, ever. */
  fixed: boolean;
  headers: Record<string, string>;
  store: Store | undefined;
}

/** Bytes of the longest listing of a repository. */
const LONGEST = 2 ** 26;

/**
 * The files as they are given to the runtime: from where they are kept, or from their addresses, and then kept.
 * @throws KilimError `IO` where a file cannot be had or has another hash, `INVALID_VALUE` for addresses and hashes that are none, `UNSUPPORTED` for
 * `cache: true` where nothing can be kept, `ABORTED`.
 */
export async function download({ source, external }: Files, settings: Settings, read: Read, large: ReadLarge): Promise<Kept> {
  const store = settings.cache === false ? undefined : openStore();
  if (settings.cache === true && !store)
    throw new KilimError('UNSUPPORTED', 'there is no place where files could be kept', {
      hint: 'browsers have one for pages that are served over https',
    });
  const hubs = new Hubs(settings, store, read);
  const files = new Map<string, WireSource>([['', source], ...Object.entries(external)]);
  const own = isHub(source) ? hubFile(source.url) : undefined;
  if (own) for (const [name, url] of await hubs.beside(own)) if (!files.has(name)) files.set(name, { url });
  const hashes = hashesOf(settings.integrity, source, [...files.keys()]);
  const made = new Map<string, WireSource>();
  let key: string | undefined;
  for (const [name, given] of files) {
    const expected = hashes.get(name);
    const place = isHub(given)
      ? await hubs.place(given.url, expected)
      : placeOf(given, expected, settings.cache === true ? store : undefined);
    if (name === '' && place?.store) key = place.url;
    made.set(name, place ? await fetched(place, large, settings.signal) : await checked(given, expected, large));
  }
  const { '': model, ...others } = Object.fromEntries(made);
  const kept = { source: model as WireSource, external: others };
  return key === undefined || !store ? kept : { ...kept, ...(await foundFor(key, store, read)) };
}

const isHub = (source: WireSource): source is { url: string } => 'url' in source && source.url.startsWith('hf:');
const lastOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** What a source is called. */
const nameOf = (source: WireSource): string => ('url' in source ? lastOf(source.url.replace(/[?#].*/s, '')) : (source.name ?? ''));

/** The hash that each file must have, by the names in `files`, where the model is ''. */
function hashesOf(integrity: Settings['integrity'], model: WireSource, files: readonly string[]): Map<string, string> {
  const given = typeof integrity === 'string' ? { [nameOf(model)]: integrity } : (integrity ?? {});
  return new Map(
    Object.entries(given).map(([name, text]) => {
      const file = files.includes(name) ? name : name === nameOf(model) ? '' : undefined;
      if (file === undefined)
        throw new KilimError('INVALID_VALUE', `\`integrity\` names no file of the model: \`${name}\``, {
          expected: [nameOf(model), ...files.slice(1)].join(', '),
        });
      const hash = typeof text === 'string' ? /^sha256-([A-Za-z0-9+/]{43}=)$/.exec(text)?.[1] : undefined;
      if (hash === undefined)
        throw new KilimError('INVALID_VALUE', '`integrity` is a SHA-256 hash', {
          expected: '`sha256-` and 44 letters of base 64',
          got: String(text).slice(0, 100),
        });
      return [file, hash];
    }),
  );
}

/** Where a file that has an address on the web comes from; `undefined` for what is here already. */
function placeOf(source: WireSource, expected: string | undefined, store: Store | undefined): Place | undefined {
  if (!('url' in source) || !/^https?:/.test(source.url)) return undefined;
  const url = source.url.replace(/#.*/s, '');
  return { url, name: nameOf(source), about: { address: url }, expected, fixed: expected !== undefined, headers: {}, store };
}

/** The file, from where it is kept or from its address. */
async function fetched(place: Place, read: ReadLarge, signal: AbortSignal | undefined): Promise<WireSource> {
  const { url, name, expected, store, headers, about } = place;
  const kept = await store?.find(url).catch(() => undefined);
  if (kept && (expected === undefined || kept.about.sha256 === expected) && (place.fixed || (await isCurrent(url, kept.about, signal))))
    return kept.source;
  const hash = expected === undefined ? undefined : sha256();
  let tag: string | undefined;
  const file = await read(
    { url },
    {
      headers,
      onAnswer: (response) => {
        tag = tagOf(response);
      },
      ...(hash && { onChunk: (chunk) => hash.add(chunk) }),
    },
  );
  const found = hash?.end();
  if (found !== expected) throw otherHash(url, expected, found);
  const told: About = {
    ...about,
    kind: 'file',
    name,
    bytes: file instanceof Blob ? file.size : file.length,
    time: Date.now(),
    ...(found !== undefined && { sha256: found }),
    ...(tag !== undefined && { tag }),
  };
  // Without room the model is loaded all the same.
  await store?.put(url, told, file).catch(() => undefined);
  return wired(file, name);
}

const tagOf = ({ headers }: Response): string | undefined => headers.get('etag') ?? headers.get('last-modified') ?? undefined;

/** Whether the server has no other version by now. Where there is no answer, what is kept is the best there is. */
async function isCurrent(url: string, { tag }: About, signal: AbortSignal | undefined): Promise<boolean> {
  const answer = await fetch(url, { method: 'HEAD', ...(signal && { signal }) }).catch(() => undefined);
  const now = answer?.ok ? tagOf(answer) : undefined;
  return now === undefined || tag === undefined || now === tag;
}

/** A source without an address on the web, with its bytes where they are to have a hash. */
async function checked(source: WireSource, expected: string | undefined, read: ReadLarge): Promise<WireSource> {
  if (expected === undefined) return source;
  const hash = sha256();
  const file = await read(source, { onChunk: hash.add });
  if ('bytes' in source) hash.add(source.bytes);
  const found = hash.end();
  if (found !== expected) throw otherHash(nameOf(source) || 'the model', expected, found);
  // A blob of a blob is a copy.
  return 'blob' in source ? source : wired(file, nameOf(source));
}

function otherHash(what: string, expected: string | undefined, got: string | undefined): KilimError {
  return new KilimError('IO', `${what} is not the file that \`integrity\` says, or that the hub lists`, {
    expected: `sha256-${expected}`,
    got: `sha256-${got}`,
  });
}

/** What was found out while the model of this key was loaded, and what keeps it. */
async function foundFor(key: string, store: Store, read: Read): Promise<Pick<Kept, 'found' | 'keepFound'>> {
  const own = `${key}${key.includes('?') ? '&' : '?'}kilim-found`;
  const kept = await store.find(own).catch(() => undefined);
  const address = (await store.find(key).catch(() => undefined))?.about.address ?? key;
  const keep = async (engine: Engine): Promise<void> => {
    const bytes = await engine.saveCache();
    await store.put(own, { kind: 'found', address, name: 'found', bytes: bytes.length, time: Date.now() }, bytes);
  };
  const keepFound = (engine: Engine): void => {
    // Nobody waits for it: the next load does without what was not kept.
    const keepSoon = (): void => void keep(engine).catch(() => undefined);
    keepSoon();
    const run = engine.run;
    // Models with free dimensions are planned, and measured, by their first run.
    engine.run = async (request, signal) => {
      engine.run = run;
      const ran = await run(request, signal);
      keepSoon();
      return ran;
    };
  };
  const found = kept && (await read(kept.source, { onBytes: () => undefined }).catch(() => undefined));
  return { keepFound, ...(found && { found }) };
}

/** A repository of a hub at one commit. `openHub` gives these. */
export interface Repository {
  /** `owner/name`. */
  name: string;
  commit: string;
  /** The paths of its files. */
  paths: readonly string[];
  /**
   * The bytes of a file, from where it is kept or from the hub, and then kept. `onBytes` is told how many have come.
   * @throws KilimError `IO` where there is no such file, where it cannot be had, and where it is not the one that the hub lists.
   */
  read(path: string, onBytes?: (loaded: number, total: number | undefined) => void): Promise<Uint8Array>;
}

/** @throws KilimError as `download` does. */
export async function openRepository(address: string, settings: Settings, read: Read): Promise<Repository> {
  const { repository } = hubFile(`${address.replace(/\/+$/, '')}/x`);
  const hubs = new Hubs(settings, settings.cache === false ? undefined : openStore(), read);
  const { commit, files } = await hubs.listing(repository);
  return {
    name: repository,
    commit,
    paths: [...files.keys()],
    async read(path, onBytes = () => undefined) {
      const telling: Read = (source, more) => read(source, { onBytes, ...more });
      return telling(await fetched(await hubs.place(`hf:${repository}/${path}`, undefined), telling, settings.signal), {});
    },
  };
}

/** Repositories of a hub, whose files are listed once for a load. */
class Hubs {
  readonly #hub: string;
  readonly #revision: string;
  readonly #headers: Record<string, string>;
  readonly #store: Store | undefined;
  readonly #read: Read;
  readonly #listings = new Map<string, Promise<Listing>>();

  constructor({ hub = HUB, revision = 'main', token }: Settings, store: Store | undefined, read: Read) {
    this.#hub = hubAddress(hub);
    this.#revision = revision;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    this.#store = store;
    this.#read = read;
  }

  /** Files of weights beside a model, with their addresses. */
  async beside(file: HubFile): Promise<[name: string, url: string][]> {
    const listing = await this.listing(file.repository);
    checkFile(file, listing);
    return weightsBeside(file.path, listing).map((path) => [lastOf(path), `hf:${file.repository}/${path}`]);
  }

  async place(address: string, expected: string | undefined): Promise<Place> {
    const file = hubFile(address);
    const listing = await this.listing(file.repository);
    checkFile(file, listing);
    const { commit } = listing;
    return {
      url: fileAddress(this.#hub, file, commit),
      name: lastOf(file.path),
      about: { address: `hf:${file.repository}/${file.path}`, revision: commit },
      expected: expected ?? listing.files.get(file.path)?.sha256,
      fixed: true,
      headers: this.#headers,
      store: this.#store,
    };
  }

  listing(repository: string): Promise<Listing> {
    const listing = this.#listings.get(repository) ?? this.#list(repository);
    this.#listings.set(repository, listing);
    return listing;
  }

  /** The files as the hub lists them; without a network, and for a commit, as they were listed before. */
  async #list(repository: string): Promise<Listing> {
    const url = listingAddress(this.#hub, repository, this.#revision);
    const store = this.#store;
    const readKept = async (): Promise<Listing | undefined> => {
      const kept = await store?.find(url).catch(() => undefined);
      return kept && readListing(text(await this.#read(kept.source, { onBytes: () => undefined })), url);
    };
    const known = isCommit(this.#revision) ? await readKept() : undefined;
    if (known) return known;
    let status: number | undefined;
    const onAnswer = (response: Response): void => {
      status = response.status;
    };
    try {
      const bytes = await this.#read({ url }, { headers: this.#headers, most: LONGEST, onBytes: () => undefined, onAnswer });
      const listing = readListing(text(bytes), url);
      const about: About = { kind: 'listing', address: `hf:${repository}`, name: 'listing', bytes: bytes.length, time: Date.now() };
      await store?.put(url, about, bytes).catch(() => undefined);
      return listing;
    } catch (error) {
      // A refusal is an answer; no answer is none.
      const kept = status === undefined || status >= 500 ? await readKept() : undefined;
      if (kept) return kept;
      if (!(error instanceof KilimError) || status === undefined || status < 400 || status >= 500) throw error;
      const hint = `there is no public repository of that name with the revision \`${this.#revision}\`; the option \`token\` opens others`;
      throw new KilimError('IO', error.summary, { got: error.got ?? '', hint }, error);
    }
  }
}

/** @throws KilimError `INVALID_VALUE` where it is none. */
function hubAddress(hub: string | URL): string {
  try {
    return new URL(hub, globalThis.location?.href).href.replace(/\/+$/, '');
  } catch (error) {
    throw new KilimError('INVALID_VALUE', '`hub` is no address', { got: String(hub).slice(0, 100) }, error);
  }
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
