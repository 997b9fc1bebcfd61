import type { CrossingReport } from 'kilim';
import { formatBytes, svg } from '../dom.js';
import { backendOf, crosses } from './boxes.js';
import type { Box } from './boxes.js';
import type { Block, Edge, Place } from './layers.js';

const NODE = { width: 128, height: 28 };
const STEP = { x: 144, y: 56 };
const MARGIN = 24;

/** A drawing, and the element of each box. */
export interface Drawing {
  element: SVGSVGElement;
  elements: Map<Box, SVGGElement>;
}

/** Draws a block. `choose` hears of the box that gets the focus, `open` of one that is to be unfolded. The arrow keys go along the values. */
export function draw(
  block: Block,
  crossings: ReadonlyMap<string, CrossingReport>,
  choose: (box: Box) => void,
  open: (box: Box) => void,
): Drawing {
  const x = ({ x }: Place) => MARGIN + NODE.width / 2 + (x - block.left) * STEP.x;
  const y = ({ row }: Place) => MARGIN + row * STEP.y;
  const width = (block.right - block.left) * STEP.x + NODE.width + 2 * MARGIN;
  const height = (block.rows - 1) * STEP.y + NODE.height + 2 * MARGIN;
  const elements = new Map<Box, SVGGElement>();

  /** The way from a box's foot to another's head, straight down past the rows between. */
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
    const crossing = crosses(edge.value, edge.from, edge.to) ? crossings.get(edge.value) : undefined;
    const label = crossing ? `${edge.value}: ${crossing.from} to ${crossing.to}, ${formatBytes(crossing.bytes)}` : edge.value;
    return svg(
      'path',
      { class: crossing ? 'edge crossing' : 'edge', d: path(edge), 'data-crossing': crossing ? true : undefined },
      svg('title', {}, label),
    );
  });

  const focus = (box: Box | null | undefined) => {
    const element = box && elements.get(box);
    if (!element) return;
    for (const other of elements.values()) other.setAttribute('tabindex', '-1');
    element.setAttribute('tabindex', '0');
    element.focus();
  };
  const places = block.places.filter(({ box }) => box !== null);
  const beside = (place: Place, step: -1 | 1) => {
    const row = places.filter((other) => other.row === place.row && (other.x - place.x) * step > 0);
    return row.sort((a, b) => (a.x - b.x) * step)[0]?.box;
  };
  const onKey = (event: KeyboardEvent, place: Place) => {
    const ways: Record<string, () => Box | null | undefined> = {
      ArrowDown: () => block.edges.find(({ from }) => from === place.box)?.to,
      ArrowUp: () => block.edges.find(({ to }) => to === place.box)?.from,
      ArrowLeft: () => beside(place, -1),
      ArrowRight: () => beside(place, 1),
    };
    const way = ways[event.key];
    if (way) {
      event.preventDefault();
      focus(way());
    } else if ((event.key === 'Enter' || event.key === ' ') && place.box?.fold !== undefined) {
      event.preventDefault();
      open(place.box);
    }
  };

  const boxes = places.map((place, i) => {
    const box = place.box as Box;
    const backend = backendOf(box);
    const element = svg(
      'g',
      {
        class: `node ${backend}${box.fold === undefined ? '' : ' fold'}`,
        transform: `translate(${x(place) - NODE.width / 2} ${y(place)})`,
        tabindex: i === 0 ? 0 : -1,
        role: 'button',
        'aria-label': labelOf(box, backend),
        'data-backend': backend,
        'data-testid': box.fold === undefined ? undefined : 'fold',
        focus: () => choose(box),
        click: () => focus(box),
        dblclick: () => box.fold !== undefined && open(box),
        keydown: (event: KeyboardEvent) => onKey(event, place),
      },
      svg('title', {}, labelOf(box, backend)),
      box.fold !== undefined && svg('rect', { class: 'behind', x: 4, y: 4, width: NODE.width, height: NODE.height, rx: 7 }),
      svg('rect', { width: NODE.width, height: NODE.height, rx: 7 }),
      svg('text', { x: NODE.width / 2, y: NODE.height / 2 + 4.5, 'text-anchor': 'middle' }, shorten(box.label)),
      box.nodes.some(({ refusals }) => refusals.length > 0) && svg('circle', { class: 'refused', cx: NODE.width - 8, cy: 8, r: 3 }),
    );
    elements.set(box, element);
    return element;
  });
  const element = svg(
    'svg',
    { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Nodes; the arrow keys go along the values' },
    ...edges,
    ...boxes,
  );
  return { element, elements };
}

function labelOf({ label, nodes, fold }: Box, backend: string): string {
  if (fold !== undefined) return `${label}, ${nodes.length} nodes folded, ${backend}`;
  const [node] = nodes;
  const refusals = node?.refusals.map(({ backend, reason }) => `; ${backend} refuses: ${reason}`) ?? [];
  return `${label} ${node?.name ?? ''}, runs on ${backend}${refusals.join('')}`;
}

function shorten(text: string): string {
  return text.length > 17 ? `${text.slice(0, 16)}…` : text;
}
