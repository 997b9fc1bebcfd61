import { KilimError } from 'kilim';
import type { Tensor } from 'kilim';
import { el, formatNumber } from '../dom.js';
import { failure } from '../failure.js';
import type { OpenModel, Panel } from '../model.js';
import { difference } from './difference.js';
import type { Difference } from './difference.js';
import { readReference } from './files.js';
import type { Reference } from './files.js';
import { NodeComparison } from './nodes.js';

/** Holds what a model gives against files with what it should give, and its nodes against those of the CPU. */
export class Compare implements Panel {
  readonly element = el('div', { class: 'panel' });
  #open: OpenModel | undefined;
  #reference: Reference | undefined;
  #nodes = new NodeComparison();
  #absolute = el('input', { type: 'number', min: 0, step: 'any', value: 0.0001, 'data-testid': 'compare-absolute' });
  #relative = el('input', { type: 'number', min: 0, step: 'any', value: 0.001, 'data-testid': 'compare-relative' });
  #again = el(
    'button',
    { type: 'button', disabled: true, 'data-testid': 'compare-again', click: () => void this.#compare() },
    'Compare again',
  );
  #status = el('p', { class: 'note', role: 'status', 'data-testid': 'compare-status' });
  #result = el('div', { 'data-testid': 'compare-result' });
  #onRun: (outputs: Record<string, Tensor>) => void;

  /** `onRun` hears of what a run with the inputs of files gave. */
  constructor(onRun: (outputs: Record<string, Tensor>) => void) {
    this.#onRun = onRun;
    const pick = el('input', {
      type: 'file',
      multiple: true,
      accept: '.npy,.npz,.pb',
      'data-testid': 'compare-files',
      'aria-describedby': 'compare-hint',
    });
    pick.addEventListener('change', () => {
      void this.#take([...(pick.files ?? [])]);
      pick.value = '';
    });
    this.element.append(
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'compare-title' },
        el('div', { class: 'card-head' }, el('h2', { id: 'compare-title' }, 'Compare with a reference')),
        el(
          'label',
          { class: 'drop' },
          pick,
          el('strong', {}, 'Open inputs and outputs'),
          el(
            'span',
            { id: 'compare-hint' },
            '.npz or .npy with the names of inputs and outputs, or input_0.pb and output_0.pb as ONNX has them',
          ),
        ),
        el(
          'div',
          { class: 'actions' },
          el('label', {}, 'Tolerance ', this.#absolute),
          el('label', {}, 'and relative ', this.#relative),
          this.#again,
          this.#status,
        ),
        this.#result,
      ),
      this.#nodes.element,
    );
  }

  show(open: OpenModel): void {
    this.#open = open;
    this.#reference = undefined;
    this.#again.disabled = true;
    this.#result.replaceChildren();
    this.#status.textContent = '';
    this.#nodes.show(open);
  }

  async #take(files: File[]): Promise<void> {
    const open = this.#open;
    if (!open || files.length === 0) return;
    try {
      const { inputs, outputs } = open.session;
      const reference = await readReference(files, inputs, outputs);
      if (reference.outputs.size === 0)
        throw new KilimError('INPUT', 'the files have no output of this model', {
          expected: outputs.map(({ name }) => name).join(', '),
          got: [...reference.inputs.keys(), ...reference.others].join(', ') || 'nothing',
        });
      this.#reference = reference;
      for (const [name, tensor] of reference.inputs) open.inputs.takeTensor(name, tensor);
      this.#again.disabled = false;
      await this.#compare();
    } catch (error) {
      this.#result.replaceChildren(failure(error));
    }
  }

  async #compare(): Promise<void> {
    const [open, reference] = [this.#open, this.#reference];
    if (!open || !reference) return;
    try {
      this.#status.textContent = 'running …';
      const outputs = await open.session.run(open.inputs.feeds());
      if (this.#open !== open) return;
      this.#onRun(outputs);
      const tolerance = { absolute: this.#absolute.valueAsNumber || 0, relative: this.#relative.valueAsNumber || 0 };
      const found = [...reference.outputs].map(([name, want]): [string, Difference] => [
        name,
        difference(outputs[name] as Tensor, want, tolerance),
      ]);
      const wrong = found.filter(([, { off, unlike }]) => off > 0 || unlike);
      this.#status.textContent = [
        wrong.length === 0 ? 'All outputs are within the tolerance' : `${wrong.length} of ${found.length} outputs differ`,
        `${reference.inputs.size} of ${open.session.inputs.length} inputs are of the files`,
        reference.others.length > 0 && `not used: ${reference.others.join(', ')}`,
      ]
        .filter(Boolean)
        .join('; ');
      this.#result.replaceChildren(table(found));
    } catch (error) {
      this.#status.textContent = '';
      if (this.#open === open) this.#result.replaceChildren(failure(error));
    }
  }
}

const COLUMNS = ['Output', 'Largest difference', 'Of the largest value', 'Where', 'Got', 'Wanted', 'Beyond the tolerance'];

function table(found: [string, Difference][]): HTMLElement {
  const rows = found.map(([name, { unlike, largest, relative, place, got, want, off, count }]) => {
    const wrong = off > 0 || unlike !== undefined;
    const facts = unlike
      ? [el('td', { colspan: 6, class: 'refusal' }, unlike)]
      : [
          el('td', { class: 'number', 'data-testid': 'largest' }, formatNumber(largest)),
          el('td', { class: 'number' }, formatNumber(relative)),
          el('td', { 'data-testid': 'where' }, `[${place.join(', ')}]`),
          el('td', { class: 'number' }, formatNumber(got)),
          el('td', { class: 'number' }, formatNumber(want)),
          el('td', { class: wrong ? 'number refusal' : 'number' }, off === 0 ? `none of ${count}` : `${off} of ${count}`),
        ];
    return el('tr', { 'data-output': name, 'data-wrong': wrong }, el('th', { scope: 'row' }, name), ...facts);
  });
  return el(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Differences of the outputs' },
    el(
      'table',
      { class: 'bench-table' },
      el('thead', {}, el('tr', {}, ...COLUMNS.map((label) => el('th', { scope: 'col' }, label)))),
      el('tbody', {}, ...rows),
    ),
  );
}
