// Backends of a page in the runtime's thread. A file of its own, which sessions with such backends import.
import { reasonOf } from './describe.js';
import { KilimError } from './errors.js';
import { backendOfWasm } from './exports.js';
import { attributesOf } from './operators.js';
import type { Attributes } from './operators.js';
import { Stage, malformed } from './stage.js';
import type { Exported } from './stage.js';
import { fromWire } from './tensor.js';
import type { DType, Tensor, TensorLike, WireTensor } from './tensor.js';

/** How well a backend handles an element type: it only moves it, computes with it, or is at its best with it. */
export type Grade = 'storage' | 'arithmetic' | 'fast';

/** What nodes are priced with. What is left out has a default: 1e10 a second, a microsecond for each start. */
export interface Speed {
  flopsPerSecond?: number;
  bytesPerSecond?: number;
  /** Seconds that starting one node costs. */
  kernelStart?: number;
  /** Seconds that one transfer between the host and the device costs, whatever its size. */
  transferStart?: number;
  transferBytesPerSecond?: number;
}

/** A tensor of a node that a backend is asked about. */
export interface AskedTensor {
  type: DType;
  dims: number[];
  /** Whether the elements are known: a constant, or computed of constants and dimensions. */
  known: boolean;
  /** The elements, where they are known and take at most 4096 bytes. */
  value?: Tensor;
}

/** A node with its concrete dimensions. Operators and their attributes are those of `docs/attributes.md`. */
export interface AskedNode {
  name: string;
  op: string;
  attributes: Attributes;
  /** `null` for one that is left out. */
  inputs: (AskedTensor | null)[];
  outputs: AskedTensor[];
}

/** A tensor of a part. */
export interface PartTensor {
  name: string;
  type: DType;
  dims: number[];
  /** The elements of a constant. For the same constant the same object comes again, when another part or other shapes are prepared. */
  value?: Tensor;
  /** The number of the tensor whose elements these are, under other dimensions: what views such as Reshape give. */
  alias?: number;
}

/** A node of a part; tensors are numbers of `BackendPart.tensors`. */
export interface PartNode {
  name: string;
  op: string;
  attributes: Attributes;
  inputs: (number | null)[];
  outputs: number[];
}

/** Nodes that run without interruption. */
export interface BackendPart {
  tensors: PartTensor[];
  /** In an order in which everything is there before it is needed. */
  nodes: PartNode[];
  /** What `run` is given. None of them is an alias. */
  inputs: number[];
  /** What `run` gives. None of them is an alias. */
  outputs: number[];
}

/** A tensor that stays where the backend has it, until the host or another backend wants its elements. */
export interface HeldTensor {
  read(): TensorLike | Promise<TensorLike>;
}

/** A part that is ready to run. */
export interface PreparedPart {
  /** Gives the part's outputs, in their order, in arrays that the backend does not write on later. Runs come one after another. */
  run(inputs: (TensorLike | HeldTensor)[]): (TensorLike | HeldTensor)[] | Promise<(TensorLike | HeldTensor)[]>;
  /** Gives back what the part holds. */
  release?(): void;
}

/** A backend in JavaScript. A module exports it as its default. */
export interface PageBackend {
  /** The device in words, for reports. */
  device?: string;
  /** `{ float32: 'fast' }` where it is left out. */
  types?: Partial<Record<DType, Grade>>;
  /** The layout of spatial tensors that the backend is fastest with; `NCHW` where it is left out. */
  layout?: 'NCHW' | 'NHWC';
  /** The bytes of the largest tensor that it takes. */
  maxTensorBytes?: number;
  speed?: Speed;
  /** Opens the device, once in each thread, before anything else is asked. What it throws is why the backend cannot be used. */
  open?(): void | Promise<void>;
  /** Whether it runs exactly this node: `true`, or what that costs; a text is the reason why it does not. */
  supports(node: AskedNode): boolean | string | { flops?: number; bytes?: number };
  /** Makes nodes that it supports ready to run. */
  prepare(part: BackendPart): PreparedPart | Promise<PreparedPart>;
}

type WireAsked = Omit<AskedTensor, 'value'> & { value?: WireTensor };

/** A tensor of a stage: `root` is the number of the one that holds its bytes. */
interface WireSlot extends Omit<PartTensor, 'value' | 'alias'> {
  root: number;
  /** Names a constant of the session. */
  key?: number;
  /** The elements of what is known, but for a constant that came before. */
  value?: WireTensor;
}

/** A planned stage: its nodes in order, and where each of its parts ends. */
export interface WireStage {
  tensors: WireSlot[];
  nodes: PartNode[];
  ends: number[];
  /** Tensors that others read. */
  outputs: number[];
}

