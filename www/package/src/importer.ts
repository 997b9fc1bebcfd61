// Importers of a page in the runtime's thread. A file of its own, which sessions import whose page has registered one.
import { describe, reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import type { ErrorCode } from './errors.js';
import { FIELDS } from './metadata.js';
import type { ModelMetadata } from './metadata.js';
import { check, toWire } from './tensor.js';
import type { DType, TensorLike, WireTensor } from './tensor.js';

/** A model file that an importer reads. */
export interface ImportedFile {
  /** The address of the file, or what the page calls it. */
  name: string;
  bytes: Uint8Array;
  /** The names of the files that were given along with it, as `externalData`. */
  beside: string[];
  /**
   * The bytes of one of these.
   * @throws KilimError `IO` where it was not given.
   */
  read(path: string): Uint8Array;
}

/** What an attribute of a node may be. Where an operator wants a single value a list of one will do, and a whole number where it wants any. */
export type DraftAttribute =
  | number
  | bigint
  | boolean
  | string
  | Uint8Array
  | readonly (number | bigint)[]
  | readonly string[]
  | TensorLike
  | DraftBody;

/** A node: an operator of the newest operator sets of ONNX, or one that `operators` of `load` brings. */
export interface DraftNode {
  /** What errors and reports call it; the name of its first output where it is left out. */
  name?: string;
  /** Left out for the standard domain. */
  domain?: string;
  op: string;
  /** Under the names that ONNX gives them. */
  attributes?: Record<string, DraftAttribute>;
  /** The names of values, also of those that a later node gives; `null` for an optional input that is left out. */
  inputs: (string | null)[];
  /** New names; `null` for an output that is left out. */
  outputs: (string | null)[];
}

/** An input of a model. A dimension is a size, the name of an open one, or `null`. */
export interface DraftInput {
  name: string;
  type: DType;
  dims: (number | string | null)[];
}

/**
 * A graph in an attribute: a branch of If, the body of Loop or Scan. It sees the values of the graphs around it, and what it names itself goes
 * before. At most 64 stand in each other.
 */
export interface DraftBody {
  /** Element type and shape of an input without a `type` are those of what the node gives it. Left out where there are none, as in a branch. */
  inputs?: (DraftInput | { name: string })[];
  /** Values with their elements. Those that are views of `ImportedFile.bytes` are not copied. */
  constants?: Record<string, TensorLike>;
  nodes: DraftNode[];
  /** Values by their names, in the order of ONNX. */
  outputs: string[];
}

/** A model, as an importer makes it. Names of inputs, constants and outputs of nodes are different. */
export interface ModelDraft {
  inputs: DraftInput[];
  /** Values with their elements. Those that are views of `ImportedFile.bytes` are not copied. */
  constants?: Record<string, TensorLike>;
  nodes: DraftNode[];
  /** Values by their names. */
  outputs: string[];
  /** What the file says of itself. */
  metadata?: Partial<ModelMetadata>;
}

/** An importer in JavaScript. A module exports it as its default. */
export interface PageImporter {
  /** Whether a file is of this format, by its first bytes, at most 65536, and its name. */
  probe(head: Uint8Array, name: string): boolean;
  /** Reads the file: gives its model, or the bytes of one in a format that Kilim has. What it throws is why it cannot; a `code` of its own is kept. */
  load(file: ImportedFile): ModelDraft | Uint8Array | Promise<ModelDraft | Uint8Array>;
}

/** A constant whose elements are `length` bytes of a file from `offset` on. */
interface WirePart {
  name: string;
  type: DType;
  dims: readonly number[];
  /** The number of the file: 0 is the model, 1 the first beside it. */
  file: number;
  offset: number;
  length: number;
}

/** Lists of integers and numbers are arrays of these kinds. */
type WireAttribute = bigint | number | string | Uint8Array | BigInt64Array | Float64Array | readonly string[] | WireTensor;

/** A graph as the runtime takes it (`crates/web/src/draft.rs`). */
interface WireGraph {
  inputs: (DraftInput | { name: string })[];
  constants: (WireTensor | WirePart)[];
  nodes: WireNode[];
  outputs: string[];
}

interface WireNode {
  name: string;
  domain: string;
  op: string;
  attributes: Record<string, WireAttribute>;
  /** Graphs by the names of their attributes. */
  bodies: (WireGraph & { attribute: string })[];
  inputs: string[];
  outputs: string[];
}

/** A model as the runtime takes it. */
export interface WireDraft extends WireGraph {
  id: string;
  /** The fields, and behind them keys and texts. */
  metadata: string[];
}

/** The model file, and the files beside it by their names, in the order of the runtime. Bytes are copies. */
export interface FilesToImport {
  name: string;
  head: Uint8Array;
  bytes(): Uint8Array;
  beside: [name: string, bytes: () => Uint8Array][];
}

const CODES: readonly unknown[] = ['INVALID_MODEL', 'UNSUPPORTED', 'LIMIT', 'IO', 'INVALID_VALUE'] satisfies ErrorCode[];

/** What an importer has thrown; what is wrong with what it gave is told as it is. */
function failed(id: string, thrown: unknown): KilimError {
  if (thrown instanceof KilimError) return thrown;
  const { code } = Object(thrown) as { code?: unknown };
  const known = CODES.includes(code) ? (code as ErrorCode) : 'INVALID_MODEL';
  return new KilimError(known, `the importer \`${id}\` failed: ${reasonOf(thrown)}`, {}, thrown);
}

/** What an importer gave is not of its form. */
const malformed = (id: string, what: string, expected: string, got: unknown): KilimError =>
  new KilimError('INVALID_VALUE', `${what} of the importer \`${id}\` is malformed`, { expected, got: describe(got) });

/** An attribute of one of the kinds that the runtime tells apart. */
function attribute(id: string, name: string, value: Exclude<DraftAttribute, DraftBody>): WireAttribute {
  const wrong = () =>
    malformed(id, `the attribute \`${name}\``, 'a number, a text, bytes, a tensor, a body, or a list of numbers or texts', value);
  const isWhole = (item: unknown): item is number | bigint => typeof item === 'bigint' || Number.isSafeInteger(item);
  if (typeof value === 'boolean') return BigInt(value);
  if (typeof value === 'number' || typeof value === 'bigint') return isWhole(value) ? BigInt(value) : value;
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value;
    if (list.every(isWhole)) return BigInt64Array.from(list, BigInt);
    if (list.every((item) => typeof item === 'number')) return Float64Array.from(list);
    if (list.every((item) => typeof item === 'string')) return list;
    throw wrong();
  }
  if (typeof value !== 'object' || value === null) throw wrong();
  const tensor = value as TensorLike;
  check(tensor);
  return toWire('', tensor);
}

