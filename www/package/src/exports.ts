// A backend in a WebAssembly module: what it exports (docs/page-backends.md), in the form of a `PageBackend`.
import type { BackendPart, PageBackend, PartTensor, PreparedPart } from './backend/types.js';
import { bytesOf } from './bytes.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import type { OutputInfo } from './operators.js';
import { Tensor, toNumbers } from './tensor.js';
import type { TensorLike } from './tensor.js';

/** Addresses are places in `memory`; a text is UTF-8 that ends with a zero. */
interface Exports {
  memory: WebAssembly.Memory;
  kilim_alloc(bytes: number): number;
  kilim_free(address: number, bytes: number): void;
  /** The text of an object with the fields of `PageBackend` that are no functions. */
  kilim_describe?(): number;
  /** 0, or the text of the reason why not. */
  kilim_supports(node: number): number;
  /** A number of the part; 0 where `kilim_error` says why not. */
  kilim_prepare(part: number): number;
  /** Inputs and outputs are pairs of an address and a number of bytes. 0, or the text of what went wrong. */
  kilim_run(part: number, inputs: number, outputs: number): number;
  kilim_release?(part: number): void;
  kilim_error?(): number;
  /** Writes the seconds of each node of the part in its latest run, as `f64`. */
  kilim_times?(part: number, seconds: number): void;
  /** 0 where it is there. */
  kilim_is_lost?(): number;
  /** 0, or the text of why it does not come back. */
  kilim_reopen?(): number;
  /** The text of what was learnt; 0 where that is nothing. */
  kilim_save_cache?(): number;
  /** 0, or the text of why it is of no use. */
  kilim_load_cache?(cache: number): number;
  kilim_node_layout?: Answer;
  kilim_optimise?: Answer;
  kilim_choice?: Answer;
  kilim_schedule?: Answer;
  kilim_infer?: Answer;
}

/** Takes and gives texts of JSON; 0 where there is nothing to say. */
type Answer = (question: number) => number;

/** Functions of a `PageBackend` that are questions to a module, by what it exports. */
const ANSWERS = {
  nodeLayout: 'kilim_node_layout',
  optimise: 'kilim_optimise',
  choice: 'kilim_choice',
  schedule: 'kilim_schedule',
} as const;

const NEEDED = ['kilim_alloc', 'kilim_free', 'kilim_supports', 'kilim_prepare', 'kilim_run'] as const;

/** What is lent to a module during a call, or as long as a part lives. */
interface Lent {
  address: number;
  bytes: number;
}

class Module {
  constructor(
    readonly id: string,
    readonly own: Exports,
  ) {}

  /** The bytes at an address. The memory may have grown since it was last looked at. */
  bytes({ address, bytes }: Lent): Uint8Array {
    return new Uint8Array(this.own.memory.buffer, address, bytes);
  }

  lend(given: Uint8Array | number): Lent {
    const bytes = typeof given === 'number' ? given : given.length;
    // At least one, so that every address is one.
    const address = this.own.kilim_alloc(Math.max(bytes, 1)) >>> 0;
    if (address === 0) throw new KilimError('LIMIT', `the backend \`${this.id}\` has no memory for ${bytes} bytes`);
    const lent = { address, bytes };
    if (typeof given !== 'number') this.bytes(lent).set(given);
    return lent;
  }

  lendText(text: string): Lent {
    return this.lend(new TextEncoder().encode(`${text}\0`));
  }

  takeBack(...all: Lent[]): void {
    for (const { address, bytes } of all) this.own.kilim_free(address, Math.max(bytes, 1));
  }

  text(at: number): string {
    const all = new Uint8Array(this.own.memory.buffer, at >>> 0);
    const end = all.indexOf(0);
    return new TextDecoder().decode(all.slice(0, end < 0 ? all.length : end));
  }

  /** What an export that answers in JSON says to JSON. */
  ask(name: (typeof ANSWERS)[keyof typeof ANSWERS] | 'kilim_infer', question: object): unknown {
    const answer = this.withText(json(question), (text) => this.own[name]?.(text) ?? 0);
    return answer === 0 ? undefined : parsed(this.id, name, this.text(answer));
  }

  /** @throws Error where the answer of a call is a text, which says what went wrong. */
  done(said: number): void {
    if (said !== 0) throw new Error(this.text(said));
  }

  /** Calls with a text, which the module may read during the call. */
  withText(text: string, call: (address: number) => number): number {
    const lent = this.lendText(text);
    try {
      return call(lent.address);
    } finally {
      this.takeBack(lent);
    }
  }
}

/** JSON, with typed arrays as lists and numbers that JSON does not have as texts. */
function json(value: object): string {
  return JSON.stringify(value, (_name, item: unknown) => {
    if (item instanceof Tensor) return { type: item.type, dims: item.dims, numbers: Array.from(toNumbers(item as TensorLike)) };
    if (ArrayBuffer.isView(item)) return Array.from(item as unknown as ArrayLike<number | bigint>, Number);
    return typeof item === 'number' && !Number.isFinite(item) ? String(item) : item;
  });
}

