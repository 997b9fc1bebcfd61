// A page's backend in the form that the runtime takes.
import { attributesOf, attributesToWire, toWireOperator } from '../operators.js';
import type { WireAttributes, WireOperator } from '../operators.js';
import { Stage, malformed } from '../stage.js';
import type { Exported } from '../stage.js';
import { fromWire } from '../tensor.js';
import type { Tensor, WireTensor } from '../tensor.js';
import type {
  AskedNode,
  AskedTensor,
  BackendOption,
  BackendSettings,
  Change,
  ConnectedNodes,
  ConnectedTensor,
  Grade,
  PageBackend,
  PartNode,
  PartTensor,
  Speed,
  Task,
} from './types.js';

/** A tensor of a question, with its bytes. */
type WireAsked = Omit<AskedTensor, 'value'> & { value?: WireTensor };

/** A tensor of a stage: `root` is the number of the one that holds its bytes. */
interface WireSlot extends Omit<PartTensor, 'value' | 'alias'> {
  root: number;
  /** Names a constant of the session. */
  key?: number;
  /** The elements of what is known, but for a constant that came before. */
  value?: WireTensor;
}

/** A node whose tensors have numbers, with the bytes of tensors among its attributes. */
type WireNode = Omit<PartNode, 'attributes' | 'algorithm'> & { attributes: WireAttributes };

/** A planned stage: its nodes in order, and where each of its parts ends. */
export interface WireStage {
  tensors: WireSlot[];
  nodes: WireNode[];
  ends: number[];
  /** Tensors that others read. */
  outputs: number[];
  /** The algorithm of each node, where the backend has a choice. */
  algorithms: (string | undefined)[];
  settings: BackendSettings;
}

type WireQuestion = Omit<AskedNode, 'inputs' | 'outputs' | 'attributes'> & {
  attributes: WireAttributes;
  inputs: (WireAsked | null)[];
  outputs: WireAsked[];
};

interface WireConnected {
  tensors: (WireAsked & Pick<ConnectedTensor, 'escapes'>)[];
  nodes: WireNode[];
}

/** What becomes of nodes: a node takes their place, or they are given back for a reason. */
interface WireChange {
  nodes: Uint32Array;
  reason?: string;
  with?: Omit<WireNode, 'inputs' | 'outputs'> & { inputs: Uint32Array; outputs: Uint32Array };
}

/** What stands for an input that is left out (`crates/web/src/backend/rewrite.rs`). */
const ABSENT = 0xffffffff;

/** An option whose initial value is a text. */
interface WireOption {
  name: string;
  kind: BackendOption['kind'];
  initial: string;
  meaning: string;
}

/** A backend as the runtime takes it (`crates/web/src/backend`). Tensors are numbers of a stage. */
export interface WireBackend {
  id: string;
  device: string;
  types: [string, Grade][];
  layouts: readonly string[];
  dynamicShapes: boolean;
  half?: string;
  quantized: string;
  timers: boolean;
  options: WireOption[];
  operators: WireOperator[];
  maxTensorBytes?: number;
  speed: Speed;
  supports(node: WireQuestion): unknown;
  nodeLayout?(node: WireQuestion): unknown;
  optimise?(connected: WireConnected): WireChange[];
  choice?(node: WireQuestion): unknown;
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
  run(stage: Stage, part: number, timed: boolean): void | Promise<void>;
  /** Seconds of each node of the stage in the latest timed run. */
  times?(stage: Stage): Promise<Float64Array>;
  /** Forgets the constants whose elements the stage does not need; gives their keys. */
  letGo(stage: Stage, constants: Map<number, Tensor>): Float64Array;
  /** A run of the stage has ended: its tensors are no longer needed. */
  end(stage: Stage): void;
  release(stage: Stage): void;
  schedule?(tasks: Task[]): Uint32Array;
  isLost?(): unknown;
  reopen?(): void | Promise<void>;
  saveCache?(): unknown;
  loadCache?(cache: Uint8Array): void;
}

/** Functions that a backend must have, and those that it may have. */
const NEEDED = ['supports', 'prepare'] as const;
const OPTIONAL = ['open', 'nodeLayout', 'optimise', 'choice', 'schedule', 'isLost', 'reopen', 'saveCache', 'loadCache'] as const;

const asked = <T extends WireAsked>(tensor: T): Omit<T, 'value'> & { value?: Tensor } => {
  const { value, ...others } = tensor;
  return value ? { ...others, value: fromWire(value) } : others;
};

const question = ({ attributes, inputs, outputs, ...node }: WireQuestion): AskedNode => ({
  ...node,
  attributes: attributesOf(attributes),
  inputs: inputs.map((tensor) => tensor && asked(tensor)),
  outputs: outputs.map(asked),
});

