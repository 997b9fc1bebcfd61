import { KilimError } from 'kilim';
import { el } from './dom.js';

/** An error with everything that is known about it, and what became of the page. */
export function failure(error: unknown, note?: string): HTMLElement {
  const after = note && el('p', { class: 'note' }, note);
  if (!(error instanceof KilimError)) {
    return el(
      'div',
      { class: 'failure', 'data-testid': 'error' },
      el('p', {}, error instanceof Error ? error.message : String(error)),
      after,
    );
  }
  const facts = Object.entries({
    Node: error.node,
    Operator: error.op,
    Input: error.input,
    Expected: error.expected,
    Got: error.got,
    'What to do': error.hint,
  });
  const list = el('dl', {});
  for (const [name, value] of facts) {
    if (value) list.append(el('dt', {}, name), el('dd', {}, value));
  }
  return el(
    'div',
    { class: 'failure', 'data-testid': 'error', 'data-code': error.code },
    el('p', {}, el('code', {}, error.code), ' ', error.summary),
    list,
    after,
  );
}