function prepare(module: Module, part: BackendPart): PreparedPart {
  const { own, id } = module;
  const constants: Lent[] = [];
  const giveBack = () => module.takeBack(...constants.splice(0));
  let number = 0;
  try {
    const tensors = part.tensors.map(({ value, ...tensor }) => {
      if (!value) return tensor;
      const lent = module.lend(bytesOf(value.data as Uint8Array, 'INVALID_VALUE'));
      constants.push(lent);
      return { ...tensor, value: lent };
    });
    number = module.withText(json({ ...part, tensors }), (text) => own.kilim_prepare(text));
    if (number === 0) throw new KilimError('UNSUPPORTED', `the backend \`${id}\` did not prepare its part: ${errorOf(module)}`);
  } catch (error) {
    giveBack();
    throw error;
  }
  const { length } = part.nodes;
  return {
    // The module has them in its memory.
    packed: part.tensors.flatMap(({ value }, tensor) => (value ? [tensor] : [])),
    run: (inputs) => run(module, number, part, inputs as TensorLike[]),
    ...(own.kilim_times && { times: () => times(module, number, length) }),
    release() {
      own.kilim_release?.(number);
      giveBack();
    },
  };
}

function times(module: Module, part: number, count: number): number[] {
  const lent = module.lend(count * Float64Array.BYTES_PER_ELEMENT);
  try {
    module.own.kilim_times?.(part, lent.address);
    return Array.from(new Float64Array(module.bytes(lent).slice().buffer));
  } finally {
    module.takeBack(lent);
  }
}

const errorOf = (module: Module): string => (module.own.kilim_error ? module.text(module.own.kilim_error()) : 'it does not say why');

function run(module: Module, number: number, part: BackendPart, inputs: TensorLike[]): TensorLike[] {
  const lent: Lent[] = [];
  const lend = (given: Uint8Array | number): Lent => {
    const one = module.lend(given);
    lent.push(one);
    return one;
  };
  const table = (all: Lent[]): number => {
    const words = Uint32Array.from(all.flatMap(({ address, bytes }) => [address, bytes]));
    return lend(new Uint8Array(words.buffer)).address;
  };
  try {
    const given = inputs.map(({ data }) => lend(bytesOf(data as Uint8Array, 'INVALID_VALUE')));
    const outputs = part.outputs.map((tensor) => {
      const { type, dims } = part.tensors[tensor] as PartTensor;
      return new Tensor(type, dims);
    });
    const places = outputs.map(({ data }) => lend((data as Uint8Array).byteLength));
    module.done(module.own.kilim_run(number, table(given), table(places)));
    outputs.forEach(({ data }, i) => bytesOf(data as Uint8Array, 'INVALID_VALUE').set(module.bytes(places[i] as Lent)));
    return outputs;
  } finally {
    module.takeBack(...lent);
  }
}

/**
 * The backend of a module that imports nothing.
 * @throws KilimError `IO` where it cannot be had, `INVALID_VALUE` where exports are missing.
 */
export async function backendOfWasm(id: string, url: string): Promise<PageBackend> {
  let instance: WebAssembly.Instance;
  try {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    ({ instance } = await WebAssembly.instantiate(await answer.arrayBuffer(), {}));
  } catch (error) {
    throw new KilimError('IO', `cannot load the backend \`${id}\` of ${url}: ${reasonOf(error)}`, {}, error);
  }
  const own = instance.exports as unknown as Exports & Record<string, unknown>;
  const missing = NEEDED.filter((name) => typeof own[name] !== 'function');
  if (missing.length > 0 || !(own.memory instanceof WebAssembly.Memory))
    throw new KilimError('INVALID_VALUE', `the module of the backend \`${id}\` does not export what a backend has`, {
      expected: `memory, ${NEEDED.join(', ')}`,
      got: Object.keys(own).join(', '),
    });
  const module = new Module(id, own);
  const { operators = [], ...described } = own.kilim_describe ? description(id, module.text(own.kilim_describe())) : {};
  const answered = Object.entries(ANSWERS).filter(([, name]) => own[name]);
  const { kilim_is_lost, kilim_reopen, kilim_save_cache, kilim_load_cache } = own;
  return {
    device: 'WebAssembly',
    ...described,
    operators: operators.map(({ domain, name }) => ({
      domain,
      name,
      infer: (attributes, inputs) => (module.ask('kilim_infer', { domain, op: name, attributes, inputs }) ?? []) as OutputInfo[],
    })),
    ...Object.fromEntries(answered.map(([name, by]) => [name, (question: object) => module.ask(by, question)])),
    ...(kilim_is_lost && { isLost: () => kilim_is_lost() !== 0 }),
    ...(kilim_reopen && { reopen: () => module.done(kilim_reopen()) }),
    ...(kilim_save_cache && {
      saveCache: () => {
        const saved = kilim_save_cache();
        return saved === 0 ? undefined : new TextEncoder().encode(module.text(saved));
      },
    }),
    ...(kilim_load_cache && { loadCache: (cache) => module.done(module.withText(new TextDecoder().decode(cache), kilim_load_cache)) }),
    supports(node) {
      if ([...node.inputs, ...node.outputs].some((tensor) => tensor?.type === 'string')) return 'no strings';
      const reason = module.withText(json(node), (text) => own.kilim_supports(text));
      return reason === 0 || module.text(reason);
    },
    prepare: (part) => prepare(module, part),
  };
}

/** What `kilim_describe` gives, whose operators have no functions. */
function description(id: string, text: string): Omit<PageBackend, 'supports' | 'prepare'> {
  const described = parsed(id, 'kilim_describe', text);
  if (typeof described === 'object' && described !== null) return described;
  throw notJson(id, 'kilim_describe', 'it is no object');
}

function parsed(id: string, name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(id, name, reasonOf(error));
  }
}

const notJson = (id: string, name: string, reason: string): KilimError =>
  new KilimError('INVALID_VALUE', `what \`${name}\` of the backend \`${id}\` gives is no JSON: ${reason}`);