const connected = ({ tensors, nodes }: WireConnected): ConnectedNodes => ({
  tensors: tensors.map(asked),
  nodes: nodes.map((node) => ({ ...node, attributes: attributesOf(node.attributes) })),
});

/** A list of places that a backend gave. */
function places(id: string, what: string, given: unknown): Uint32Array {
  const is = (place: unknown) => Number.isInteger(place) && (place as number) >= 0 && (place as number) < ABSENT;
  if (Array.isArray(given) && given.every(is)) return Uint32Array.from(given as number[]);
  throw malformed(id, what, 'a list of whole numbers of at least 0', given);
}

/** The changes that `optimise` of a backend gave. */
function toWireChanges(id: string, given: unknown): WireChange[] {
  const what = 'what `optimise` gives';
  const wrong = (got: unknown) => malformed(id, what, 'a list of `{ giveBack, reason }` and `{ replace, with }`', got);
  if (given === undefined) return [];
  if (!Array.isArray(given)) throw wrong(given);
  return given.map((change: Partial<Extract<Change, { giveBack: number }> & Extract<Change, { replace: number[] }>> | null) => {
    if (typeof change !== 'object' || change === null) throw wrong(change);
    const { giveBack, reason = 'given back without a reason', replace, with: node } = change;
    if (giveBack !== undefined) return { nodes: places(id, what, [giveBack]), reason };
    if (!Array.isArray(node?.inputs)) throw wrong(change);
    const inputs = Uint32Array.from(node.inputs, (tensor) => (tensor === null ? ABSENT : (places(id, what, [tensor])[0] as number)));
    const outputs = places(id, what, node.outputs);
    return { nodes: places(id, what, replace), with: { ...node, inputs, outputs, attributes: attributesToWire(node.attributes ?? {}) } };
  });
}

const toWireOption = ([name, { kind, initial, meaning }]: [string, BackendOption]): WireOption => {
  const word = typeof initial === 'boolean' ? (initial ? 'on' : 'off') : String(initial);
  return { name, kind, initial: word, meaning };
};

/** @throws KilimError `INVALID_VALUE` where something that has to be a function is none. */
export function toWireBackend(id: string, backend: PageBackend): WireBackend {
  const { device, types, layout, maxTensorBytes, speed, half, quantized, timers, options, operators } = backend;
  const has = (name: (typeof NEEDED)[number] | (typeof OPTIONAL)[number]) => typeof backend[name] === 'function';
  for (const name of [...NEEDED, ...OPTIONAL.filter((name) => backend[name] !== undefined)])
    if (!has(name)) throw malformed(id, `\`${name}\``, 'a function', backend[name]);
  return {
    id,
    device: device ?? 'JavaScript',
    types: Object.entries(types ?? { float32: 'fast' }),
    layouts: [layout ?? 'NCHW'].flat(),
    dynamicShapes: backend.dynamicShapes ?? true,
    ...(half !== undefined && { half }),
    quantized: quantized ?? 'exact',
    timers: timers ?? false,
    options: Object.entries(options ?? {}).map(toWireOption),
    operators: (operators ?? []).map(toWireOperator),
    ...(maxTensorBytes !== undefined && { maxTensorBytes }),
    speed: speed ?? {},
    supports: (node) => backend.supports(question(node)),
    ...(has('nodeLayout') && { nodeLayout: (node) => backend.nodeLayout?.(question(node)) }),
    ...(has('optimise') && { optimise: (given) => toWireChanges(id, backend.optimise?.(connected(given))) }),
    ...(has('choice') && { choice: (node) => backend.choice?.(question(node)) }),
    prepare: (stage, constants) => Stage.prepare(id, backend, stage, constants),
    ready: (stage) => stage.ready(),
    write: (stage, tensor, wire) => stage.write(tensor, wire),
    read: (stage, tensor) => stage.export(tensor).read(),
    export: (stage, tensor) => stage.export(tensor),
    import: (stage, tensor, exported) => stage.import(tensor, exported),
    fetch: (exported) => exported.read(),
    copy: (stage, from, to) => stage.import(to, stage.export(from)),
    run: (stage, part, timed) => stage.run(part, timed),
    ...(timers && { times: (stage) => stage.times() }),
    letGo: (stage, constants) => stage.letGo(constants),
    end: (stage) => stage.end(),
    release: (stage) => stage.release(),
    ...(has('schedule') && { schedule: (tasks) => places(id, 'what `schedule` gives', backend.schedule?.(tasks)) }),
    ...(has('isLost') && { isLost: () => backend.isLost?.() }),
    ...(has('reopen') && { reopen: () => backend.reopen?.() }),
    ...(has('saveCache') && { saveCache: () => backend.saveCache?.() }),
    ...(has('loadCache') && { loadCache: (cache) => backend.loadCache?.(cache) }),
  };
}
