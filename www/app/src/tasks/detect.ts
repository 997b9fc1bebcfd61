import { el } from '../dom.js';
import { boxes, cornersOf, layoutOf } from './boxes.js';
import type { Corners, Found, Layout } from './boxes.js';
import { chooser, overlay, slider } from './overlay.js';
import type { Ran, Task, TaskView } from './task.js';
import { colourOf, labelOf } from './task.js';

const LAYOUTS: Record<Layout | 'auto', string> = {
  auto: 'Layout: as it looks',
  lists: 'boxes, scores, classes',
  pairs: 'boxes, scores of all classes',
  rows: 'a box, its score and class a row',
  yolo: 'YOLO: box and classes',
  objects: 'YOLO: box, object and classes',
  cells: 'YOLOX: in cells of 8, 16, 32 pixels',
};
const CORNERS: Record<Corners | 'auto', string> = {
  auto: 'Corners: as usual',
  xyxy: 'left, top, right, bottom',
  yxyx: 'top, left, bottom, right',
  centre: 'centre, width, height',
};

class Boxes implements TaskView {
  readonly element = el('div', {});
  #ran: Ran | undefined;
  #again = () => this.#ran && this.show(this.#ran);
  #layout = chooser('Layout of the outputs', LAYOUTS, 'box-layout', this.#again);
  #corners = chooser('How corners are given', CORNERS, 'box-corners', this.#again);
  #least = slider('Least score', 0.5, this.#again);
  #answer = el('div', {});

  constructor() {
    this.element.append(el('div', { class: 'task-tools' }, this.#layout, this.#corners, this.#least.element), this.#answer);
  }

  show(ran: Ran): void {
    this.#ran = ran;
    const chosen = this.#layout.value as Layout | 'auto';
    const layout = chosen === 'auto' ? layoutOf(ran.outputs) : chosen;
    if (!layout) {
      this.#answer.replaceChildren(el('p', { class: 'note' }, 'The outputs look like none of the layouts. Choose one.'));
      return;
    }
    const corners = this.#corners.value === 'auto' ? cornersOf(layout, ran.outputs) : (this.#corners.value as Corners);
    const found = boxes(ran.outputs, layout, corners, this.#least.value(), ran.picture);
    const canvas = overlay(ran, `${found.length} boxes`, (context, width, height) => drawBoxes(context, width, height, found, ran.labels));
    const list = found.map(({ index, score, left, top, right, bottom }) => {
      const place = [left, top, right, bottom].map((share) => `${(100 * share).toFixed(0)}`).join(', ');
      const swatch = el('i', { class: 'swatch' });
      swatch.style.background = colourOf(index);
      return el(
        'li',
        {},
        swatch,
        `${labelOf(ran.labels, index)} ${(100 * score).toFixed(0)} % `,
        el('span', { class: 'note' }, `at ${place} %`),
      );
    });
    const none = el('p', { class: 'note' }, 'Nothing scores that much.');
    this.#answer.replaceChildren(canvas, found.length ? el('ol', { class: 'found', 'data-testid': 'found' }, ...list) : none);
  }
}

function drawBoxes(context: CanvasRenderingContext2D, width: number, height: number, found: Found[], labels: readonly string[]): void {
  context.lineWidth = 4;
  context.font = '600 22px system-ui, sans-serif';
  context.textBaseline = 'top';
  for (const { left, top, right, bottom, score, index } of [...found].reverse()) {
    const [x, y] = [left * width, top * height];
    context.strokeStyle = context.fillStyle = colourOf(index);
    context.strokeRect(x, y, (right - left) * width, (bottom - top) * height);
    const text = `${labelOf(labels, index)} ${(100 * score).toFixed(0)} %`;
    const above = Math.max(0, y - 28);
    context.fillRect(x - 2, above, context.measureText(text).width + 12, 28);
    context.fillStyle = '#fff';
    context.fillText(text, x + 4, above + 3);
  }
}

export const detect: Task = {
  label: 'Detect',
  labelled: true,
  fits: ({ outputs, picture }) => {
    const boxes = outputs.some(({ dims, name }) => (dims?.at(-1) === 4 && (dims?.length ?? 0) > 1) || /\bbox|detection/i.test(name));
    const [only] = outputs;
    const [rows, columns] = [Number(only?.dims?.at(-2)), Number(only?.dims?.at(-1))];
    const yolo = outputs.length === 1 && only?.dims?.length === 3 && Math.max(rows, columns) > 1000 && Math.min(rows, columns) > 4;
    return picture && ((boxes && outputs.length > 1) || yolo);
  },
  make: () => new Boxes(),
};
