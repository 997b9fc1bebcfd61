import { KilimError } from '../index.js';

/** A file in a repository, by an address `hf:owner/name/path`. */
export interface HubFile {
  repository: string;
  path: string;
}

/** What a hub says of a file. */
interface Sibling {
  rfilename: string;
  lfs?: { sha256?: string };
}

/** The files of a repository at a commit, with the hashes of those that are large. */
export interface Listing {
  commit: string;
  files: Map<string, { sha256: string | undefined }>;
}

export const HUB = 'https://huggingface.co';
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

/** @throws KilimError `INVALID_VALUE` where it is none. */
export function hubFile(address: string): HubFile {
  const [owner, name, ...path] = address.slice('hf:'.length).replace(/^\/+/, '').split('/').map(decoded);
  const wrong = (part: string | undefined) => part === undefined || part === '' || /^\.\.?$/.test(part);
  if ([owner, name].some((part) => wrong(part) || !/^[\w.-]+$/.test(part ?? '')) || path.length === 0 || path.some(wrong))
    throw new KilimError('INVALID_VALUE', 'this is no address of a file on the hub', {
      expected: 'hf:owner/name/path',
      got: address.slice(0, 200),
    });
  return { repository: `${owner}/${name}`, path: path.join('/') };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const encoded = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** Where the hub lists the files of a repository. */
export const listingAddress = (hub: string, repository: string, revision: string): string =>
  `${hub}/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`;

/** Where a file is. */
export const fileAddress = (hub: string, { repository, path }: HubFile, commit: string): string =>
  `${hub}/${repository}/resolve/${commit}/${encoded(path)}`;

/** @throws KilimError `IO` where the text is no listing. */
export function readListing(text: string, address: string): Listing {
  const wrong = (cause?: unknown) => new KilimError('IO', `${address} does not answer as a hub does`, { got: text.slice(0, 100) }, cause);
  let json: { sha?: unknown; siblings?: unknown };
  try {
    json = Object(JSON.parse(text));
  } catch (error) {
    throw wrong(error);
  }
  const { sha, siblings } = json;
  if (typeof sha !== 'string' || !isCommit(sha) || !Array.isArray(siblings)) throw wrong();
  const known = siblings.filter((file): file is Sibling => typeof file?.rfilename === 'string');
  return { commit: sha, files: new Map(known.map(({ rfilename, lfs }) => [rfilename, { sha256: base64(lfs?.sha256) }])) };
}

/** Hexadecimal digits of a hash in base 64. */
function base64(hexadecimal: unknown): string | undefined {
  if (typeof hexadecimal !== 'string' || !/^[0-9a-f]{64}$/.test(hexadecimal)) return undefined;
  return btoa(hexadecimal.replace(/../g, (digits) => String.fromCharCode(Number.parseInt(digits, 16))));
}

/** Files of weights beside a model: `NAME.data`, `NAME_data`, `NAME_data_1` and so on. */
export function weightsBeside(path: string, { files }: Listing): string[] {
  return [...files.keys()].filter((file) => file.startsWith(path) && /^[._]data(_\d+)?$/.test(file.slice(path.length)));
}

/** @throws KilimError `IO` where the repository has no such file. */
export function checkFile({ repository, path }: HubFile, { commit, files }: Listing): void {
  if (files.has(path)) return;
  const models = [...files.keys()].filter((file) => /\.(onnx|ort|tflite|circle|gguf)$/.test(file)).slice(0, 20);
  throw new KilimError('IO', `the repository ${repository} has no file \`${path}\``, {
    got: `commit ${commit}`,
    ...(models.length > 0 && { hint: `its models are ${models.join(', ')}` }),
  });
}
