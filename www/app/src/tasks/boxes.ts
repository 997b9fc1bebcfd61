// Boxes in the outputs of detectors: the common layouts.
import type { Tensor } from 'kilim';

/** A box in shares of the picture's width and height. */
export interface Found {
  left: number;
  top: number;
  right: number;
  bottom: number;
  score: number;
  index: number;
}

/** How the four numbers of a box are meant. */
export type Corners = 'xyxy' | 'yxyx' | 'centre';

/** `lists`: boxes, scores and classes in outputs of their own. `pairs`: boxes, and scores of all classes. `rows`: one output, a box with score and class a row.
 * `yolo`: one output, a centre and scores of all classes a box; `objects`: with a score for the object in front of them. `cells`: such rows, with a place
 * within a cell and the logarithm of a size, as the heads of YOLOX give them. */
export type Layout = 'lists' | 'pairs' | 'rows' | 'yolo' | 'objects' | 'cells';

/** Columns and rows of the picture that a model was given. */
interface Size {
  width: number;
  height: number;
}

/** Boxes that overlap by so much are of one object. */
const SAME = 0.45;
/** Boxes that are compared with each other. */
const MOST = 3000;

interface Matrix {
  rows: number;
  columns: number;
  at(row: number, column: number): number;
}

/** The last two dimensions, of the first of a batch. */
function matrix(tensor: Tensor): Matrix {
  const [rows, columns] = [tensor.dims.at(-2) ?? 1, tensor.dims.at(-1) ?? 1];
  const values = tensor.toNumbers();
  return { rows, columns, at: (row, column) => values[row * columns + column] ?? 0 };
}

const turned = ({ rows, columns, at }: Matrix): Matrix => ({ rows: columns, columns: rows, at: (row, column) => at(column, row) });
const numeric = (outputs: Record<string, Tensor>) => Object.entries(outputs).filter(([, { type }]) => type !== 'string');
const boxesOf = (outputs: Record<string, Tensor>) => numeric(outputs).find(([, { dims }]) => dims.length >= 2 && dims.at(-1) === 4)?.[1];

/** The layout that outputs speak for. */
export function layoutOf(outputs: Record<string, Tensor>): Layout | undefined {
  const tensors = numeric(outputs).map(([, tensor]) => tensor);
  const boxes = boxesOf(outputs);
  if (boxes && tensors.length > 1) {
    const scores = tensors.some(({ dims }) => dims.length === boxes.dims.length && dims.at(-1) !== 4 && dims.at(-2) === boxes.dims.at(-2));
    return scores ? 'pairs' : 'lists';
  }
  const [only] = tensors.sort((a, b) => b.dims.length - a.dims.length);
  if (!only || only.dims.length < 2) return undefined;
  const [rows, columns] = [only.dims.at(-2) ?? 0, only.dims.at(-1) ?? 0];
  if (columns === 6 || columns === 7) return 'rows';
  if (columns > 7 && rows > columns) return 'objects';
  return rows > 4 && columns > rows ? 'yolo' : undefined;
}

/** How boxes of a layout mostly are. */
export function cornersOf(layout: Layout, outputs: Record<string, Tensor>): Corners {
  if (layout === 'yolo' || layout === 'objects' || layout === 'cells') return 'centre';
  // What TFLite appends to a detector has a batch and lists of floats.
  const lists = layout === 'lists' && boxesOf(outputs)?.dims.length === 3;
  return lists ? 'yxyx' : 'xyxy';
}

type Row = [a: number, b: number, c: number, d: number, score: number, index: number];

function best(scores: Matrix, row: number, from: number): [score: number, index: number] {
  let [score, index] = [-Infinity, 0];
  for (let column = from; column < scores.columns; column++) {
    const value = scores.at(row, column);
    if (value > score) [score, index] = [value, column - from];
  }
  return [score, index];
}

/** Scores that are no shares of one go through a sigmoid. */
function asShares(rows: Row[]): Row[] {
  const outside = rows.some(([, , , , score]) => score < -0.001 || score > 1.001);
  return outside ? rows.map(([a, b, c, d, score, index]): Row => [a, b, c, d, 1 / (1 + Math.exp(-score)), index]) : rows;
}

