import type { Tensor } from 'kilim';
import { el } from '../dom.js';
import { mapsOf } from './maps.js';
import { chooser, overlay, slider } from './overlay.js';
import type { Ran, Task, TaskView } from './task.js';
import { colourOf } from './task.js';

/** A point in shares of the picture's width and height. */
interface Point {
  x: number;
  y: number;
  score: number;
}

/** The points of a list of two or three numbers each: a place, and a score. */
function listed(outputs: Record<string, Tensor>, order: 'xy' | 'yx'): Point[] | undefined {
  const found = Object.values(outputs).find(
    ({ type, dims }) => type !== 'string' && dims.length >= 2 && (dims.at(-1) === 2 || dims.at(-1) === 3) && (dims.at(-2) ?? 0) > 4,
  );
  if (!found) return undefined;
  const [count, width] = [found.dims.at(-2) ?? 0, found.dims.at(-1) ?? 2];
  const values = found.toNumbers();
  return Array.from({ length: count }, (_, i) => {
    const [a = 0, b = 0, score = 1] = [...values.subarray(i * width, (i + 1) * width)];
    return order === 'xy' ? { x: a, y: b, score } : { x: b, y: a, score };
  });
}

/** The highest place of every channel. */
function highest(outputs: Record<string, Tensor>): Point[] | undefined {
  const maps = mapsOf(outputs);
  if (!maps) return undefined;
  return Array.from({ length: maps.channels }, (_, channel) => {
    let best = 0;
    for (let place = 1; place < maps.width * maps.height; place++) if (maps.at(channel, place) > maps.at(channel, best)) best = place;
    const [x, y] = [((best % maps.width) + 0.5) / maps.width, (Math.floor(best / maps.width) + 0.5) / maps.height];
    return { x, y, score: maps.at(channel, best) };
  });
}

class Pose implements TaskView {
  readonly element = el('div', {});
  #ran: Ran | undefined;
  #again = () => this.#ran && this.show(this.#ran);
  #order = chooser('Order of a place', { yx: 'Places: down, then right', xy: 'Places: right, then down' }, 'point-order', this.#again);
  #least = slider('Least score', 0.2, this.#again);
  #answer = el('div', {});

  constructor() {
    this.element.append(el('div', { class: 'task-tools' }, this.#order, this.#least.element), this.#answer);
  }

  show(ran: Ran): void {
    this.#ran = ran;
    const found = listed(ran.outputs, this.#order.value as 'xy' | 'yx') ?? highest(ran.outputs);
    if (!found) {
      this.#answer.replaceChildren(el('p', { class: 'note' }, 'No output has points, or a map for each.'));
      return;
    }
    const pixels = found.some(({ x, y }) => Math.max(x, y) > 2);
    const [width, height] = pixels && ran.picture ? [ran.picture.width, ran.picture.height] : [1, 1];
    const points = found
      .map(({ x, y, score }, i) => ({ i, x: x / width, y: y / height, score }))
      .filter(({ score }) => score >= this.#least.value());
    const canvas = overlay(ran, `${points.length} points`, (context, wide, high) => {
      context.font = '600 20px system-ui, sans-serif';
      for (const { i, x, y } of points) {
        context.fillStyle = colourOf(i);
        context.strokeStyle = '#fff';
        context.lineWidth = 3;
        context.beginPath();
        context.arc(x * wide, y * high, 9, 0, 2 * Math.PI);
        context.stroke();
        context.fill();
        context.strokeText(String(i), x * wide + 12, y * high + 6);
        context.fillText(String(i), x * wide + 12, y * high + 6);
      }
    });
    const list = points.map(({ i, x, y, score }) =>
      el(
        'li',
        {},
        `${i} `,
        el('span', { class: 'note' }, `at ${(100 * x).toFixed(1)}, ${(100 * y).toFixed(1)} %, score ${score.toFixed(2)}`),
      ),
    );
    this.#answer.replaceChildren(canvas, el('ol', { class: 'found', 'data-testid': 'found' }, ...list));
  }
}

export const pose: Task = {
  label: 'Pose',
  labelled: false,
  fits: ({ outputs, picture }) => picture && outputs.some(({ name }) => /pose|key_?point|heat_?map|landmark/i.test(name)),
  make: () => new Pose(),
};
