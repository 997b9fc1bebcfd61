import type { Attributes } from '../operators.js';
import type { Builder, Operand } from './api.js';

/** What is known of a tensor. */
export interface Known {
  dims: readonly number[];
  /** The elements as numbers, where they are known. */
  numbers?: () => number[];
}

/** Why a node is not run. */
export class Refusal extends Error {}

export const refuse = (reason: string): never => {
  throw new Refusal(reason);
};

/** A node while it is written in WebNN's operators. */
export class Node {
  constructor(
    readonly op: string,
    readonly attributes: Attributes,
    readonly inputs: (Known | null)[],
    readonly outputs: Known[],
    readonly builder: Builder,
    readonly operands: (Operand | null)[],
  ) {}

  /** Calls an operator of WebNN, which refuses what it does not take by throwing. */
  call<T = Operand>(name: string, ...values: unknown[]): T {
    const method = (this.builder as unknown as Record<string, unknown>)[name];
    if (typeof method !== 'function') return refuse(`this browser's WebNN has no \`${name}\``);
    return method.apply(this.builder, values) as T;
  }

  has(input: number): boolean {
    return (this.inputs[input] ?? null) !== null;
  }

  operand(input: number): Operand {
    return this.operands[input] ?? refuse(`the input ${input} is left out`);
  }

  optional(input: number): Operand | undefined {
    return this.operands[input] ?? undefined;
  }

  dims(input: number): readonly number[] {
    return this.inputs[input]?.dims ?? refuse(`the input ${input} is left out`);
  }

  /** The dimensions of the first output. */
  get outputDims(): readonly number[] {
    return (this.outputs[0] as Known).dims;
  }

  /** The elements of an input that has to be known; nothing where it is left out. */
  values(input: number): number[] | undefined {
    const given = this.inputs[input];
    if (!given) return undefined;
    return given.numbers ? given.numbers() : refuse(`the input ${input} is not known before the run`);
  }

  number(name: string, otherwise?: number): number {
    const value = this.attributes[name] ?? otherwise;
    return typeof value === 'number' ? value : refuse(`no attribute ${name}`);
  }

  text(name: string): string | undefined {
    const value = this.attributes[name];
    return typeof value === 'string' ? value : undefined;
  }

  numbers(name: string): number[] {
    const value = this.attributes[name];
    return Array.isArray(value) ? value.map(Number) : [];
  }

  flag(name: string): boolean {
    return Boolean(this.attributes[name]);
  }

  /** An axis counted from the first one. */
  axis(name: string, rank: number): number {
    const axis = this.number(name);
    return axis < 0 ? axis + rank : axis;
  }

  /** A number as an operand. */
  scalar(value: number): Operand {
    return this.builder.constant({ dataType: 'float32', shape: [] }, Float32Array.of(value));
  }

  /** What the fused activation makes of a result. */
  activated(x: Operand): Operand {
    const kind = this.text('activation');
    return kind === undefined ? x : this.activation(kind, 'activation', x);
  }

  /** A function of one number, whose own numbers are attributes that begin with `prefix`. */
  activation(kind: string, prefix: string, x: Operand): Operand {
    const own = (name: string, otherwise?: number) => this.number(`${prefix}.${name}`, otherwise);
    switch (kind) {
      case 'Relu':
        return this.call('relu', x);
      case 'Clip':
        return this.call('clamp', x, { minValue: own('min'), maxValue: own('max') });
      case 'LeakyRelu':
        return this.call('leakyRelu', x, { alpha: own('alpha') });
      case 'Sigmoid':
        return this.call('sigmoid', x);
      case 'Tanh':
        return this.call('tanh', x);
      case 'HardSwish':
        return this.call('hardSwish', x);
      case 'HardSigmoid':
        return this.call('hardSigmoid', x, { alpha: own('alpha'), beta: own('beta') });
      case 'Elu':
        return this.call('elu', x, { alpha: own('alpha') });
      case 'Silu':
        return this.call('mul', x, this.call('sigmoid', x));
      case 'Swish':
        return this.call('mul', x, this.call('sigmoid', this.call('mul', x, this.scalar(own('alpha')))));
      case 'Gelu':
        return this.flag(`${prefix}.tanh`) ? refuse('no Gelu by tanh') : this.call('gelu', x);
      default:
        return refuse(`no function ${kind}`);
    }
  }
}