const READERS: Record<Layout, (outputs: Record<string, Tensor>, size: Size | undefined) => Row[]> = {
  lists: (outputs) => {
    const boxes = boxesOf(outputs);
    if (!boxes) return [];
    const { rows, at } = matrix(boxes);
    const lists = numeric(outputs).filter(
      ([, { dims }]) => dims.at(-1) === rows && (dims.length === 1 || dims.length === boxes.dims.length - 1),
    );
    const named = (pattern: RegExp) => lists.find(([name]) => pattern.test(name))?.[1].toNumbers();
    const values = lists.map(([, tensor]) => tensor.toNumbers());
    const whole = values.find((list) => list.every(Number.isInteger));
    const classes = named(/class|label/i) ?? whole;
    const scores = named(/score|conf|prob/i) ?? values.find((list) => list !== classes);
    return Array.from({ length: rows }, (_, i): Row => [at(i, 0), at(i, 1), at(i, 2), at(i, 3), scores?.[i] ?? 0, classes?.[i] ?? 0]);
  },
  pairs: (outputs) => {
    const boxes = boxesOf(outputs);
    const found = numeric(outputs).find(
      ([, { dims }]) => boxes && dims.length === boxes.dims.length && dims.at(-1) !== 4 && dims.at(-2) === boxes.dims.at(-2),
    );
    if (!boxes || !found) return [];
    const { rows, at } = matrix(boxes);
    const scores = matrix(found[1]);
    // Where the scores of a row are shares of one, the first is that of the background.
    const sum = Array.from({ length: scores.columns }, (_, column) => scores.at(0, column)).reduce((a, b) => a + b, 0);
    const from = scores.columns > 1 && Math.abs(sum - 1) < 0.01 ? 1 : 0;
    return asShares(Array.from({ length: rows }, (_, i): Row => [at(i, 0), at(i, 1), at(i, 2), at(i, 3), ...best(scores, i, from)]));
  },
  rows: (outputs) => {
    const found = numeric(outputs).find(([, { dims }]) => dims.at(-1) === 6 || dims.at(-1) === 7)?.[1];
    if (!found) return [];
    const { rows, columns, at } = matrix(found);
    // Seven numbers begin with the picture's number in the batch, and have the class before the box.
    return Array.from({ length: rows }, (_, i): Row => {
      if (columns === 7) return [at(i, 3), at(i, 4), at(i, 5), at(i, 6), at(i, 2), at(i, 1)];
      return [at(i, 0), at(i, 1), at(i, 2), at(i, 3), at(i, 4), at(i, 5)];
    });
  },
  yolo: (outputs) => anchors(outputs, 4),
  objects: (outputs) => anchors(outputs, 5),
  cells: (outputs, size) => {
    const rows = anchors(outputs, 5);
    const cells = size && STRIDES.map((strides) => cellsOf(size, strides)).find(({ length }) => length === rows.length);
    if (!cells) return [];
    return rows.map(([x, y, width, height, score, index], i): Row => {
      const { column, row, stride } = cells[i] as Cell;
      return [(x + column) * stride, (y + row) * stride, Math.exp(width) * stride, Math.exp(height) * stride, score, index];
    });
  },
};

/** A place of a grid whose cells are so many pixels wide and high. */
interface Cell {
  column: number;
  row: number;
  stride: number;
}

/** The grids of heads, in the order of their rows. */
const STRIDES = [
  [8, 16, 32],
  [8, 16, 32, 64],
];

function cellsOf({ width, height }: Size, strides: readonly number[]): Cell[] {
  return strides.flatMap((stride) => {
    const [columns, rows] = [Math.floor(width / stride), Math.floor(height / stride)];
    return Array.from({ length: columns * rows }, (_, i) => ({ column: i % columns, row: Math.floor(i / columns), stride }));
  });
}

function anchors(outputs: Record<string, Tensor>, from: 4 | 5): Row[] {
  const [found] = numeric(outputs)
    .map(([, tensor]) => tensor)
    .sort((a, b) => b.dims.length - a.dims.length);
  if (!found || found.dims.length < 2) return [];
  const given = matrix(found);
  const table = given.columns > given.rows ? turned(given) : given;
  const { rows, columns, at } = table;
  const all = Array.from({ length: rows }, (_, i): Row => {
    const [score, index] = columns > from ? best(table, i, from) : [1, 0];
    return [at(i, 0), at(i, 1), at(i, 2), at(i, 3), from === 5 ? score * at(i, 4) : score, index];
  });
  return asShares(all);
}

function overlap(a: Found, b: Found): number {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const area = ({ left, top, right, bottom }: Found) => (right - left) * (bottom - top);
  return (width * height) / (area(a) + area(b) - width * height);
}

/** The boxes whose score is high enough, the best of each object. `size` is that of the picture's tensor: boxes in its pixels become shares. */
export function boxes(outputs: Record<string, Tensor>, layout: Layout, corners: Corners, least: number, size: Size | undefined): Found[] {
  const rows = READERS[layout](outputs, size).filter((row) => row[4] >= least && row.every(Number.isFinite));
  // A box may reach beyond the picture.
  const pixels = layout === 'cells' || 2 * rows.filter(([a, b, c, d]) => Math.max(a, b, c, d) > 2).length > rows.length;
  const [width, height] = pixels && size ? [size.width, size.height] : [1, 1];
  const placed = rows.map(([a, b, c, d, score, index]): Found => {
    const [left, top, right, bottom] =
      corners === 'centre' ? [a - c / 2, b - d / 2, a + c / 2, b + d / 2] : corners === 'yxyx' ? [b, a, d, c] : [a, b, c, d];
    return { left: left / width, top: top / height, right: right / width, bottom: bottom / height, score, index };
  });
  const kept: Found[] = [];
  for (const box of placed.sort((a, b) => b.score - a.score).slice(0, MOST)) {
    if (box.right > box.left && box.bottom > box.top && !kept.some((other) => other.index === box.index && overlap(other, box) > SAME))
      kept.push(box);
  }
  return kept;
}
