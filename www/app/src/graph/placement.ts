import type { NodeReport, Report } from 'kilim';
import { el, formatBytes, svg } from '../dom.js';
import { layOut } from './layers.js';
import type { Block, Edge, Place } from './layers.js';

const NODE = { width: 128, height: 28 };
const STEP = { x: 144, y: 56 };
const MARGIN = 24;
const LIMIT = 3000;

/** The graph as a picture: nodes coloured by backend, crossings marked, reasons on demand. */
export function placement(report: Report): HTMLElement {
  if (report.nodes.length > LIMIT) return el('p', { class: 'note' }, `${report.nodes.length} nodes are too many to draw.`);
  if (report.nodes.length === 0) {
    const why = report.unplannedStages
      ? 'Nodes are placed when the first input has come, since its size decides.'
      : 'The graph has no nodes.';
    return el('p', { class: 'note' }, why);
  }
  const detail = el(
    'div',
    { class: 'detail', 'aria-live': 'polite' },
    el('p', { class: 'note' }, 'Point at a node, or step to it with Tab, to see where it runs and why.'),
  );
  const crossings = new Map(report.crossings.map((crossing) => [crossing.value, crossing]));
  const used = [...new Set(report.nodes.map(({ backend }) => backend))];
  const legend = el(
    'div',
    { class: 'legend' },
    ...used.map((id) =>
      el('span', {}, el('i', { class: `swatch ${id}` }), id === 'plan' ? 'plan: computed while planning, and views' : id),
    ),
    report.crossings.length > 0 && el('span', {}, el('i', { class: 'swatch crossing' }), 'crosses between backends'),
  );
  const show = (node: NodeReport) => detail.replaceChildren(details(node));
  const blocks = layOut(report.nodes).map((block) =>
    el(
      'div',
      { class: 'block' },
      block.scope.length > 0 && el('h3', {}, `Inside ${block.scope.join(' / ')}`),
      viewer(drawBlock(block, crossings, show)),
    ),
  );
  return el(
    'div',
    { class: 'placement' },
    legend,
    el('div', { class: 'placement-body' }, el('div', { class: 'blocks' }, ...blocks), detail),
  );
}

/** A drawing that scrolls and zooms; at first it is as large as fits and can still be read. */
function viewer(drawing: SVGSVGElement): HTMLElement {
  const { width, height } = drawing.viewBox.baseVal;
  const scroll = el('div', { class: 'scroll graph', tabindex: 0, role: 'region', 'aria-label': 'Placement of the graph' }, drawing);
  const zoom = el('input', { type: 'range', min: 0.15, max: 1.5, step: 'any', 'aria-label': 'Zoom' });
  const resize = () => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / (scroll.scrollWidth || 1);
    drawing.setAttribute('width', String(width * zoom.valueAsNumber));
    drawing.setAttribute('height', String(height * zoom.valueAsNumber));
    scroll.scrollLeft = middle * scroll.scrollWidth - scroll.clientWidth / 2;
  };
  zoom.addEventListener('input', resize);
  requestAnimationFrame(() => {
    zoom.value = String(Math.min(1, Math.max(0.55, scroll.clientWidth / width)));
    resize();
    const first = drawing.querySelector('.node')?.getBoundingClientRect();
    if (first) scroll.scrollLeft += first.left + first.width / 2 - scroll.getBoundingClientRect().left - scroll.clientWidth / 2;
  });
  return el('div', { class: 'viewer' }, scroll, el('label', { class: 'zoom' }, 'Zoom ', zoom));
}

function details(node: NodeReport): HTMLElement {
  const values = node.outputs.map(({ name, dtype, shape }) => el('li', {}, el('code', {}, name), ` ${dtype} [${shape.join(', ')}]`));
  const refusals = node.refusals.map(({ backend, reason }) => el('li', {}, el('span', { class: `tag ${backend}` }, backend), ` ${reason}`));
  return el(
    'div',
    {},
    el('h3', {}, `${node.op} `, el('span', { class: `tag ${node.backend}` }, node.backend)),
    el('p', { class: 'name' }, node.name || 'without a name'),
    el('h4', {}, 'Writes'),
    el('ul', {}, ...values),
    refusals.length > 0 && el('h4', {}, 'Refused by'),
    refusals.length > 0 && el('ul', { 'data-testid': 'refusals' }, ...refusals),
  );
}

function drawBlock(block: Block, crossings: Map<string, Report['crossings'][number]>, show: (node: NodeReport) => void): SVGSVGElement {
  const x = ({ x }: Place) => MARGIN + NODE.width / 2 + (x - block.left) * STEP.x;
  const y = ({ row }: Place) => MARGIN + row * STEP.y;
  const width = (block.right - block.left) * STEP.x + NODE.width + 2 * MARGIN;
  const height = (block.rows - 1) * STEP.y + NODE.height + 2 * MARGIN;

  /** The way from a node's foot to another's head, straight down past the rows between. */
  const path = ({ points }: Edge) =>
    points
      .slice(1)
      .map((to, i) => {
        const from = points[i] as Place;
        const [foot, head] = [y(from) + NODE.height, y(to)];
        const middle = (foot + head) / 2;
        const start = i === 0 ? `M${x(from)} ${foot}` : `V${foot}`;
        return `${start}C${x(from)} ${middle} ${x(to)} ${middle} ${x(to)} ${head}`;
      })
      .join('');
  const edges = block.edges.map((edge) => {
    const crossing = edge.from.backend === edge.to.backend ? undefined : crossings.get(edge.value);
    const label = crossing ? `${edge.value}: ${crossing.from} to ${crossing.to}, ${formatBytes(crossing.bytes)}` : edge.value;
    return svg(
      'path',
      { class: crossing ? 'edge crossing' : 'edge', d: path(edge), 'data-crossing': crossing ? true : undefined },
      svg('title', {}, label),
    );
  });
  const nodes = block.places.map((place) => {
    const { node } = place;
    if (!node) return null;
    const reveal = () => show(node);
    const label = `${node.op} ${node.name}, runs on ${node.backend}${node.refusals.map(({ backend, reason }) => `; ${backend} refuses: ${reason}`).join('')}`;
    return svg(
      'g',
      {
        class: `node ${node.backend}`,
        transform: `translate(${x(place) - NODE.width / 2} ${y(place)})`,
        tabindex: 0,
        role: 'img',
        'aria-label': label,
        'data-backend': node.backend,
        focus: reveal,
        mouseenter: reveal,
        click: reveal,
      },
      svg('title', {}, label),
      svg('rect', { width: NODE.width, height: NODE.height, rx: 7 }),
      svg('text', { x: NODE.width / 2, y: NODE.height / 2 + 4.5, 'text-anchor': 'middle' }, shorten(node.op)),
      node.refusals.length > 0 && svg('circle', { class: 'refused', cx: NODE.width - 8, cy: 8, r: 3 }),
    );
  });
  return svg('svg', { width, height, viewBox: `0 0 ${width} ${height}` }, ...edges, ...nodes);
}

function shorten(op: string): string {
  return op.length > 17 ? `${op.slice(0, 16)}…` : op;
}
