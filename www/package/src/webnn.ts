// The backend `webnn`: the browser's Web Neural Network API, behind the same interface as a page's own backends.
import type { AskedNode, BackendPart, PageBackend, PartTensor, PreparedPart } from './backend/types.js';
import type { Attributes } from './operators.js';
import { toNumbers } from './tensor.js';
import type { TensorLike } from './tensor.js';
import { requireMl } from './webnn/api.js';
import type { Builder, Context, Descriptor, DeviceTensor, Graph, Operand } from './webnn/api.js';
import { ROWS } from './webnn/lower.js';
import { Node, refuse } from './webnn/node.js';
import type { Known } from './webnn/node.js';

let context: Context;
let newBuilder: () => Builder;

const describe = (dims: readonly number[]): Descriptor => ({ dataType: 'float32', shape: [...dims] });

interface Place {
  type: string;
  dims: readonly number[];
  value?: TensorLike;
  known?: boolean;
}

/** A tensor as nodes are written by it. What is known, but came without its elements, has none here: no node asks for so many. */
const known = ({ dims, value }: Place): Known => ({ dims, ...(value && { numbers: () => [...toNumbers(value)] }) });

/** The operands of a node's outputs. `operand` gives those of its inputs. */
function lower(
  builder: Builder,
  { op, attributes }: { op: string; attributes: Attributes },
  inputs: (Place | null)[],
  outputs: Place[],
  operand: (input: number) => Operand,
): Operand[] {
  const row = Object.hasOwn(ROWS, op) ? ROWS[op] : undefined;
  if (!row) return refuse(`no operator ${op}`);
  const { values = [] } = row;
  const data = inputs.map((input, i) => (values.includes(i) ? null : input));
  for (const place of [...data, ...outputs]) {
    if (!place) continue;
    if (place.type !== 'float32') refuse(`only float32, not ${place.type}`);
    if (place.dims.includes(0)) refuse('no tensors without elements');
  }
  const operands = data.map((input, i) => input && operand(i));
  const node = new Node(
    op,
    attributes,
    inputs.map((input) => input && known(input)),
    outputs.map(known),
    builder,
    operands,
  );
  const made = [row.lower(node)].flat();
  made.forEach(({ shape }, i) => {
    const { dims } = outputs[i] as Place;
    if (shape.join() !== dims.join()) refuse(`WebNN gives [${shape}] in place of [${dims}]`);
  });
  return made;
}

/** Writes the node alone: WebNN's operators say by what they throw what they do not take. */
function supports(asked: AskedNode): boolean | string {
  const builder = newBuilder();
  try {
    lower(builder, asked, asked.inputs, asked.outputs, (i) => builder.input(`${i}`, describe((asked.inputs[i] as Place).dims)));
    return true;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A graph, and the tensors that it reads and writes. */
class Prepared implements PreparedPart {
  readonly #graph: Graph;
  readonly #inputs: Record<string, DeviceTensor>;
  readonly #outputs: Record<string, DeviceTensor>;
  readonly #given: PartTensor[];

  constructor(graph: Graph, inputs: Record<string, DeviceTensor>, outputs: Record<string, DeviceTensor>, given: PartTensor[]) {
    this.#graph = graph;
    this.#inputs = inputs;
    this.#outputs = outputs;
    this.#given = given;
  }

  async run(inputs: Parameters<PreparedPart['run']>[0]): Promise<TensorLike[]> {
    Object.values(this.#inputs).forEach((tensor, i) => {
      // Nothing stays with this backend: it is given arrays.
      context.writeTensor(tensor, (inputs[i] as TensorLike).data as Float32Array<ArrayBuffer>);
    });
    context.dispatch(this.#graph, this.#inputs, this.#outputs);
    const read = await Promise.all(Object.values(this.#outputs).map((tensor) => context.readTensor(tensor)));
    return read.map((bytes, i) => {
      const { dims } = this.#given[i] as PartTensor;
      return { type: 'float32', dims, data: new Float32Array(bytes) };
    });
  }

  release(): void {
    for (const tensor of [...Object.values(this.#inputs), ...Object.values(this.#outputs)]) tensor.destroy();
    this.#graph.destroy?.();
  }
}

async function prepare({ tensors, nodes, inputs, outputs }: BackendPart): Promise<Prepared> {
  const builder = newBuilder();
  const operands = new Map<number, Operand>();
  const tensor = (number: number) => tensors[number] as PartTensor;
  inputs.forEach((number, i) => void operands.set(number, builder.input(`i${i}`, describe(tensor(number).dims))));
  /** The operand of a tensor; constants become one when a node reads them. */
  const operandOf = (number: number): Operand => {
    const kept = operands.get(number);
    if (kept) return kept;
    const { dims, alias, value, name } = tensor(number);
    const data = value?.data as Float32Array<ArrayBuffer> | undefined;
    const view = () => (alias === undefined ? refuse(`the tensor \`${name}\` is not there`) : reshaped(builder, operandOf(alias), dims));
    const operand = data ? builder.constant(describe(dims), data) : view();
    operands.set(number, operand);
    return operand;
  };
  for (const node of nodes) {
    const read = node.inputs.map((number) => (number === null ? null : whole(tensors, number)));
    const made = lower(builder, node, read, node.outputs.map(tensor), (i) => operandOf(node.inputs[i] as number));
    node.outputs.forEach((number, i) => void operands.set(number, made[i] as Operand));
  }
  const graph = await builder.build(Object.fromEntries(outputs.map((number, i) => [`o${i}`, operandOf(number)])));
  const places = async (numbers: number[], prefix: string, use: object) => {
    const made = numbers.map(async (number, i) => {
      const place = await context.createTensor({ ...describe(tensor(number).dims), ...use });
      return [`${prefix}${i}`, place] as const;
    });
    return Object.fromEntries(await Promise.all(made));
  };
  const [taken, given] = [await places(inputs, 'i', { writable: true }), await places(outputs, 'o', { readable: true })];
  return new Prepared(graph, taken, given, outputs.map(tensor));
}

const reshaped = (builder: Builder, operand: Operand, dims: readonly number[]): Operand =>
  (builder as unknown as { reshape(x: Operand, dims: number[]): Operand }).reshape(operand, [...dims]);

/** A tensor with the elements that it has as an alias of another one. */
function whole(tensors: readonly PartTensor[], number: number): PartTensor {
  const tensor = tensors[number] as PartTensor;
  const of = tensor.alias === undefined ? undefined : tensors[tensor.alias];
  return of?.value ? { ...tensor, value: of.value } : tensor;
}

const webnn: PageBackend = {
  device: 'WebNN',
  types: { float32: 'fast' },
  async open() {
    const { ml, Builder } = requireMl();
    context = await ml.createContext();
    newBuilder = () => new Builder(context);
    const { preferredInputLayout, maxTensorByteLength } = context.opSupportLimits();
    this.layout = preferredInputLayout === 'nhwc' ? 'NHWC' : 'NCHW';
    if (maxTensorByteLength !== undefined) this.maxTensorBytes = maxTensorByteLength;
  },
  supports,
  prepare,
};

export default webnn;
