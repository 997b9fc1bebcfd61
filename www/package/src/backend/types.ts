// What a backend of a page is, and what it is told.
import type { Attributes, Operator } from '../operators.js';
import type { DType, Tensor, TensorLike } from '../tensor.js';

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
  /** Empty where `mixedPrecision` asks. */
  name: string;
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
  /** The domain of an operator that the page or a backend brings; empty for those of Kilim. */
  domain: string;
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
  /** The domain of an operator that the page or a backend brings; empty for those of Kilim. */
  domain: string;
  op: string;
  attributes: Attributes;
  /** `null` for one that is left out. */
  inputs: (number | null)[];
  outputs: number[];
  /** The algorithm to compute it by, where `choice` has several for it. */
  algorithm?: string;
}

/** A layout of spatial tensors. */
export type Layout = 'NCHW' | 'NHWC';

/** What a backend computes in half precision: nothing, nodes that `mixedPrecision` chooses, or models of half precision, too. */
export type Half = 'off' | 'chosen' | 'kept';

/** The arithmetic of quantised tensors: the one that Kilim defines, or one of the backend's own, at most a step off in each operator. */
export type Quantized = 'exact' | 'native';

/** An option that a backend has for itself. Sessions set it by `configs`: `mine:limit=100`. */
export interface BackendOption {
  /** `on` or `off`, a whole number, a number, any text, or one of these words. */
  kind: 'switch' | 'integer' | 'number' | 'text' | readonly string[];
  /** The value where a session gives none. */
  initial: boolean | number | string;
  /** What the option does, in one sentence without a full stop. */
  meaning: string;
}

/** What a session wants of a backend. All parts of the session have the same object. */
export interface BackendSettings {
  /** The layout that the session wants, or else the backend's first. */
  layout: Layout;
  /** Whether inputs of other shapes may come. */
  dynamicShapes: boolean;
  half: Half;
  quantized: Quantized;
  /** Whether every run is timed. */
  timers: boolean;
  /** `limit` where memory is to be spared. */
  memory: 'normal' | 'limit';
  /** A value for each of the backend's `options`. */
  options: Record<string, boolean | number | string>;
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
  settings: BackendSettings;
}

/** A tensor between connected nodes. */
export interface ConnectedTensor extends AskedTensor {
  /** Whether something else reads it, so that it must still be written. */
  escapes: boolean;
}

/** Connected nodes that were placed on a backend; tensors are numbers of `tensors`. */
export interface ConnectedNodes {
  tensors: ConnectedTensor[];
  /** In an order in which every tensor is written before it is read. */
  nodes: PartNode[];
}

/** A node of one of a backend's own operators. */
export interface NewNode {
  name: string;
  domain: string;
  op: string;
  /** Whole numbers are integers. */
  attributes?: Attributes;
  inputs: (number | null)[];
  outputs: number[];
}

/** What a backend does to connected nodes: it gives one back for a reason, or puts one in the place of several. */
export type Change = { giveBack: number; reason: string } | { replace: number[]; with: NewNode };

/** Algorithms among which only a measurement finds the fastest. */
export interface Choice {
  /** What the answer depends on: nodes of one class get the same algorithm. */
  class: string;
  /** Two at least, 256 at most; the first is taken where nothing was measured. */
  algorithms: string[];
}

/** A task of a stage: a part of one backend, or tensors that go from one backend to another. */
export interface Task {
  /** The numbers of the backends that it needs. Tasks that share one keep their order. */
  backends: [number, number];
  /** Whether it is a part of the backend that is asked. */
  own: boolean;
}

/** A tensor that stays where the backend has it, until the host or another backend wants its elements. */
export interface HeldTensor {
  read(): TensorLike | Promise<TensorLike>;
}

/** A part that is ready to run. */
export interface PreparedPart {
  /**
   * Gives the part's outputs, in their order, in arrays that the backend does not write on later. Runs come one after another. `timed` says
   * whether `times` is asked afterwards.
   */
  run(inputs: (TensorLike | HeldTensor)[], timed: boolean): (TensorLike | HeldTensor)[] | Promise<(TensorLike | HeldTensor)[]>;
  /** Seconds of each of the part's nodes in the latest timed run, in their order. Parts of a backend with `timers` have it. */
  times?(): number[] | Promise<number[]>;
  /** Constants of the part, by their numbers, that the backend has in a form of its own: their elements may go. */
  packed?: number[];
  /** Gives back what the part holds. */
  release?(): void;
}

/** A backend in JavaScript. A module exports it as its default. */
export interface PageBackend {
  /** The device in words, for reports. */
  device?: string;
  /** `{ float32: 'fast' }` where it is left out. */
  types?: Partial<Record<DType, Grade>>;
  /** The layouts of spatial tensors that the backend takes, the one first that it is fastest with; `NCHW` where it is left out. */
  layout?: Layout | readonly Layout[];
  /** Whether parts can be prepared again for inputs of other shapes; `true` where it is left out. */
  dynamicShapes?: boolean;
  /** Where it is left out, `kept` with `float16: 'fast'` among the types, and else `off`. */
  half?: Half;
  /** `exact` where it is left out. */
  quantized?: Quantized;
  /** Whether the nodes of parts are timed: `PreparedPart.times`. */
  timers?: boolean;
  /** Options of its own, by their names. */
  options?: Record<string, BackendOption>;
  /** Operators of its own, which `optimise` puts in the place of others and models may have. */
  operators?: Operator[];
  /** The bytes of the largest tensor that it takes. */
  maxTensorBytes?: number;
  speed?: Speed;
  /** Opens the device, once in each thread, before anything else is asked. What it throws is why the backend cannot be used. */
  open?(): void | Promise<void>;
  /** Whether it runs exactly this node: `true`, or what that costs; a text is the reason why it does not. */
  supports(node: AskedNode): boolean | string | { flops?: number; bytes?: number };
  /** The layout that a node is fastest in, one of `layout`. The node is told as it is on `NCHW` data. */
  nodeLayout?(node: AskedNode): Layout | undefined;
  /** What is to become of connected nodes that were placed on the backend. It is asked about each new node as about any other. */
  optimise?(connected: ConnectedNodes): Change[] | undefined;
  /** The algorithms that it has for a node. Sessions with the option `tune` measure them, once for each class. */
  choice?(node: AskedNode): Choice | undefined;
  /** Makes nodes that it supports ready to run. */
  prepare(part: BackendPart): PreparedPart | Promise<PreparedPart>;
  /** The order in which the tasks of a stage are done, as numbers of the list: each once. A schedule that the user chose goes first. */
  schedule?(tasks: Task[]): number[];
  /** Whether the device was lost. Before the next run everything is prepared anew. */
  isLost?(): boolean;
  /** Opens a lost device again. */
  reopen?(): void | Promise<void>;
  /** What was learnt of the device and would have to be found out again in another page, for `session.saveCache`. */
  saveCache?(): Uint8Array | undefined;
  /** Takes what `saveCache` of the same backend and device gave. */
  loadCache?(cache: Uint8Array): void;
}