/** A list of what `each` makes of the items of a list. */
function listed<T, U>(id: string, what: string, value: readonly T[], each: (item: T) => U): U[] {
  if (!Array.isArray(value)) throw malformed(id, what, 'an array', value);
  return Array.from(value as readonly T[], (item) => {
    if (item === undefined) throw malformed(id, what, 'an array without gaps', item);
    return each(item);
  });
}

function text(id: string, what: string, value: unknown): string {
  if (typeof value !== 'string') throw malformed(id, what, 'a text', value);
  return value;
}

/** Bodies in each other at most: those of an object that is in itself have no end. */
const MOST_LEVELS = 64;

const isBody = (value: DraftAttribute): value is DraftBody =>
  typeof value === 'object' && value !== null && Array.isArray((value as Partial<DraftBody>).nodes);

/** The model in the form of the runtime; `given` are the files whose bytes the importer has had. */
function toWireDraft(id: string, draft: ModelDraft, given: Map<ArrayBufferLike, number>): WireDraft {
  if (typeof draft !== 'object' || draft === null) throw malformed(id, 'what `load` gives', 'a model or bytes', draft);
  const constant = ([name, tensor]: [string, TensorLike]): WireTensor | WirePart => {
    if (typeof tensor !== 'object' || tensor === null) throw malformed(id, `the constant \`${name}\``, 'a tensor', tensor);
    check(tensor);
    const wire = toWire(name, tensor);
    const file = wire.bytes && given.get(wire.bytes.buffer);
    if (!wire.bytes || file === undefined) return wire;
    return { name, type: wire.type, dims: wire.dims, file, offset: wire.bytes.byteOffset, length: wire.bytes.byteLength };
  };
  const dim = (given: unknown): number | string | null => {
    if (given === null || typeof given === 'string' || (Number.isSafeInteger(given) && Number(given) >= 0))
      return given as number | string | null;
    throw malformed(id, 'a dimension of an input', 'a size, a name or null', given);
  };
  const input = (given: DraftInput | { name: string }, level: number): WireGraph['inputs'][number] => {
    const name = text(id, 'the name of an input', given.name);
    const { type, dims }: Partial<DraftInput> = given;
    if (level > 0 && type === undefined) return { name };
    return {
      name,
      type: text(id, 'the type of an input', type) as DType,
      dims: listed(id, '`dims`', dims as DraftInput['dims'], dim),
    };
  };
  const node = (node: DraftNode, level: number): WireNode => {
    const given = Object.entries(node.attributes ?? {});
    const values = given.filter((entry): entry is [string, Exclude<DraftAttribute, DraftBody>] => !isBody(entry[1]));
    const bodies = given.filter((entry): entry is [string, DraftBody] => isBody(entry[1]));
    return {
      name: text(id, 'the name of a node', node.name ?? ''),
      domain: text(id, 'the domain of a node', node.domain ?? ''),
      op: text(id, 'the operator of a node', node.op),
      attributes: Object.fromEntries(values.map(([name, value]) => [name, attribute(id, name, value)])),
      bodies: bodies.map(([attribute, body]) => ({ attribute, ...graph(body, level + 1) })),
      inputs: listed(id, 'the inputs of a node', node.inputs, (name) => text(id, 'an input of a node', name ?? '')),
      outputs: listed(id, 'the outputs of a node', node.outputs, (name) => text(id, 'an output of a node', name ?? '')),
    };
  };
  const graph = (draft: DraftBody, level: number): WireGraph => {
    if (level > MOST_LEVELS)
      throw new KilimError('LIMIT', `the importer \`${id}\`: the model has too many graphs in each other`, {
        expected: `at most ${MOST_LEVELS}`,
      });
    return {
      inputs: listed(id, '`inputs`', level > 0 ? (draft.inputs ?? []) : (draft.inputs as DraftInput[]), (given) => input(given, level)),
      constants: Object.entries(draft.constants ?? {}).map(constant),
      nodes: listed(id, '`nodes`', draft.nodes, (given) => node(given, level)),
      outputs: listed(id, '`outputs`', draft.outputs, (name) => text(id, 'an output', name)),
    };
  };
  const metadata = ({ entries = {}, ...fields }: Partial<ModelMetadata>): string[] => [
    ...FIELDS.map((field) => text(id, `the metadata \`${field}\``, fields[field] ?? '')),
    ...Object.entries(entries).flatMap(([key, value]) => [key, text(id, `the entry \`${key}\` of the metadata`, value)]),
  ];
  return { id, ...graph(draft, 0), metadata: metadata(draft.metadata ?? {}) };
}

