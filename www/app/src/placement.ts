import type { NodeReport, Report } from 'kilim';
import { el, formatBytes, svg } from './dom.js';
import { layOut } from './layers.js';
import type { Block, Edge, Placed } from './layers.js';

const NODE = { width: 128, height: 28 };
const STEP = { x: 144, y: 56 };
const MARGIN = 24;
const LIMIT = 3000;

/** Backends, memory and crossings in numbers. */
export function summary(report: Report): HTMLElement {
  const count = (id: string) => report.nodes.filter(({ backend }) => backend === id).length;
  const fact = (label: string, value: string, title?: string) => el('div', { title }, el('dt', {}, label), el('dd', {}, value));
  const cards = report.backends.map((backend) =>
    el('article', { class: `backend ${backend.id}`, 'data-testid': `backend-${backend.id}` },
      el('h3', {}, el('span', { class: `tag ${backend.id}` }, backend.id), ` ${backend.device}`),
      el('dl', { class: 'facts' },
        fact('Nodes', String(count(backend.id))),
        fact('Launches a run', String(backend.launches)),
        fact('Weights', formatBytes(backend.constantBytes)),
        fact('Intermediates', formatBytes(backend.plannedBytes), 'What the plan takes, all kept plans together'),
        fact('Without sharing', formatBytes(backend.unsharedBytes), 'Had every intermediate its own buffer'),
        fact('At least', formatBytes(backend.lowerBoundBytes), 'The most that is alive at any one step'))));
  const crossing = report.crossings.reduce((sum, { bytes }) => sum + bytes, 0);
  const notes = [
    `${report.nodesLoaded} nodes in the file, ${report.nodes.length} after optimisation`,
    report.crossings.length ? `${report.crossings.length} values cross between backends, ${formatBytes(crossing)} a run` : 'nothing crosses between backends',
    report.unplannedStages ? `${report.unplannedStages} stages are planned only when data has come` : null,
    report.threads,
    ...report.skipped.map(({ backend, reason }) => `${backend} is not used: ${reason}`),
  ];
  return el('div', {}, el('div', { class: 'backends-list' }, ...cards), el('p', { class: 'note' }, notes.filter(Boolean).join(' · ')));
}

/** The graph as a picture: nodes coloured by backend, crossings marked, reasons on demand. */
export function placement(report: Report): HTMLElement {
  if (report.nodes.length > LIMIT) return el('p', { class: 'note' }, `${report.nodes.length} nodes are too many to draw.`);
  if (report.nodes.length === 0) return el('p', { class: 'note' }, 'The graph has no nodes.');
  const detail = el('div', { class: 'detail', 'aria-live': 'polite' }, el('p', { class: 'note' }, 'Point at a node, or step to it with Tab, to see where it runs and why.'));
  const crossings = new Map(report.crossings.map((crossing) => [crossing.value, crossing]));
  const used = [...new Set(report.nodes.map(({ backend }) => backend))];
  const legend = el('div', { class: 'legend' },
    ...used.map((id) => el('span', {}, el('i', { class: `swatch ${id}` }), id === 'plan' ? 'plan: computed while planning, and views' : id)),
    report.crossings.length > 0 && el('span', {}, el('i', { class: 'swatch crossing' }), 'crosses between backends'));
  const show = (node: NodeReport) => detail.replaceChildren(details(node));
  const blocks = layOut(report.nodes).map((block) => el('div', { class: 'block' },
    block.scope.length > 0 && el('h3', {}, `Inside ${block.scope.join(' / ')}`),
    el('div', { class: 'scroll graph', tabindex: 0, role: 'region', 'aria-label': 'Placement of the graph' }, drawBlock(block, crossings, show))));
  return el('div', { class: 'placement' }, legend, el('div', { class: 'placement-body' }, el('div', { class: 'blocks' }, ...blocks), detail));
}

