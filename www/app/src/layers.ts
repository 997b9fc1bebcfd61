import type { NodeReport } from 'kilim';

/** A node's place in the drawing, in columns and rows. */
export interface Placed {
  node: NodeReport;
  x: number;
  row: number;
}

/** A value that one node writes and another reads. */
export interface Edge {
  from: Placed;
  to: Placed;
  value: string;
}

/** The nodes of one graph or one body of a control-flow node. */
export interface Block {
  scope: string[];
  nodes: Placed[];
  edges: Edge[];
  rows: number;
  /** The leftmost and rightmost column. */
  left: number;
  right: number;
}

/** Lays every graph of a report out in rows, so that values flow downwards. */
export function layOut(nodes: NodeReport[]): Block[] {
  const scopes = new Map<string, NodeReport[]>();
  for (const node of nodes) {
    const key = node.scope.join('\n');
    scopes.set(key, [...(scopes.get(key) ?? []), node]);
  }
  return [...scopes.values()].map(block);
}

function block(nodes: NodeReport[]): Block {
  const writers = new Map<string, Placed>();
  const placed = nodes.map((node) => ({ node, x: 0, row: 0 }));
  for (const place of placed) for (const { name } of place.node.outputs) writers.set(name, place);
  const edges = placed.flatMap((to) =>
    [...new Set(to.node.inputs)].flatMap((value) => {
      const from = writers.get(value);
      return from && from !== to ? [{ from, to, value }] : [];
    }));
  const before = new Map<Placed, Placed[]>(placed.map((place) => [place, []]));
  const after = new Map<Placed, Placed[]>(placed.map((place) => [place, []]));
  for (const { from, to } of edges) {
    before.get(to)?.push(from);
    after.get(from)?.push(to);
  }
  // The report lists nodes in an order of execution, so that writers come first.
  for (const place of placed) place.row = 1 + Math.max(-1, ...(before.get(place) ?? []).map(({ row }) => row));
  const rows: Placed[][] = [];
  for (const place of placed) (rows[place.row] ??= []).push(place);
  rows.forEach((row) => row.forEach((place, i) => { place.x = i - (row.length - 1) / 2; }));
  for (let pass = 0; pass < 6; pass++) {
    const down = pass % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) settle(row, down ? before : after);
  }
  const xs = placed.map(({ x }) => x);
  return { scope: nodes[0]?.scope ?? [], nodes: placed, edges, rows: rows.length, left: Math.min(...xs), right: Math.max(...xs) };
}

/** Moves a row's nodes towards the middle of their neighbours, one column apart at least. */
function settle(row: Placed[], neighbours: Map<Placed, Placed[]>): void {
  const wish = new Map(row.map((place) => {
    const near = neighbours.get(place) ?? [];
    return [place, near.length ? near.reduce((sum, { x }) => sum + x, 0) / near.length : place.x];
  }));
  row.sort((a, b) => (wish.get(a) as number) - (wish.get(b) as number));
  let next = -Infinity;
  let drift = 0;
  for (const place of row) {
    place.x = Math.max(wish.get(place) as number, next);
    next = place.x + 1;
    drift += place.x - (wish.get(place) as number);
  }
  // Spreading went to the right only; half of it belongs to the left.
  for (const place of row) place.x -= drift / row.length;
}
