import { load } from 'kilim';
import type { Backend, NodeCheck, Verification } from 'kilim';
import { count, el, formatNumber } from '../dom.js';
import { failure } from '../failure.js';
import { optionsOf } from '../model.js';
import type { OpenModel } from '../model.js';

/** Rows of the table. */
const SHOWN = 200;

/** Compares every node of a model on a backend with the CPU. */
export class NodeComparison {
  readonly element: HTMLElement;
  #open: OpenModel | undefined;
  #backend: HTMLSelectElement;
  #tolerance = el('input', { type: 'number', min: 0, step: 'any', value: 0.001, 'data-testid': 'verify-tolerance' });
  #start = el('button', { type: 'button', 'data-testid': 'verify', click: () => void this.#verify() }, 'Compare nodes');
  #status = el('p', { class: 'note', role: 'status' });
  #result = el('div', { 'data-testid': 'verify-result' });

  constructor() {
    const backends = [...('gpu' in navigator ? ['wgpu'] : []), ...('ml' in navigator ? ['webnn'] : []), 'cpu'];
    this.#backend = el('select', { 'data-testid': 'verify-backend' }, ...backends.map((id) => el('option', {}, id)));
    this.element = el(
      'section',
      { class: 'card', 'aria-labelledby': 'nodes-title' },
      el('div', { class: 'card-head' }, el('h2', { id: 'nodes-title' }, 'Node by node')),
      el('p', { class: 'note' }, 'Every node runs on this backend and on the CPU, with the same inputs: those of the tab “Run”.'),
      el(
        'div',
        { class: 'actions' },
        el('label', {}, 'Backend ', this.#backend),
        el('label', {}, 'Tolerance ', this.#tolerance),
        this.#start,
        this.#status,
      ),
      this.#result,
    );
  }

  show(open: OpenModel): void {
    this.#open = open;
    this.#result.replaceChildren();
    this.#status.textContent = '';
  }

  async #verify(): Promise<void> {
    const open = this.#open;
    if (!open) return;
    const { model, choice, inputs } = open;
    this.#start.disabled = true;
    this.#status.textContent = 'running …';
    this.#result.replaceChildren();
    const candidate: Backend = this.#backend.value;
    try {
      const feeds = inputs.feeds();
      const { strict: _, ...options } = optionsOf(choice);
      const backends = candidate === 'cpu' ? ['cpu'] : [candidate, 'cpu'];
      const session = await load(model.source, { ...options, backends, keepWeights: true, externalData: model.externalData });
      try {
        const verification = await session.verify(feeds, { candidate, reference: 'cpu', tolerance: this.#tolerance.valueAsNumber || 0 });
        if (this.#open === open) this.#draw(verification);
      } finally {
        session.close();
      }
    } catch (error) {
      if (this.#open === open) this.#result.replaceChildren(failure(error));
      this.#status.textContent = '';
    } finally {
      this.#start.disabled = false;
    }
  }

  #draw({ first, nodes, candidate, reference }: Verification): void {
    const number = (agreement: NodeCheck['agreement']) => nodes.filter((node) => node.agreement === agreement).length;
    const skipped = number('skipped');
    this.#status.textContent = [
      `${count(number('same'), 'node')} of ${candidate} agree with ${reference}`,
      `${number('differs')} differ`,
      skipped && `${skipped} were not compared`,
      first && `the first is ${first.name || first.op}`,
    ]
      .filter(Boolean)
      .join(', ');
    const worst = [...nodes].sort(
      (a, b) => Number(b.agreement === 'differs') - Number(a.agreement === 'differs') || (b.error ?? -1) - (a.error ?? -1),
    );
    const rows = worst
      .slice(0, SHOWN)
      .map(({ name, op, scope, agreement, error, message }) =>
        el(
          'tr',
          { 'data-agreement': agreement },
          el('td', { class: 'name', title: [...scope, name].join(' / ') }, name || '—'),
          el('td', {}, op),
          el('td', { class: agreement === 'differs' ? 'refusal' : undefined }, agreement),
          el('td', { class: 'number' }, error === null ? '—' : formatNumber(error)),
          el('td', {}, message ?? ''),
        ),
      );
    const head = ['Node', 'Operator', 'Result', 'Difference', ''].map((label) =>
      label ? el('th', { scope: 'col' }, label) : el('td', {}),
    );
    this.#result.replaceChildren(
      el(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Nodes, the most different first' },
        el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows)),
      ),
    );
  }
}
