import type { Tensor } from 'kilim';
import { el, formatNumber } from '../dom.js';
import { range, rank } from '../numbers.js';
import type { Ran, Task, TaskView } from './task.js';
import { labelOf } from './task.js';

/** Values of the answer that are listed. */
const SHOWN = 5;

/** Scores as shares of one: those that are none yet go through a softmax. */
function shares(values: Float64Array): Float64Array {
  const [low, high] = range(values);
  const sum = values.reduce((total, value) => total + value, 0);
  if (low >= 0 && high <= 1.0001 && Math.abs(sum - 1) < 0.02) return values;
  if (low >= 0 && high <= 255 && Math.abs(sum - 255) <= 8) return values.map((value) => value / 255);
  const powers = values.map((value) => Math.exp(value - high));
  const total = powers.reduce((all, value) => all + value, 0);
  return powers.map((value) => value / total);
}

/** The last axis of an output, for the first of a batch. */
function scoresOf(outputs: Record<string, Tensor>): Float64Array | undefined {
  const tensors = Object.values(outputs).filter(({ type, dims }) => type !== 'string' && (dims.at(-1) ?? 0) > 1);
  const [best] = tensors.sort((a, b) => (b.dims.at(-1) ?? 0) - (a.dims.at(-1) ?? 0));
  return best?.toNumbers().subarray(0, best.dims.at(-1));
}

class Classes implements TaskView {
  readonly element = el('div', {});

  show({ outputs, labels }: Ran): void {
    const scores = scoresOf(outputs);
    if (!scores) {
      this.element.replaceChildren(el('p', { class: 'note' }, 'No output has scores of several classes.'));
      return;
    }
    const certain = shares(scores);
    const rows = rank(scores)
      .slice(0, SHOWN)
      .map((index, i) => {
        const share = certain[index] ?? 0;
        const bar = el('span', { class: 'bar' });
        bar.style.setProperty('--share', String(Math.min(Math.max(share || 0, 0), 1)));
        const value = Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : formatNumber(share);
        return el(
          'li',
          { class: i === 0 ? 'best' : undefined, 'data-index': index },
          el('span', { class: 'index' }, labelOf(labels, index)),
          bar,
          el('span', { class: 'value' }, value),
        );
      });
    this.element.replaceChildren(el('ol', { class: 'top named', 'data-testid': 'classes' }, ...rows));
  }
}

export const classify: Task = {
  label: 'Classify',
  labelled: true,
  fits: ({ outputs, picture }) => {
    const [output, ...more] = outputs;
    const long = output?.dims?.filter((dim) => typeof dim === 'number' && dim > 1) ?? [];
    return picture && more.length === 0 && long.length === 1 && Number(long[0]) > 12;
  },
  make: () => new Classes(),
};
