import { el } from '../dom.js';
import { MOST, PRECISIONS } from './settings.js';
import type { Plan, Precision } from './settings.js';

/** The backends that this browser may have, and why others cannot be chosen. */
function backends(): { id: string; missing: string | undefined }[] {
  const has = (name: string) => name in navigator;
  return [
    { id: 'cpu', missing: undefined },
    { id: 'wgpu', missing: has('gpu') ? undefined : 'this browser has no WebGPU here' },
    { id: 'webnn', missing: has('ml') ? undefined : 'this browser has no WebNN here' },
  ];
}

/** One, two and as many threads as there are cores, with why there may be no more than one. */
function threads(): { counts: number[]; missing: string | undefined } {
  const counts = [...new Set([1, 2, navigator.hardwareConcurrency])].filter((count) => count <= navigator.hardwareConcurrency);
  const missing = crossOriginIsolated
    ? undefined
    : 'More than one thread needs a page that is cross-origin isolated. This one is served without the headers for it.';
  return { counts, missing };
}

interface Option<T> {
  value: T;
  field: HTMLInputElement;
}

/** The fields that a plan comes from. */
export class Form {
  readonly element: HTMLElement;
  #backends: Option<string>[] = [];
  #threads: Option<number>[] = [];
  #precisions: Option<Precision>[] = [];
  #warmup = number('bench-warmup', 3, 0, MOST.warmup);
  #runs = number('bench-runs', 20, 1, MOST.runs);

  constructor() {
    const box = <T>(list: Option<T>[], value: T, label: string, name: string, missing: string | undefined, checked: boolean) => {
      const field = el('input', { type: 'checkbox', checked, disabled: missing !== undefined, 'data-testid': `bench-${name}` });
      list.push({ value, field });
      return el('label', { class: 'check', title: missing }, field, ` ${label}`);
    };
    const group = (legend: string, boxes: HTMLElement[], notes: (string | undefined)[]) =>
      el(
        'fieldset',
        {},
        el('legend', {}, legend),
        el('div', { class: 'checks' }, ...boxes),
        ...notes.map((note) => note && el('p', { class: 'note' }, note)),
      );
    const offered = backends();
    const { counts, missing } = threads();
    const why = offered.flatMap(({ id, missing }) => (missing ? `${id}: ${missing}` : []));
    this.element = el(
      'div',
      { class: 'bench-form' },
      group(
        'Backends',
        offered.map(({ id, missing }) => box(this.#backends, id, id, `backend-${id}`, missing, missing === undefined && id !== 'webnn')),
        why,
      ),
      group(
        'Threads of the CPU',
        counts.map((count) =>
          box(this.#threads, count, String(count), `threads-${count}`, count > 1 ? missing : undefined, count === 1 || !missing),
        ),
        [missing],
      ),
      group(
        'Precision',
        (Object.keys(PRECISIONS) as Precision[]).map((precision) =>
          box(this.#precisions, precision, PRECISIONS[precision], `precision-${precision}`, undefined, precision === 'file'),
        ),
        [],
      ),
      el(
        'fieldset',
        {},
        el('legend', {}, 'How often'),
        el('label', { class: 'field' }, 'Runs to warm up ', this.#warmup),
        el('label', { class: 'field' }, 'Runs that count ', this.#runs),
      ),
    );
  }

  get plan(): Plan {
    const chosen = <T>(list: Option<T>[]) => list.filter(({ field }) => field.checked && !field.disabled).map(({ value }) => value);
    return {
      backends: chosen(this.#backends),
      threads: chosen(this.#threads),
      precisions: chosen(this.#precisions),
      warmup: numberIn(this.#warmup),
      runs: numberIn(this.#runs),
    };
  }

  /** Fills the fields in as far as this machine has what the plan names. */
  set plan({ backends, threads, precisions, warmup, runs }: Plan) {
    const check = <T>(list: Option<T>[], wanted: T[]) => {
      for (const { value, field } of list) field.checked = !field.disabled && wanted.includes(value);
    };
    check(this.#backends, backends);
    check(this.#threads, threads);
    check(this.#precisions, precisions);
    this.#warmup.value = String(warmup);
    this.#runs.value = String(runs);
  }
}

function number(id: string, value: number, min: number, max: number): HTMLInputElement {
  return el('input', { type: 'number', value, min, max, step: 1, 'data-testid': id });
}

/** What a field says, within its bounds. */
function numberIn({ valueAsNumber, min, max }: HTMLInputElement): number {
  return Math.min(Number(max), Math.max(Number(min), Math.round(valueAsNumber) || Number(min)));
}
