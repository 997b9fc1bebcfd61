// A backend in a WebAssembly module: what it exports (docs/page-backends.md), in the form of a `PageBackend`.
import type { BackendPart, PageBackend, PartTensor, PreparedPart } from './backend.js';
import { bytesOf } from './bytes.js';
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
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
}

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
  return {
    run: (inputs) => run(module, number, part, inputs as TensorLike[]),
    release() {
      own.kilim_release?.(number);
      giveBack();
    },
  };
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
    const said = module.own.kilim_run(number, table(given), table(places));
    if (said !== 0) throw new Error(module.text(said));
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
  const described = own.kilim_describe ? readDescription(module, module.text(own.kilim_describe())) : {};
  return {
    device: 'WebAssembly',
    ...described,
    supports(node) {
      if ([...node.inputs, ...node.outputs].some((tensor) => tensor?.type === 'string')) return 'no strings';
      const reason = module.withText(json(node), (text) => own.kilim_supports(text));
      return reason === 0 || module.text(reason);
    },
    prepare: (part) => prepare(module, part),
  };
}

function readDescription({ id }: Module, text: string): object {
  try {
    const described: unknown = JSON.parse(text);
    if (typeof described === 'object' && described !== null) return described;
    throw new Error('it is no object');
  } catch (error) {
    throw new KilimError('INVALID_VALUE', `what \`kilim_describe\` of the backend \`${id}\` gives is no JSON: ${reasonOf(error)}`);
  }
}
