import type { Operand } from './api.js';
import { refuse } from './node.js';
import type { Node } from './node.js';

/** Sizes of the two spatial dimensions. */
const spatial = (dims: readonly number[], last: boolean): number[] => [...(last ? dims.slice(1, 3) : dims.slice(2))];

/** Rows and columns put around the data, as WebNN orders them: begin and end of the rows, then of the columns. */
function padding(node: Node, prefix: string, kernel: readonly number[], strides: number[], dilations: number[], last: boolean): number[] {
  const kind = node.text(`${prefix}padding`);
  const [top = 0, left = 0, bottom = 0, right = 0] = kind === 'Explicit' ? node.numbers(`${prefix}padding.value`) : [];
  if (kind === 'Explicit') return [top, bottom, left, right];
  if (kind === 'Valid') return [0, 0, 0, 0];
  return spatial(node.dims(0), last).flatMap((size, i) => {
    const stride = strides[i] as number;
    const reach = ((kernel[i] as number) - 1) * (dilations[i] as number) + 1;
    const all = Math.max(0, (Math.ceil(size / stride) - 1) * stride + reach - size);
    const less = Math.floor(all / 2);
    return kind === 'SameUpper' ? [less, all - less] : [all - less, less];
  });
}

function requireImage(node: Node): void {
  if (node.dims(0).length !== 4) refuse('only two spatial dimensions');
}

export function conv(node: Node): Operand {
  requireImage(node);
  const last = node.flag('channels_last');
  const [strides, dilations, groups] = [node.numbers('strides'), node.numbers('dilations'), node.number('groups')];
  const bias = node.optional(2);
  const made = node.call('conv2d', node.operand(0), node.operand(1), {
    padding: padding(node, '', node.dims(1).slice(2), strides, dilations, last),
    strides,
    dilations,
    groups,
    inputLayout: last ? 'nhwc' : 'nchw',
    filterLayout: 'oihw',
    ...(bias && { bias }),
  });
  const residual = node.optional(3);
  return node.activated(residual ? node.call('add', made, residual) : made);
}

export function convTranspose(node: Node): Operand {
  requireImage(node);
  const last = node.flag('channels_last');
  if (node.text('padding') !== 'Explicit' || 'output_shape' in node.attributes) refuse('only explicit padding');
  const [strides, dilations, groups] = [node.numbers('strides'), node.numbers('dilations'), node.number('groups')];
  const bias = node.optional(2);
  const made = node.call('convTranspose2d', node.operand(0), node.operand(1), {
    padding: padding(node, '', node.dims(1).slice(2), strides, dilations, last),
    strides,
    dilations,
    groups,
    outputSizes: spatial(node.outputDims, last),
    inputLayout: last ? 'nhwc' : 'nchw',
    filterLayout: 'iohw',
    ...(bias && { bias }),
  });
  return node.activated(made);
}

export function pool(node: Node): Operand {
  requireImage(node);
  const average = node.op === 'AveragePool';
  if (node.outputs.length > 1) refuse('no indices of maxima');
  const last = node.flag('channels_last');
  const [kernel, strides, dilations] = ['kernel', 'strides', 'dilations'].map((name) => node.numbers(`window.${name}`)) as [
    number[],
    number[],
    number[],
  ];
  const pads = padding(node, 'window.', kernel, strides, dilations, last);
  // WebNN divides by the elements of the data alone.
  if (average && node.flag('count_include_pad') && pads.some((pad) => pad > 0)) refuse('padding does not count in the divisor');
  return node.activated(
    node.call(average ? 'averagePool2d' : 'maxPool2d', node.operand(0), {
      windowDimensions: kernel,
      padding: pads,
      strides,
      dilations,
      layout: last ? 'nhwc' : 'nchw',
      ...(node.flag('window.ceil_mode') && { outputSizes: spatial(node.outputDims, last) }),
    }),
  );
}

export function gemm(node: Node): Operand {
  const c = node.optional(2);
  return node.activated(
    node.call('gemm', node.operand(0), node.operand(1), {
      alpha: node.number('alpha'),
      beta: node.number('beta'),
      aTranspose: node.flag('transpose_a'),
      bTranspose: node.flag('transpose_b'),
      ...(c && { c }),
    }),
  );
}

export function matmul(node: Node): Operand {
  const [a, b] = [node.dims(0).length, node.dims(1).length];
  if (a < 2 || b < 2) refuse('no vectors');
  const swapped = Array.from({ length: b }, (_, i) => i);
  swapped.splice(b - 2, 2, b - 1, b - 2);
  const right = node.flag('transpose_b') ? node.call('transpose', node.operand(1), { permutation: swapped }) : node.operand(1);
  let made = node.call('matmul', node.operand(0), right);
  if ('alpha' in node.attributes) made = node.call('mul', made, node.scalar(node.number('alpha')));
  const bias = node.optional(2);
  return node.activated(bias ? node.call('add', made, bias) : made);
}

export function softmax(node: Node): Operand {
  if (node.text('kind') !== 'Softmax') refuse(`no ${node.op}`);
  const beta = node.number('beta');
  const x = beta === 1 ? node.operand(0) : node.call('mul', node.operand(0), node.scalar(beta));
  return node.call('softmax', x, node.axis('axis', node.dims(0).length));
}

export function batchNormalization(node: Node): Operand {
  const axis = node.flag('channels_last') ? node.dims(0).length - 1 : 1;
  const [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map((i) => node.operand(i));
  return node.call('batchNormalization', x, mean, variance, { scale, bias, axis, epsilon: node.number('epsilon') });
}

export function instanceNormalization(node: Node): Operand {
  requireImage(node);
  const [x, scale, bias] = [0, 1, 2].map((i) => node.operand(i));
  return node.call('instanceNormalization', x, { scale, bias, epsilon: node.number('epsilon'), layout: 'nchw' });
}

export function layerNormalization(node: Node): Operand {
  if (node.outputs.length > 1) refuse('no mean and deviation');
  const rank = node.dims(0).length;
  const axis = node.axis('axis', rank);
  const axes = Array.from({ length: rank - axis }, (_, i) => axis + i);
  // WebNN wants scale and bias to have exactly the dimensions of these axes.
  const whole = [1, 2].every((i) => !node.has(i) || node.dims(i).length === axes.length);
  if (!whole) refuse('scale and bias do not have the dimensions of the axes');
  const [scale, bias] = [node.optional(1), node.optional(2)];
  return node.call('layerNormalization', node.operand(0), {
    ...(scale && { scale }),
    ...(bias && { bias }),
    axes,
    epsilon: node.number('epsilon'),
  });
}
