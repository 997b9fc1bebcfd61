import type { Box } from './boxes.js';

/** A point of the drawing that has a place in its row: a box, or a value on its way past the row. */
export interface Place {
  box: Box | null;
  /** The middle, in columns. */
  x: number;
  row: number;
}

/** A value that one box writes and another reads, with the points that it passes. */
export interface Edge {
  from: Box;
  to: Box;
  value: string;
  points: Place[];
}

/** A graph, or the body of a control-flow node, as it is drawn. */
export interface Block {
  places: Place[];
  edges: Edge[];
  rows: number;
  /** The outermost columns. */
  left: number;
  right: number;
}

/** Columns that a value takes in a row which it passes. */
const LANE = 0.14;

/** Lays boxes out in rows, so that values flow downwards. Those that write come before those that read. */
export function layOut(boxes: readonly Box[]): Block {
  const writers = new Map<string, Place>();
  const places: Place[] = [];
  const links: { from: Place; to: Place; value: string }[] = [];
  for (const box of boxes) {
    const to: Place = { box, x: 0, row: 0 };
    for (const value of new Set(box.inputs)) {
      const from = writers.get(value);
      if (!from) continue;
      links.push({ from, to, value });
      to.row = Math.max(to.row, from.row + 1);
    }
    places.push(to);
    for (const name of box.outputs) writers.set(name, to);
  }
  const graph = new Neighbours();
  const lanes = new Map<string, Place[]>();
  const edges = links.map(({ from, to, value }) => {
    // All readers of a value share one lane, which goes as far down as the last of them.
    const lane = lanes.get(value) ?? [from];
    lanes.set(value, lane);
    while (lane.length < to.row - from.row) {
      const next: Place = { box: null, x: 0, row: from.row + lane.length };
      graph.connect(lane.at(-1) as Place, next);
      lane.push(next);
      places.push(next);
    }
    const points = [...lane.slice(0, to.row - from.row), to];
    graph.connect(points.at(-2) as Place, to);
    return { from: from.box as Box, to: to.box as Box, value, points };
  });
  const rows: Place[][] = [];
  for (const place of places) (rows[place.row] ??= []).push(place);
  rows.forEach(pack);
  for (let pass = 0; pass < 8; pass++) {
    const down = pass % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) settle(row, down ? graph.before : graph.after);
  }
  const xs = places.map(({ x }) => x);
  const [left, right] = xs.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
  return { places, edges, rows: rows.length, left, right };
}

/** Who is connected with whom, upwards and downwards. */
class Neighbours {
  before = new Map<Place, Place[]>();
  after = new Map<Place, Place[]>();

  connect(from: Place, to: Place): void {
    this.before.set(to, [...(this.before.get(to) ?? []), from]);
    this.after.set(from, [...(this.after.get(from) ?? []), to]);
  }
}

/** Columns that a place takes in its row. */
function width(place: Place): number {
  return place.box ? 1 : LANE;
}

/** Puts a row's places side by side around the middle. */
function pack(row: Place[]): void {
  let edge = -row.reduce((sum, place) => sum + width(place), 0) / 2;
  for (const place of row) {
    place.x = edge + width(place) / 2;
    edge += width(place);
  }
}

/** Moves a row's places towards the middle of their neighbours, without letting them overlap. */
function settle(row: Place[], neighbours: Map<Place, Place[]>): void {
  const wish = new Map(
    row.map((place) => {
      const near = neighbours.get(place) ?? [];
      return [place, near.length ? near.reduce((sum, { x }) => sum + x, 0) / near.length : place.x];
    }),
  );
  row.sort((a, b) => (wish.get(a) as number) - (wish.get(b) as number));
  let edge = -Infinity;
  let drift = 0;
  for (const place of row) {
    const half = width(place) / 2;
    place.x = Math.max(wish.get(place) as number, edge + half);
    edge = place.x + half;
    drift += place.x - (wish.get(place) as number);
  }
  // Spreading went to the right only; half of it belongs to the left.
  for (const place of row) place.x -= drift / row.length;
}
