import { describe, reasonOf } from './describe.js';
import { KilimError, reading } from './errors.js';
import { fromWire, toWire } from './tensor.js';
import type { DType, Tensor, WireTensor } from './tensor.js';

/** The attributes of a node; a model's tensors are `Tensor`s, bytes that are no text a `Uint8Array`. */
export type Attributes = Record<string, number | string | Uint8Array | number[] | string[] | Tensor>;

/** What is known of an input before it is computed. */
export interface InputInfo {
  /** `null` where it is not known, as for the dimensions. */
  type: DType | null;
  dims: (number | null)[] | null;
}

/** The element type and dimensions of an output; `null` for what is not known before the inputs' dimensions are. */
export interface OutputInfo {
  type: DType | null;
  dims: (number | null)[] | null;
}

/** A tensor with known dimensions. */
export interface TensorInfo {
  type: DType;
  dims: number[];
}

/** A node as a WGSL compute shader. */
export interface OperatorShader {
  /** The entry point `main`, without the declarations of what it binds: those are written in front of it. */
  source: string;
  /** The tensors by the names of their arrays in the text: `['input', 0]` or `['output', 0]`. */
  bindings: Record<string, readonly ['input' | 'output', number]>;
  /** The fields of `params`: `['u32' | 'i32' | 'f32', value]`. */
  parameters?: Record<string, readonly ['u32' | 'i32' | 'f32', number]>;
  workgroups: readonly [number, number, number];
}

/** An operator that Kilim does not have. The page's module exports an array of these as its default. */
export interface Operator {
  domain: string;
  name: string;
  /** The types and dimensions of all outputs. */
  infer(attributes: Attributes, inputs: (InputInfo | null)[]): OutputInfo[];
  /** On the CPU: fills the outputs' data. It must be done when it returns. */
  run?(attributes: Attributes, inputs: (Tensor | null)[], outputs: Tensor[]): void;
  /** On the GPU. */
  shader?(attributes: Attributes, inputs: (TensorInfo | null)[], outputs: TensorInfo[]): OperatorShader;
  /** Two runs may give two results. */
  random?: boolean;
}

/** An operator as the runtime takes it: attributes and tensors with their bytes. */
export interface WireOperator {
  domain: string;
  name: string;
  random: boolean;
  infer: (attributes: WireAttributes, inputs: (InputInfo | null)[]) => OutputInfo[];
  run?: (attributes: WireAttributes, inputs: (WireTensor | null)[], outputs: WireTensor[]) => void;
  shader?: (attributes: WireAttributes, inputs: (TensorInfo | null)[], outputs: TensorInfo[]) => OperatorShader;
}

export type WireAttributes = Record<string, Attributes[string] | WireTensor>;

/** The attributes of a node, with the tensors among them as backends of the page see tensors. */
export function attributesOf(wire: WireAttributes): Attributes {
  const isTensor = (value: WireAttributes[string]): value is WireTensor => typeof value === 'object' && 'bytes' in value;
  return Object.fromEntries(
    Object.entries(wire).map(([name, value]) => [name, isTensor(value) ? fromWire(value) : (value as Attributes[string])]),
  );
}

/** The attributes of a node that a backend of the page makes, as the runtime takes them. */
export function attributesToWire(attributes: Attributes): WireAttributes {
  const isTensor = (value: Attributes[string]): value is Tensor => typeof value === 'object' && 'dims' in value;
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, isTensor(value) ? toWire(name, value) : value]));
}

/** @throws KilimError `INVALID_VALUE` for an operator that is none. */
export function toWireOperator(operator: Operator): WireOperator {
  const { domain, name, run, shader } = operator;
  if (typeof domain !== 'string' || typeof name !== 'string' || typeof operator.infer !== 'function') {
    throw new KilimError('INVALID_VALUE', 'an operator needs a `domain`, a `name` and a function `infer`', {
      got: `${describe(domain)}, ${describe(name)}`,
    });
  }
  const tensor = (wire: WireTensor | null) => wire && fromWire(wire);
  return {
    domain,
    name,
    random: operator.random ?? false,
    infer: (attributes, inputs) => operator.infer(attributesOf(attributes), inputs),
    ...(run && {
      run: (attributes, inputs, outputs) => {
        // A promise would be resolved after the outputs are read.
        const result: unknown = run.call(operator, attributesOf(attributes), inputs.map(tensor), outputs.map(fromWire));
        if (result instanceof Promise) throw new Error('`run` must not be asynchronous');
      },
    }),
    ...(shader && { shader: (attributes, inputs, outputs) => shader.call(operator, attributesOf(attributes), inputs, outputs) }),
  };
}

/** Imports the module at `url` in this thread. */
export async function importOperators(url: string): Promise<WireOperator[]> {
  let module: { default?: unknown };
  try {
    module = await import(/* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ url);
  } catch (error) {
    throw new KilimError('IO', `cannot import the operators of ${url}: ${reasonOf(error)}`, {}, error);
  }
  if (!Array.isArray(module.default)) {
    throw new KilimError('INVALID_VALUE', `the module ${url} does not export an array of operators as its default`);
  }
  const operators = module.default as Operator[];
  return reading(`an operator of ${url}`, () => operators.map(toWireOperator));
}
