// A stage of a page's backend: its parts as the backend sees them, and the values of its tensors during a run.
import { describe } from './describe.js';
import type { BackendPart, HeldTensor, PageBackend, PartTensor, PreparedPart } from './backend/types.js';
import type { WireStage } from './backend/wire.js';
import { KilimError } from './errors.js';
import { attributesOf } from './operators.js';
import { check, fromWire, toWire } from './tensor.js';
import type { DType, Tensor, TensorLike, WireTensor } from './tensor.js';

type Value = TensorLike | HeldTensor;
type Slot = WireStage['tensors'][number];

const isHeld = (value: unknown): value is HeldTensor => typeof (value as HeldTensor | null)?.read === 'function';

/** What a backend gave is not of its form. */
export function malformed(id: string, what: string, expected: string, got: unknown): KilimError {
  return new KilimError('INVALID_VALUE', `${what} of the backend \`${id}\` is malformed`, { expected, got: describe(got) });
}

/** The tensor that a backend gave, if it is what was planned. */
function checked(id: string, value: unknown, { name, type, dims }: { name: string; type: DType; dims: readonly number[] }): TensorLike {
  if (typeof value !== 'object' || value === null) throw malformed(id, 'what `run` gives', `a tensor for \`${name}\``, value);
  const tensor = value as TensorLike;
  check(tensor);
  const told = (of: { type: string; dims: readonly number[] }) => `${of.type}[${of.dims.join(', ')}]`;
  if (told(tensor) !== told({ type, dims }))
    throw new KilimError('INVALID_VALUE', `the backend \`${id}\` gave another tensor than was planned`, {
      input: name,
      expected: told({ type, dims }),
      got: told(tensor),
    });
  return tensor;
}

/** A value with what it is planned to be. */
export class Exported {
  constructor(
    readonly id: string,
    readonly value: Value,
    readonly slot: Slot,
  ) {}

  read(): WireTensor | Promise<WireTensor> {
    const wire = (tensor: unknown) => toWire('', checked(this.id, tensor, this.slot));
    if (!isHeld(this.value)) return wire(this.value);
    const read = this.value.read();
    return read instanceof Promise ? read.then(wire) : wire(read);
  }
}

/** A part as the backend is told of it, with the numbers of its tensors in the stage. */
interface Told {
  part: BackendPart;
  inputs: number[];
  outputs: number[];
  /** The part's numbers of the stage's tensors. */
  numbers: Map<number, number>;
}

interface Part extends Told {
  prepared: PreparedPart;
}

export class Stage {
  readonly #id: string;
  readonly #slots: Slot[];
  /** A part that the backend has promised comes in place of its promise. */
  readonly #parts: (Part | Promise<Part>)[];
  /** What is known, by the tensors that hold it. */
  readonly #known: Map<number, Tensor>;
  /** The tensors that others read, by what holds them. */
  readonly #read: ReadonlySet<number>;
  #values: Map<number, Value>;

  private constructor(id: string, { tensors, outputs }: WireStage, known: Map<number, Tensor>, parts: (Part | Promise<Part>)[]) {
    this.#id = id;
    this.#slots = tensors;
    this.#read = new Set(outputs.map((tensor) => this.#slot(tensor).root));
    this.#known = known;
    this.#parts = parts;
    this.#values = new Map<number, Value>(known);
  }

  /** Has the backend prepare each part. `constants` are those of the session so far, by their keys. */
  static prepare(id: string, backend: PageBackend, stage: WireStage, constants: Map<number, Tensor>): Stage {
    const known = new Map<number, Tensor>();
    stage.tensors.forEach(({ key, value }, i) => {
      const tensor = (value && fromWire(value)) ?? (key === undefined ? undefined : constants.get(key));
      if (!tensor) return;
      if (key !== undefined) constants.set(key, tensor);
      known.set(i, tensor);
    });
    const needed = backend.timers ? (['run', 'times'] as const) : (['run'] as const);
    const ready = (told: Told, prepared: PreparedPart): Part => {
      const missing = needed.find((name) => typeof prepared?.[name] !== 'function');
      if (missing === undefined) return { ...told, prepared };
      throw malformed(id, 'what `prepare` gives', `an object with a function \`${missing}\``, prepared);
    };
    const parts = stage.ends.map((end, i) => {
      const told = partOf(stage, [stage.ends[i - 1] ?? 0, end], known);
      const prepared = backend.prepare(told.part);
      return prepared instanceof Promise ? prepared.then((later) => ready(told, later)) : ready(told, prepared);
    });
    const made = new Stage(id, stage, known, parts);
    // Who waits for the part is told what went wrong.
    for (const [number, part] of parts.entries())
      if (part instanceof Promise) part.then((ready) => made.#parts.splice(number, 1, ready)).catch(() => undefined);
    return made;
  }

  /** Settles when all parts are prepared. */
  ready(): void | Promise<void> {
    if (this.#parts.some((part) => part instanceof Promise)) return Promise.all(this.#parts).then(() => undefined);
  }

  #slot(tensor: number): Slot {
    return this.#slots[tensor] as Slot;
  }

  #value(root: number): Value {
    const value = this.#values.get(root);
    if (value) return value;
    throw new KilimError('STATE', `the tensor \`${this.#slot(root).name}\` is read before it is made`);
  }

  write(tensor: number, wire: WireTensor): void {
    const { root } = this.#slot(tensor);
    this.#values.set(root, fromWire({ ...wire, dims: this.#slot(root).dims }));
  }

