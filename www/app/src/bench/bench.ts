import { KilimError } from 'kilim';
import { copyButton } from '../copy.js';
import { el } from '../dom.js';
import { failure } from '../failure.js';
import { contentOf } from '../model.js';
import type { OpenModel, Panel } from '../model.js';
import { fragment } from '../tabs.js';
import { Form } from './form.js';
import { measure } from './measure.js';
import { fragmentOf, sharedOf } from './results.js';
import type { Benchmark } from './results.js';
import { PRECISIONS, settingsOf } from './settings.js';
import { about, table } from './table.js';

/** Measures a model on several backends side by side, and shares what came out. */
export class Bench implements Panel {
  readonly element = el('div', { class: 'panel' });
  #form = new Form();
  #open: OpenModel | undefined;
  #running: AbortController | undefined;
  #start = el('button', { type: 'button', class: 'primary', 'data-testid': 'bench-start', click: () => void this.#measure() }, 'Measure');
  #stop = el('button', { type: 'button', hidden: true, click: () => this.#running?.abort() }, 'Stop');
  #status = el('p', { class: 'note', role: 'status', 'data-testid': 'bench-status' });
  #error = el('div', { role: 'alert' });
  #results = el('div', { 'data-testid': 'bench-results' });
  #received = el('div', {});

  constructor() {
    this.element.append(
      this.#received,
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'bench-title' },
        el('div', { class: 'card-head' }, el('h2', { id: 'bench-title' }, 'Benchmark')),
        this.#form.element,
        el('div', { class: 'actions' }, this.#start, this.#stop, this.#status),
        this.#error,
        this.#results,
      ),
    );
    addEventListener('hashchange', () => this.#receive());
    this.#receive();
  }

  show(open: OpenModel): void {
    this.#running?.abort();
    this.#open = open;
    this.#results.replaceChildren();
    this.#error.replaceChildren();
  }

  /** Takes what a link carries: its settings go into the form, its results stand above, to be read. */
  #receive(): void {
    const { tab, rest } = fragment();
    if (tab !== 'bench' || rest === undefined) return;
    this.#received.replaceChildren();
    try {
      const { plan, benchmark } = sharedOf(rest);
      this.#form.plan = plan;
      if (!benchmark) return;
      this.#received.replaceChildren(
        el(
          'section',
          { class: 'card', 'aria-labelledby': 'received-title', 'data-testid': 'bench-received' },
          el('div', { class: 'card-head' }, el('h2', { id: 'received-title' }, 'Results of the link')),
          about(benchmark),
          table(benchmark),
        ),
      );
    } catch (error) {
      this.#received.replaceChildren(failure(error));
    }
  }

  async #measure(): Promise<void> {
    const open = this.#open;
    if (!open || this.#running) return;
    const { plan } = this.#form;
    const settings = settingsOf(plan);
    const mine = new AbortController();
    this.#running = mine;
    this.#start.disabled = true;
    this.#stop.hidden = false;
    this.#error.replaceChildren();
    const benchmark: Benchmark = {
      model: open.model.label.slice(0, 200),
      date: new Date().toISOString(),
      browser: navigator.userAgent.slice(0, 400),
      cores: navigator.hardwareConcurrency,
      plan,
      results: [],
    };
    try {
      if (settings.length === 0) throw new KilimError('INVALID_VALUE', 'choose a backend, a number of threads and a precision');
      const feeds = open.inputs.feeds();
      const model = { ...open.model, source: await contentOf(open.model, mine.signal) };
      for (const setting of settings) {
        const { backend, threads, precision } = setting;
        const label = `${backend}, ${threads} ${threads === 1 ? 'thread' : 'threads'}, ${PRECISIONS[precision]}`;
        this.#status.textContent = `${label} …`;
        const onRun = (done: number) => {
          this.#status.textContent = `${label}: ${done} of ${plan.warmup + plan.runs} runs`;
        };
        benchmark.results.push(await measure(model, feeds, setting, plan, mine.signal, onRun));
        this.#results.replaceChildren(table(benchmark));
      }
      this.#status.textContent = `${settings.length} ${settings.length === 1 ? 'setting' : 'settings'} measured.`;
    } catch (error) {
      this.#status.textContent = mine.signal.aborted ? 'Stopped.' : '';
      if (!mine.signal.aborted) this.#error.replaceChildren(failure(error));
    } finally {
      this.#running = undefined;
      this.#start.disabled = false;
      this.#stop.hidden = true;
      if (benchmark.results.length > 0 && this.#open === open)
        this.#results.replaceChildren(table(benchmark), about(benchmark), share(benchmark));
    }
  }
}

/** Ways to take a benchmark elsewhere. */
function share(benchmark: Benchmark): HTMLElement {
  const withResults = el('input', { type: 'checkbox', checked: true, 'data-testid': 'bench-with-results' });
  const link = el('input', { type: 'text', readonly: true, 'aria-label': 'Link to this benchmark', 'data-testid': 'bench-link' });
  const write = () => {
    const { plan } = benchmark;
    const carried = fragmentOf(withResults.checked ? { plan, benchmark } : { plan });
    link.value = `${location.origin}${location.pathname}#bench=${carried}`;
  };
  withResults.addEventListener('change', write);
  write();
  return el(
    'div',
    { class: 'share' },
    el('button', { type: 'button', 'data-testid': 'bench-save', click: () => save(benchmark) }, 'Save as JSON'),
    el(
      'div',
      { class: 'field-row' },
      link,
      copyButton('Copy link', () => link.value),
    ),
    el('label', { class: 'check' }, withResults, ' with the results'),
  );
}

function save(benchmark: Benchmark): void {
  const address = URL.createObjectURL(new Blob([`${JSON.stringify(benchmark, null, 2)}\n`], { type: 'application/json' }));
  const name = benchmark.model.replaceAll(/[^\w.-]+/g, '-');
  el('a', { href: address, download: `${name}-benchmark.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
