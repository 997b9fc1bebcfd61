import type { Operand } from './api.js';
import { refuse } from './node.js';
import type { Known, Node } from './node.js';

export const reshape = (node: Node): Operand => node.call('reshape', node.operand(0), [...node.outputDims]);

export function transpose(node: Node): Operand {
  const permutation = node.numbers('perm');
  return node.call('transpose', node.operand(0), permutation.length > 0 ? { permutation } : {});
}

export function concat(node: Node): Operand {
  const all = node.inputs.map((_, i) => node.operand(i));
  return node.call('concat', all, node.axis('axis', node.outputDims.length));
}

export const expand = (node: Node): Operand => node.call('expand', node.operand(0), [...node.outputDims]);

export const tile = (node: Node): Operand => node.call('tile', node.operand(0), node.values(1));

export function split(node: Node): Operand[] {
  const axis = node.axis('axis', node.dims(0).length);
  const sizes = node.outputs.map(({ dims }: Known) => dims[axis]);
  return node.call<Operand[]>('split', node.operand(0), sizes, { axis });
}

export function slice(node: Node): Operand {
  const dims = node.dims(0);
  const starts = node.values(1) ?? [];
  const axes = node.values(3) ?? starts.map((_, i) => i);
  const steps = node.values(4) ?? [];
  if (steps.some((step) => step !== 1)) refuse('only steps of 1');
  const first = dims.map(() => 0);
  axes.forEach((given, i) => {
    const axis = given < 0 ? given + dims.length : given;
    const size = dims[axis] as number;
    const start = starts[i] as number;
    first[axis] = Math.min(Math.max(start < 0 ? start + size : start, 0), size);
  });
  return node.call('slice', node.operand(0), first, [...node.outputDims]);
}

const PADS: Record<string, string> = { Constant: 'constant', Reflect: 'reflection', Edge: 'edge' };

export function pad(node: Node): Operand {
  const kind = node.text('mode') ?? '';
  const mode = PADS[kind] ?? refuse(`no mode ${kind}`);
  const dims = node.dims(0);
  const pads = node.values(1) ?? [];
  const axes = node.values(3) ?? dims.map((_, i) => i);
  if (pads.some((n) => n < 0)) refuse('no cropping');
  const [begin, end] = [dims.map(() => 0), dims.map(() => 0)];
  axes.forEach((given, i) => {
    const axis = given < 0 ? given + dims.length : given;
    begin[axis] = pads[i] as number;
    end[axis] = pads[axes.length + i] as number;
  });
  const [value = 0] = node.values(2) ?? [];
  return node.call('pad', node.operand(0), begin, end, { mode, ...(mode === 'constant' && { value }) });
}

export function reduce(node: Node): Operand {
  const kind = node.text('kind') === 'Prod' ? 'Product' : node.text('kind');
  const rank = node.dims(0).length;
  const given = node.values(1) ?? [];
  if (given.length === 0 && node.flag('noop_with_empty_axes')) return node.call('identity', node.operand(0));
  const axes = given.length === 0 ? Array.from({ length: rank }, (_, i) => i) : given.map((axis) => (axis < 0 ? axis + rank : axis));
  return node.call(`reduce${kind}`, node.operand(0), { axes, keepDimensions: node.flag('keep_dims') });
}

/** Whole factors give the same with each of these. */
const NEAREST = ['HalfPixel RoundPreferFloor', 'HalfPixel RoundPreferCeil', 'Asymmetric Floor', 'TfHalfPixelForNearest Floor'];

export function resize(node: Node): Operand {
  const [from, to] = [node.dims(0), node.outputDims];
  const axes = from.flatMap((size, i) => (size === to[i] ? [] : [i]));
  const [mode, coordinates] = [node.text('mode'), node.text('coordinates')];
  if (node.flag('antialias') || node.text('policy') !== 'Stretch') refuse('no antialiasing and no policy');
  if (from.length !== 4) refuse('only four dimensions');
  const last = axes.length > 0 && Math.max(...axes) === 2;
  const both = last ? [1, 2] : [2, 3];
  if (axes.some((axis) => !both.includes(axis))) refuse('only two neighbouring dimensions');
  const factors = both.map((axis) => (to[axis] as number) / (from[axis] as number));
  const whole = factors.every((factor) => Number.isInteger(factor));
  if (mode === 'Nearest') {
    if (!whole || !NEAREST.includes(`${coordinates} ${node.text('mode.value')}`)) refuse('nearest neighbours only of whole factors');
  } else if (mode !== 'Linear' || coordinates !== 'HalfPixel' || !whole) refuse('only linear by half pixels and whole factors');
  return node.call('resample2d', node.operand(0), {
    mode: mode === 'Nearest' ? 'nearest-neighbor' : 'linear',
    sizes: both.map((axis) => to[axis]),
    axes: both,
  });
}