function details(node: NodeReport): HTMLElement {
  const values = node.outputs.map(({ name, dtype, shape }) => el('li', {}, el('code', {}, name), ` ${dtype} [${shape.join(', ')}]`));
  const refusals = node.refusals.map(({ backend, reason }) => el('li', {}, el('span', { class: `tag ${backend}` }, backend), ` ${reason}`));
  return el('div', {},
    el('h3', {}, `${node.op} `, el('span', { class: `tag ${node.backend}` }, node.backend)),
    el('p', { class: 'name' }, node.name || 'without a name'),
    el('h4', {}, 'Writes'), el('ul', {}, ...values),
    refusals.length > 0 && el('h4', {}, 'Refused by'), refusals.length > 0 && el('ul', { 'data-testid': 'refusals' }, ...refusals));
}

function drawBlock(block: Block, crossings: Map<string, Report['crossings'][number]>, show: (node: NodeReport) => void): SVGSVGElement {
  const x = (place: Placed) => MARGIN + (place.x - block.left) * STEP.x;
  const y = (place: Placed) => MARGIN + place.row * STEP.y;
  const width = (block.right - block.left) * STEP.x + NODE.width + 2 * MARGIN;
  const height = (block.rows - 1) * STEP.y + NODE.height + 2 * MARGIN;

  const path = ({ from, to }: Edge) => {
    const [x1, y1, x2, y2] = [x(from) + NODE.width / 2, y(from) + NODE.height, x(to) + NODE.width / 2, y(to)];
    const straight = to.row - from.row === 1;
    // A value that skips rows bows out, so that it does not run behind the nodes between.
    const bow = straight ? 0 : (x2 >= x1 ? 1 : -1) * (NODE.width / 2 + 14);
    const pull = straight ? (y2 - y1) / 2 : Math.min(60, (y2 - y1) / 3);
    return straight
      ? `M${x1} ${y1}C${x1} ${y1 + pull} ${x2} ${y2 - pull} ${x2} ${y2}`
      : `M${x1} ${y1}C${x1} ${y1 + 20} ${x1 + bow} ${y1 + 10} ${x1 + bow} ${y1 + pull}L${x2 + bow} ${y2 - pull}C${x2 + bow} ${y2 - 10} ${x2} ${y2 - 20} ${x2} ${y2}`;
  };
  const edges = block.edges.map((edge) => {
    const crossing = edge.from.node.backend === edge.to.node.backend ? undefined : crossings.get(edge.value);
    const label = crossing ? `${edge.value}: ${crossing.from} to ${crossing.to}, ${formatBytes(crossing.bytes)}` : edge.value;
    return svg('path', { class: crossing ? 'edge crossing' : 'edge', d: path(edge), 'data-crossing': crossing ? true : undefined }, svg('title', {}, label));
  });
  const nodes = block.nodes.map((place) => {
    const { node } = place;
    const reveal = () => show(node);
    const label = `${node.op} ${node.name}, runs on ${node.backend}${node.refusals.map(({ backend, reason }) => `; ${backend} refuses: ${reason}`).join('')}`;
    return svg('g', { class: `node ${node.backend}`, transform: `translate(${x(place)} ${y(place)})`, tabindex: 0, role: 'img', 'aria-label': label, 'data-backend': node.backend, focus: reveal, mouseenter: reveal, click: reveal },
      svg('title', {}, label),
      svg('rect', { width: NODE.width, height: NODE.height, rx: 7 }),
      svg('text', { x: NODE.width / 2, y: NODE.height / 2 + 4.5, 'text-anchor': 'middle' }, shorten(node.op)),
      node.refusals.length > 0 && svg('circle', { class: 'refused', cx: NODE.width - 8, cy: 8, r: 3 }));
  });
  return svg('svg', { width, height, viewBox: `0 0 ${width} ${height}` }, ...edges, ...nodes);
}

function shorten(op: string): string {
  return op.length > 17 ? `${op.slice(0, 16)}…` : op;
}