  export(tensor: number): Exported {
    const { root } = this.#slot(tensor);
    return new Exported(this.#id, this.#value(root), this.#slot(root));
  }

  /** @throws KilimError `SHAPE` where a tensor that stays with the backend has other dimensions. */
  import(tensor: number, { value, slot }: Exported): void {
    const { root } = this.#slot(tensor);
    const { dims, name } = this.#slot(root);
    if (isHeld(value) && slot.dims.join() !== dims.join())
      throw new KilimError('SHAPE', 'a tensor that stays with its backend cannot be reshaped', {
        input: name,
        expected: `[${dims}]`,
        got: `[${slot.dims}]`,
      });
    this.#values.set(root, isHeld(value) ? value : { ...value, dims });
  }

  run(number: number, timed: boolean): void | Promise<void> {
    const part = this.#parts[number] as Part | Promise<Part>;
    return part instanceof Promise ? part.then((ready) => this.#run(ready, timed)) : this.#run(part, timed);
  }

  #run({ inputs, outputs, prepared }: Part, timed: boolean): void | Promise<void> {
    const values = prepared.run(
      inputs.map((root) => this.#value(root)),
      timed,
    );
    const keep = (given: unknown) => this.#keep(outputs, given);
    return values instanceof Promise ? values.then(keep) : keep(values);
  }

  #keep(outputs: number[], given: unknown): void {
    if (!Array.isArray(given) || given.length !== outputs.length)
      throw new KilimError('INVALID_VALUE', `\`run\` of the backend \`${this.#id}\` did not give its outputs`, {
        expected: `an array of ${outputs.length} tensors`,
        got: describe(given),
      });
    outputs.forEach((root, i) => {
      const value: unknown = given[i];
      this.#values.set(root, isHeld(value) ? value : checked(this.#id, value, this.#slot(root)));
    });
  }

  /**
   * Seconds of each node of the stage in the latest timed run.
   * @throws KilimError `DEVICE` where they cannot be.
   */
  async times(): Promise<Float64Array> {
    const parts = await Promise.all(this.#parts);
    const times = await Promise.all(parts.map(async ({ part, prepared }) => this.#timesOf(part, await prepared.times?.())));
    return Float64Array.from(times.flat());
  }

  #timesOf({ nodes }: BackendPart, given: unknown): number[] {
    const { length } = nodes;
    const times: unknown[] = Array.isArray(given) ? given : [];
    if (times.length === length && times.every((time) => typeof time === 'number' && time >= 0 && time < Infinity))
      return times as number[];
    throw new KilimError('DEVICE', `\`times\` of the backend \`${this.#id}\` gives times that cannot be`, {
      expected: `seconds of ${length} nodes`,
      got: describe(given),
    });
  }

  /** Forgets the constants that every part which reads them has packed, in `constants`, too; gives their keys. */
  letGo(constants: Map<number, Tensor>): Float64Array {
    const ready = this.#parts.filter((part): part is Part => !(part instanceof Promise));
    if (ready.length < this.#parts.length) return new Float64Array();
    const gone = [...this.#known.keys()].flatMap((tensor) => {
      const { key } = this.#slot(tensor);
      const readers = ready.flatMap(({ numbers, ...part }) => {
        const number = numbers.get(tensor);
        return number === undefined ? [] : [{ ...part, number }];
      });
      const packed = readers.every(({ prepared, number }) => prepared.packed?.includes(number));
      if (key === undefined || readers.length === 0 || !packed || this.#read.has(tensor)) return [];
      for (const { part, number } of readers) delete part.tensors[number]?.value;
      this.#known.delete(tensor);
      this.#values.delete(tensor);
      constants.delete(key);
      return [key];
    });
    return Float64Array.from(gone);
  }

  end(): void {
    this.#values = new Map<number, Value>(this.#known);
  }

  release(): void {
    const release = ({ prepared }: Part) => prepared.release?.();
    for (const part of this.#parts) {
      if (part instanceof Promise) part.then(release).catch(() => undefined);
      else release(part);
    }
  }
}

/** The part of the nodes from one to before another. */
function partOf(
  { tensors, nodes, outputs: read, algorithms, settings }: WireStage,
  [from, to]: [number, number],
  known: Map<number, Tensor>,
): Told {
  const root = (tensor: number) => (tensors[tensor] as Slot).root;
  const given = (tensor: number | null) => (tensor === null ? [] : [root(tensor)]);
  const own = nodes.slice(from, to);
  const made = new Set(own.flatMap((node) => node.outputs.map(root)));
  const others = [...nodes.slice(0, from), ...nodes.slice(to)];
  const wanted = new Set([...others.flatMap((node) => node.inputs.flatMap(given)), ...read.map(root)]);
  const inputs = [...new Set(own.flatMap((node) => node.inputs.flatMap(given)))].filter(
    (tensor) => !made.has(tensor) && !known.has(tensor),
  );
  const outputs = [...made].filter((tensor) => wanted.has(tensor));

  const numbers = new Map<number, number>();
  const told: PartTensor[] = [];
  const number = (tensor: number): number => {
    const before = numbers.get(tensor);
    if (before !== undefined) return before;
    const { name, type, dims, root } = tensors[tensor] as Slot;
    const alias = root === tensor ? undefined : number(root);
    const value = known.get(tensor);
    told.push({ name, type, dims, ...(value && { value }), ...(alias !== undefined && { alias }) });
    numbers.set(tensor, told.length - 1);
    return told.length - 1;
  };
  const part = {
    inputs: inputs.map(number),
    outputs: outputs.map(number),
    nodes: own.map((node, i) => {
      const algorithm = algorithms[from + i];
      return {
        ...node,
        attributes: attributesOf(node.attributes),
        inputs: node.inputs.map((tensor) => (tensor === null ? null : number(tensor))),
        outputs: node.outputs.map(number),
        ...(algorithm !== undefined && { algorithm }),
      };
    }),
    settings,
  };
  return { part: { tensors: told, ...part }, inputs, outputs, numbers };
}
