import type { NodeTime } from 'kilim';
import { el, formatTime } from './dom.js';

type Column = 'order' | 'name' | 'op' | 'backend' | 'seconds';
type Row = NodeTime & { order: number };

const COLUMNS: [Column, string][] = [
  ['order', '#'],
  ['name', 'Node'],
  ['op', 'Operator'],
  ['backend', 'Backend'],
  ['seconds', 'Time'],
];
const LIMIT = 2000;

/** The table of a profiled run; a click on a heading sorts by it. */
export class Times {
  readonly element = el('div', { class: 'times' });
  #rows: Row[] = [];
  #column: Column = 'seconds';
  #descending = true;

  clear(): void {
    this.element.replaceChildren(el('p', { class: 'note' }, 'Measure a run to see what each node takes.'));
  }

  show(nodes: NodeTime[]): void {
    this.#rows = nodes.map((node, order) => ({ ...node, order: order + 1 }));
    this.#draw();
  }

  #sort(column: Column): void {
    this.#descending = column === this.#column ? !this.#descending : column === 'seconds';
    this.#column = column;
    this.#draw();
    this.element.querySelector<HTMLElement>(`[data-column="${column}"]`)?.focus();
  }

  #draw(): void {
    const column = this.#column;
    const compare = (a: Row, b: Row) =>
      typeof a[column] === 'number' ? (a[column] as number) - (b[column] as number) : String(a[column]).localeCompare(String(b[column]));
    const rows = [...this.#rows].sort((a, b) => (this.#descending ? -compare(a, b) : compare(a, b)));
    const total = rows.reduce((sum, { seconds }) => sum + seconds, 0);
    const longest = rows.reduce((most, { seconds }) => Math.max(most, seconds), 0);
    const head = COLUMNS.map(([key, label]) =>
      el(
        'th',
        { scope: 'col', 'aria-sort': key === column ? (this.#descending ? 'descending' : 'ascending') : undefined },
        el('button', { type: 'button', 'data-column': key, click: () => this.#sort(key) }, label),
      ),
    );
    const body = rows.slice(0, LIMIT).map((row) => {
      const bar = el('span', { class: 'bar' });
      bar.style.setProperty('--share', String(longest ? row.seconds / longest : 0));
      return el(
        'tr',
        {},
        el('td', {}, row.order),
        el('td', { class: 'name', title: [...row.scope, row.name].join(' / ') }, row.name || '—'),
        el('td', {}, row.op),
        el('td', {}, el('span', { class: `tag ${row.backend}` }, row.backend)),
        el('td', { class: 'time' }, bar, formatTime(row.seconds)),
      );
    });
    const more = rows.length > LIMIT ? `, the first ${LIMIT} of them shown` : '';
    const clock = crossOriginIsolated ? '' : '; the clock of a page that is not cross-origin isolated steps by 0.1 ms';
    this.element.replaceChildren(
      el('p', { class: 'note' }, `${rows.length} nodes${more}, ${formatTime(total)} in all${clock}`),
      el(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Nodes, the longest first' },
        el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body)),
      ),
    );
  }
}