/** A backend as the runtime takes it (`crates/web/src/backend`). Tensors are numbers of a stage. */
export interface WireBackend {
  id: string;
  device: string;
  types: [string, Grade][];
  layout: string;
  maxTensorBytes?: number;
  speed: Speed;
  supports(node: Omit<AskedNode, 'inputs' | 'outputs'> & { inputs: (WireAsked | null)[]; outputs: WireAsked[] }): unknown;
  prepare(stage: WireStage, constants: Map<number, Tensor>): Stage;
  /** Settles when all parts of the stage are prepared. */
  ready(stage: Stage): void | Promise<void>;
  write(stage: Stage, tensor: number, wire: WireTensor): void;
  read(stage: Stage, tensor: number): WireTensor | Promise<WireTensor>;
  /** What the backend has of a tensor, which `import` takes, also of another stage, and `fetch` brings to the host. */
  export(stage: Stage, tensor: number): Exported;
  import(stage: Stage, tensor: number, exported: Exported): void;
  fetch(exported: Exported): WireTensor | Promise<WireTensor>;
  copy(stage: Stage, from: number, to: number): void;
  run(stage: Stage, part: number): void | Promise<void>;
  /** A run of the stage has ended: its tensors are no longer needed. */
  end(stage: Stage): void;
  release(stage: Stage): void;
}

function toWireBackend(id: string, backend: PageBackend): WireBackend {
  const { device, types, layout, maxTensorBytes, speed } = backend;
  for (const name of ['supports', 'prepare'] as const)
    if (typeof backend[name] !== 'function') throw malformed(id, `\`${name}\``, 'a function', backend[name]);
  const asked = (tensor: WireAsked): AskedTensor => {
    const { value, ...others } = tensor;
    return value ? { ...others, value: fromWire(value) } : others;
  };
  return {
    id,
    device: device ?? 'JavaScript',
    types: Object.entries(types ?? { float32: 'fast' }),
    layout: layout ?? 'NCHW',
    ...(maxTensorBytes !== undefined && { maxTensorBytes }),
    speed: speed ?? {},
    supports: ({ attributes, inputs, outputs, ...node }) =>
      backend.supports({
        ...node,
        attributes: attributesOf(attributes),
        inputs: inputs.map((tensor) => tensor && asked(tensor)),
        outputs: outputs.map(asked),
      }),
    prepare: (stage, constants) => Stage.prepare(id, backend, stage, constants),
    ready: (stage) => stage.ready(),
    write: (stage, tensor, wire) => stage.write(tensor, wire),
    read: (stage, tensor) => stage.export(tensor).read(),
    export: (stage, tensor) => stage.export(tensor),
    import: (stage, tensor, exported) => stage.import(tensor, exported),
    fetch: (exported) => exported.read(),
    copy: (stage, from, to) => stage.import(to, stage.export(from)),
    run: (stage, part) => stage.run(part),
    end: (stage) => stage.end(),
    release: (stage) => stage.release(),
  };
}

/** The backends of this thread by the addresses of their modules. A device is opened once. */
const opened = new Map<string, Promise<WireBackend>>();

/** The default export of a module of JavaScript. */
async function backendOf(id: string, url: string): Promise<PageBackend> {
  let module: { default?: unknown };
  try {
    module = await import(/* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ url);
  } catch (error) {
    throw new KilimError('IO', `cannot import the backend \`${id}\` of ${url}: ${reasonOf(error)}`, {}, error);
  }
  const backend = module.default;
  if (typeof backend === 'object' && backend !== null) return backend as PageBackend;
  throw malformed(id, 'the default export', 'an object with `supports` and `prepare`', backend);
}

async function open(id: string, url: string): Promise<WireBackend> {
  const backend = await (/\.wasm$/.test(new URL(url).pathname) ? backendOfWasm(id, url) : backendOf(id, url));
  try {
    await backend.open?.();
  } catch (error) {
    throw new KilimError('DEVICE', `the backend \`${id}\` cannot be used: ${reasonOf(error)}`, {}, error);
  }
  // What it says of itself may be known only now.
  return toWireBackend(id, backend);
}

/** Imports and opens backends, given by their names with the addresses of their modules. */
export function importBackends(modules: Record<string, string>): Promise<WireBackend[]> {
  const found = Object.entries(modules).map(([id, url]) => {
    const key = `${id} ${url}`;
    const kept = opened.get(key) ?? open(id, url);
    opened.set(key, kept);
    // The next session tries again.
    kept.catch(() => opened.delete(key));
    return kept;
  });
  return Promise.all(found);
}