/** The importers of this thread by the addresses of their modules. */
const imported = new Map<string, Promise<PageImporter>>();

async function importerOf(id: string, url: string): Promise<PageImporter> {
  let module: { default?: unknown };
  try {
    module = await import(/* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ url);
  } catch (error) {
    throw new KilimError('IO', `cannot import the importer \`${id}\` of ${url}: ${reasonOf(error)}`, {}, error);
  }
  const importer = Object(module.default) as PageImporter;
  if (typeof importer.probe === 'function' && typeof importer.load === 'function') return importer;
  throw malformed(id, 'the default export', 'an object with `probe` and `load`', module.default);
}

/** What the first importer that knows a file makes of it: a model, or the bytes of one. Nothing where none knows it. */
export async function importModel(modules: Record<string, string>, files: FilesToImport): Promise<WireDraft | Uint8Array | undefined> {
  for (const [id, url] of Object.entries(modules)) {
    const key = `${id} ${url}`;
    const coming = imported.get(key) ?? importerOf(id, url);
    imported.set(key, coming);
    // The next session tries again.
    coming.catch(() => imported.delete(key));
    const importer = await coming;
    const given = new Map<ArrayBufferLike, number>();
    const copy = (bytes: Uint8Array, file: number): Uint8Array => {
      given.set(bytes.buffer, file);
      return bytes;
    };
    try {
      if (!importer.probe(files.head, files.name)) continue;
      const read = (path: string): Uint8Array => {
        const at = files.beside.findIndex(([name]) => name === path);
        const found = files.beside[at];
        if (!found)
          throw new KilimError('IO', `the file \`${path}\` was not given`, { got: files.beside.map(([name]) => name).join(', ') });
        return copy(found[1](), at + 1);
      };
      const made = await importer.load({
        name: files.name,
        bytes: copy(files.bytes(), 0),
        beside: files.beside.map(([name]) => name),
        read,
      });
      return made instanceof Uint8Array ? made : toWireDraft(id, made, given);
    } catch (error) {
      throw failed(id, error);
    }
  }
  return undefined;
}
