import type { Tensor } from 'kilim';
import { el } from '../dom.js';
import type { Ran, Task, TaskView } from './task.js';

/** One vector of an output: the mean over all but the last dimension, for the first of a batch. */
function vectorOf(outputs: Record<string, Tensor>): Float64Array | undefined {
  const floats = Object.entries(outputs).filter(([, { type, dims }]) => type.includes('float') && (dims.at(-1) ?? 0) > 1);
  const [, tensor] = floats.find(([name]) => /embed|pool/i.test(name)) ?? floats[0] ?? [];
  if (!tensor) return undefined;
  const length = tensor.dims.at(-1) ?? 1;
  const batch = tensor.dims.length > 1 ? (tensor.dims[0] ?? 1) : 1;
  const values = tensor.toNumbers();
  const rows = Math.max(1, values.length / length / Math.max(1, batch));
  return Float64Array.from({ length }, (_, column) => {
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += values[row * length + column] ?? 0;
    return sum / rows;
  });
}

/** The cosine of the angle between two vectors; 0 where one is nothing. */
function cosine(a: Float64Array, b: Float64Array): number {
  const product = (x: Float64Array, y: Float64Array) => x.reduce((sum, value, i) => sum + value * (y[i] ?? 0), 0);
  const size = Math.sqrt(product(a, a) * product(b, b));
  return size > 0 ? product(a, b) / size : 0;
}

class Embeddings implements TaskView {
  readonly element = el('div', {});
  #kept: Float64Array[] = [];
  #last: Float64Array | undefined;
  #answer = el('div', {});
  #keep = el('button', { type: 'button', 'data-testid': 'keep', click: () => this.#keepLast() }, 'Keep this one');

  constructor() {
    this.element.append(el('div', { class: 'task-tools' }, this.#keep), this.#answer);
  }

  show({ outputs }: Ran): void {
    this.#last = vectorOf(outputs);
    this.#keep.disabled = !this.#last;
    this.#draw();
  }

  #keepLast(): void {
    if (this.#last) this.#kept.push(this.#last);
    this.#draw();
  }

  #draw(): void {
    const last = this.#last;
    if (!last) {
      this.#answer.replaceChildren(el('p', { class: 'note' }, 'No output is a vector of floats.'));
      return;
    }
    const rows = this.#kept.map((kept, i) => {
      const alike = cosine(kept, last);
      const bar = el('span', { class: 'bar' });
      bar.style.setProperty('--share', String(Math.max(0, alike)));
      return el('li', {}, el('span', { class: 'index' }, `to no. ${i + 1}`), bar, el('span', { class: 'value' }, alike.toFixed(4)));
    });
    const hint = 'Keep this input, change it, and run again: the cosine of the angle between both appears here.';
    this.#answer.replaceChildren(
      el('p', { class: 'note' }, `A vector of ${last.length} numbers. ${rows.length ? 'Its cosine:' : hint}`),
      el('ol', { class: 'top named', 'data-testid': 'cosines' }, ...rows),
    );
  }
}

export const embed: Task = {
  label: 'Embeddings',
  labelled: false,
  fits: ({ outputs }) => outputs.some(({ name, dims }) => /embed|pooler|last_hidden/i.test(name) && Number(dims?.at(-1)) > 16),
  make: () => new Embeddings(),
};
