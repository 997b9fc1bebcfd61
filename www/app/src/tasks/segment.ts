import { el } from '../dom.js';
import { mapsOf } from './maps.js';
import type { Maps } from './maps.js';
import { overlay, slider } from './overlay.js';
import type { Ran, Task, TaskView } from './task.js';
import { colourOf, labelOf } from './task.js';

/** The class of every place: the highest channel, the number itself, or whether one channel is above `least`. */
function classesOf({ channels, width, height, at }: Maps, least: number): Uint16Array {
  const places = width * height;
  const classes = new Uint16Array(places);
  if (channels > 1) {
    for (let place = 0; place < places; place++) {
      let best = 0;
      for (let channel = 1; channel < channels; channel++) if (at(channel, place) > at(best, place)) best = channel;
      classes[place] = best;
    }
    return classes;
  }
  const values = Float64Array.from({ length: places }, (_, place) => at(0, place));
  const whole = values.every(Number.isInteger) && values.some((value) => value > 1);
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  // What is no share of one is a logit.
  const threshold = low >= -0.001 && high <= 1.001 ? least : Math.log(least / (1 - least + 1e-9));
  return classes.map((_, place) => (whole ? (values[place] ?? 0) : Number((values[place] ?? 0) > threshold)));
}

class Mask implements TaskView {
  readonly element = el('div', {});
  #ran: Ran | undefined;
  #again = () => this.#ran && this.show(this.#ran);
  #strength = slider('Strength', 0.55, this.#again);
  #least = slider('Threshold of one channel', 0.5, this.#again);
  #answer = el('div', {});

  constructor() {
    this.element.append(el('div', { class: 'task-tools' }, this.#strength.element, this.#least.element), this.#answer);
  }

  show(ran: Ran): void {
    this.#ran = ran;
    const maps = mapsOf(ran.outputs);
    if (!maps) {
      this.#answer.replaceChildren(el('p', { class: 'note' }, 'No output has rows and columns.'));
      return;
    }
    const classes = classesOf(maps, this.#least.value());
    const counts = new Map<number, number>();
    for (const index of classes) counts.set(index, (counts.get(index) ?? 0) + 1);
    const mask = maskOf(classes, maps, this.#strength.value());
    const canvas = overlay(ran, `A mask of ${counts.size} classes`, (context, width, height) => {
      context.imageSmoothingEnabled = false;
      context.drawImage(mask, 0, 0, width, height);
    });
    const list = [...counts]
      .sort(([, a], [, b]) => b - a)
      .slice(0, 12)
      .map(([index, places]) => {
        const swatch = el('i', { class: 'swatch' });
        if (index > 0) swatch.style.background = colourOf(index);
        return el(
          'li',
          { 'data-index': index },
          swatch,
          `${labelOf(ran.labels, index)} `,
          el('span', { class: 'note' }, `${((100 * places) / classes.length).toFixed(1)} %`),
        );
      });
    this.#answer.replaceChildren(canvas, el('ol', { class: 'found', 'data-testid': 'found' }, ...list));
  }
}

/** The classes in their colours; class 0, the background, is clear. */
function maskOf(classes: Uint16Array, { width, height }: Maps, strength: number): HTMLCanvasElement {
  const canvas = el('canvas', { width, height });
  const context = canvas.getContext('2d');
  const image = new ImageData(width, height);
  const colours = new Map<number, [number, number, number]>();
  classes.forEach((index, place) => {
    if (index === 0) return;
    let colour = colours.get(index);
    if (!colour && context) {
      context.fillStyle = colourOf(index);
      context.fillRect(0, 0, 1, 1);
      const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
      colours.set(index, (colour = [red, green, blue]));
    }
    image.data.set([...(colour ?? [0, 0, 0]), 255 * strength], 4 * place);
  });
  context?.putImageData(image, 0, 0);
  return canvas;
}

export const segment: Task = {
  label: 'Segment',
  labelled: true,
  fits: ({ outputs, picture }) =>
    picture &&
    outputs.some(({ dims, name }) => {
      const [a, b, c] = (dims ?? []).slice(-3).map(Number);
      const channels = (dims?.length === 4 && [a, c].filter((dim) => dim !== undefined && dim !== b)) || [];
      const spatial = (dims ?? []).filter((dim) => Number(dim) >= 16).length >= 2;
      return spatial && (/seg|mask/i.test(name) || channels.some((dim) => Number(dim) > 1 && Number(dim) !== 3 && Number(dim) < 256));
    }),
  make: () => new Mask(),
};
