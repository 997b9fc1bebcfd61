import type { NodeReport, Port, Report } from 'kilim';
import { count, el, formatTime } from '../dom.js';
import type { OnnxFile } from '../onnx/file.js';
import type { Box } from './boxes.js';
import type { Heat } from './times.js';
import { weight } from './weights.js';

/** What is known of the graph around a node. */
export interface Surroundings {
  report: Report;
  inputs: readonly Port[];
  heat: Heat | undefined;
  /** The model's file; `null` where it is none of ONNX. */
  file: OnnxFile | null;
}

const section = (title: string, items: Node[], testid?: string) =>
  items.length > 0 ? [el('h4', {}, title), el('ul', { 'data-testid': testid }, ...items)] : [];

const value = (name: string, type: string, dims: readonly (number | string | null)[]) =>
  el('li', {}, el('code', {}, name), ` ${type} [${dims.map((dim) => dim ?? '?').join(', ')}]`);

/** Everything that is known of a box. */
export function details(box: Box, around: Surroundings, unfold: () => void): HTMLElement {
  const [node] = box.nodes;
  if (box.fold === undefined && node) return ofNode(node, around);
  const ops = new Map<string, number>();
  for (const { op } of box.nodes) ops.set(op, (ops.get(op) ?? 0) + 1);
  return el(
    'div',
    {},
    el('h3', {}, box.label),
    el(
      'p',
      { class: 'name' },
      `${count(box.nodes.length, 'node')} that repeat${box.nodes.length === 1 ? 's' : ''} with others of their kind`,
    ),
    ...time(box, around.heat),
    ...section(
      'Operators',
      [...ops].map(([op, times]) => el('li', {}, times > 1 ? `${op} × ${times}` : op)),
    ),
    el('button', { type: 'button', 'data-testid': 'unfold', click: unfold }, 'Unfold'),
  );
}

function time(box: Pick<Box, 'nodes'>, heat: Heat | undefined): Node[] {
  if (!heat) return [];
  const seconds = heat.of(box);
  const share = heat.total > 0 ? `, ${((100 * seconds) / heat.total).toFixed(1)} % of the run` : '';
  return [el('p', { 'data-testid': 'node-time' }, seconds > 0 ? `${formatTime(seconds)}${share}` : 'no time that the clock saw')];
}

function ofNode(node: NodeReport, around: Surroundings): HTMLElement {
  const { report, inputs, file } = around;
  const written = new Map(report.nodes.flatMap(({ outputs }) => outputs.map((output) => [output.name, output])));
  const ports = new Map(inputs.map((port) => [port.name, port]));
  const reads = node.inputs.filter((name) => written.has(name) || ports.has(name));
  const weights = node.inputs.filter((name) => name !== '' && !written.has(name) && !ports.has(name));
  const attributes = file?.attributes.get(node.name) ?? [];
  return el(
    'div',
    {},
    el('h3', {}, `${node.op} `, el('span', { class: `tag ${node.backend}` }, node.backend)),
    el('p', { class: 'name' }, node.name || 'without a name'),
    ...time({ nodes: [node] }, around.heat),
    ...section(
      'Attributes in the file',
      attributes.map(([name, text]) => el('li', {}, el('code', {}, name), ` ${text}`)),
      'attributes',
    ),
    ...section(
      'Reads',
      reads.map((name) => {
        const from = written.get(name);
        const port = ports.get(name);
        return from ? value(name, from.dtype, from.shape) : value(name, port?.type ?? '?', port?.dims ?? []);
      }),
    ),
    ...section(
      'Weights',
      weights.map((name) => {
        const stored = file?.weights.get(name);
        return stored ? weight(stored) : el('li', {}, el('code', {}, name), file ? ' made by Kilim' : '');
      }),
      'weights',
    ),
    ...section(
      'Writes',
      node.outputs.map(({ name, dtype, shape }) => value(name, dtype, shape)),
    ),
    ...section(
      'Refused by',
      node.refusals.map(({ backend, reason }) => el('li', {}, el('span', { class: `tag ${backend}` }, backend), ` ${reason}`)),
      'refusals',
    ),
    node.moved && el('p', { class: 'note' }, moved(node.moved)),
    !file && el('p', { class: 'note' }, 'Attributes, and what weights hold, are shown of .onnx files.'),
  );
}

function moved({ from, nodes, seconds, insteadOf }: NonNullable<NodeReport['moved']>): string {
  return `${count(nodes, 'node')} moved here from ${from} together: ${formatTime(seconds)} in place of ${formatTime(insteadOf)}, as costs are known.`;
}
