// How each of Kilim's operators is written in WebNN's.
import type { Operand } from './api.js';
import {
  batchNormalization,
  conv,
  convTranspose,
  gemm,
  instanceNormalization,
  layerNormalization,
  matmul,
  pool,
  softmax,
} from './layers.js';
import { refuse } from './node.js';
import type { Node } from './node.js';
import { concat, expand, pad, reduce, reshape, resize, slice, split, tile, transpose } from './shapes.js';

/** Makes operands of a node's outputs; throws the reason where it cannot. */
type Lower = (node: Node) => Operand | Operand[];

interface Row {
  lower: Lower;
  /** Inputs that are read while the graph is made, and are no operands of it. */
  values?: readonly number[];
}

/** A function that has a name of its own in WebNN, and no attributes. */
const plain = (name: string): Row => ({ lower: (node) => node.call(name, node.operand(0)) });

/** A function of one number, with numbers of its own. */
const shaped: Row = { lower: (node) => node.activation(node.text('value') as string, 'value', node.operand(0)) };

const binary = (name: string): Row => ({ lower: (node) => node.activated(node.call(name, node.operand(0), node.operand(1))) });

function clip(node: Node): Operand {
  if (node.text('value') !== undefined) return node.activation('Clip', 'value', node.operand(0));
  const [minValue, maxValue] = [node.values(1)?.[0], node.values(2)?.[0]];
  return node.call('clamp', node.operand(0), { ...(minValue !== undefined && { minValue }), ...(maxValue !== undefined && { maxValue }) });
}

function prelu(node: Node): Operand {
  if (node.outputDims.join() !== node.dims(0).join()) refuse('the slopes have more elements than the data');
  return node.activated(node.call('prelu', node.operand(0), node.operand(1)));
}

/** Sorted by the operators' names (`docs/attributes.md`). */
export const ROWS: Readonly<Record<string, Row>> = {
  Abs: plain('abs'),
  Add: binary('add'),
  AveragePool: { lower: pool },
  BatchNormalization: { lower: batchNormalization },
  Ceil: plain('ceil'),
  Clip: { lower: clip, values: [1, 2] },
  Concat: { lower: concat },
  Conv: { lower: conv },
  ConvTranspose: { lower: convTranspose },
  Cos: plain('cos'),
  Div: binary('div'),
  Elu: shaped,
  Erf: plain('erf'),
  Exp: plain('exp'),
  Expand: { lower: expand, values: [1] },
  Flatten: { lower: reshape },
  Floor: plain('floor'),
  Gelu: shaped,
  Gemm: { lower: gemm },
  HardSigmoid: shaped,
  HardSwish: plain('hardSwish'),
  Identity: plain('identity'),
  InstanceNormalization: { lower: instanceNormalization },
  LayerNormalization: { lower: layerNormalization },
  LeakyRelu: shaped,
  Log: plain('log'),
  MatMul: { lower: matmul },
  Max: binary('max'),
  MaxPool: { lower: pool },
  Min: binary('min'),
  Mul: binary('mul'),
  Neg: plain('neg'),
  PRelu: { lower: prelu },
  Pad: { lower: pad, values: [1, 2, 3] },
  Pow: binary('pow'),
  Reciprocal: plain('reciprocal'),
  ReduceL1: { lower: reduce, values: [1] },
  ReduceL2: { lower: reduce, values: [1] },
  ReduceLogSum: { lower: reduce, values: [1] },
  ReduceLogSumExp: { lower: reduce, values: [1] },
  ReduceMax: { lower: reduce, values: [1] },
  ReduceMean: { lower: reduce, values: [1] },
  ReduceMin: { lower: reduce, values: [1] },
  ReduceProd: { lower: reduce, values: [1] },
  ReduceSum: { lower: reduce, values: [1] },
  ReduceSumSquare: { lower: reduce, values: [1] },
  Relu: plain('relu'),
  Reshape: { lower: reshape, values: [1] },
  Resize: { lower: resize, values: [1, 2, 3] },
  Sigmoid: plain('sigmoid'),
  Sign: plain('sign'),
  Sin: plain('sin'),
  Slice: { lower: slice, values: [1, 2, 3, 4] },
  Softmax: { lower: softmax },
  Softplus: plain('softplus'),
  Softsign: plain('softsign'),
  Split: { lower: split, values: [1] },
  Sqrt: plain('sqrt'),
  Squeeze: { lower: reshape, values: [1] },
  Sub: binary('sub'),
  Swish: shaped,
  Tan: plain('tan'),
  Tanh: plain('tanh'),
  Tile: { lower: tile, values: [1] },
  Transpose: { lower: transpose },
  Unsqueeze: { lower: reshape, values: [1] },
};
