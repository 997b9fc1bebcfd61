import type { Tensor } from 'kilim';
import { el } from '../dom.js';
import { Outputs } from '../outputs.js';
import { classify } from './classify.js';
import { detect } from './detect.js';
import { embed } from './embed.js';
import { readLabels } from './labels.js';
import { pose } from './pose.js';
import { segment } from './segment.js';
import type { Ports, Ran, Task, TaskView } from './task.js';

/** What models may be for; `numbers` shows the outputs as they are. The first that fits is the guess. */
const TASKS: Record<string, Task> = { pose, detect, segment, classify, embed };

/** The answer of a model, shown as that of a kind of models which the visitor chooses. */
export class Answer {
  readonly element = el('div', {});
  #numbers = new Outputs();
  #view: TaskView | undefined;
  #labels: string[] = [];
  #ran: Ran | undefined;
  #select: HTMLSelectElement;
  #labelling: HTMLElement;
  #labelCount = el('span', { class: 'note', role: 'status', 'data-testid': 'label-count' });
  #body = el('div', {});

  constructor(onError: (error: unknown) => void) {
    const options = [['numbers', 'Numbers'], ...Object.entries(TASKS).map(([key, { label }]) => [key, label])];
    this.#select = el(
      'select',
      { 'data-testid': 'task', change: () => this.#choose(this.#select.value) },
      ...options.map(([value, label]) => el('option', { value }, label)),
    );
    const pick = el('input', { type: 'file', accept: '.txt,.json,.csv,text/*', 'data-testid': 'labels', 'aria-label': 'File of labels' });
    pick.addEventListener('change', async () => {
      const file = pick.files?.[0];
      if (!file) return;
      try {
        this.#labels = await readLabels(file);
        this.#labelCount.textContent = `${this.#labels.length} labels`;
        if (this.#ran) this.show(this.#ran.outputs, this.#ran.picture);
      } catch (error) {
        onError(error);
      }
    });
    this.#labelling = el('label', { class: 'labels' }, 'Labels ', pick, this.#labelCount);
    const links = el(
      'span',
      { class: 'note' },
      el('a', { href: './talk.html' }, 'Text'),
      ' and ',
      el('a', { href: './listen.html' }, 'speech'),
      ' have pages of their own.',
    );
    this.element.append(el('div', { class: 'task-tools' }, el('label', {}, 'Show as ', this.#select), this.#labelling, links), this.#body);
    this.#choose('numbers');
  }

  /** Begins with another model: guesses what it is for. */
  begin(ports: Ports): void {
    this.#labels = [];
    this.#labelCount.textContent = '';
    this.#ran = undefined;
    const guess = Object.entries(TASKS).find(([, task]) => task.fits(ports));
    this.#select.value = guess?.[0] ?? 'numbers';
    this.#choose(this.#select.value);
  }

  /** Shows what a run gave for this picture. */
  show(outputs: Record<string, Tensor>, picture: Ran['picture']): void {
    this.#ran = { outputs, picture, labels: this.#labels };
    if (this.#view) {
      this.#view.show(this.#ran);
      this.#body.replaceChildren(this.#view.element);
    } else {
      this.#numbers.show(outputs);
      this.#body.replaceChildren(this.#numbers.element);
    }
  }

  clear(hint: string): void {
    this.#ran = undefined;
    this.#body.replaceChildren(el('p', { class: 'note' }, hint));
  }

  #choose(name: string): void {
    const task = TASKS[name];
    this.#view = task?.make();
    this.#labelling.hidden = !task?.labelled;
    if (this.#ran) this.show(this.#ran.outputs, this.#ran.picture);
  }
}
