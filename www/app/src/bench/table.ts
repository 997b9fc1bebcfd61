import { el, formatTime, svg } from '../dom.js';
import type { Benchmark, Result, Spread } from './results.js';
import { PRECISIONS } from './settings.js';

const BAR = { width: 160, height: 18 };

/** The quartiles on a scale from nothing to `most`: a box around the median, a line from the least to the most. */
function bar({ least, lower, median, upper, most }: Spread, end: number, best: boolean): SVGSVGElement {
  const x = (seconds: number) => (Math.min(seconds, end) / end) * (BAR.width - 2) + 1;
  const middle = BAR.height / 2;
  return svg(
    'svg',
    { class: best ? 'spread best' : 'spread', width: BAR.width, height: BAR.height, 'aria-hidden': 'true' },
    svg('path', { class: 'track', d: `M0 ${middle}H${BAR.width}` }),
    svg('path', { class: 'whisker', d: `M${x(least)} ${middle}H${x(most)}` }),
    svg('rect', { x: x(lower), y: 3, width: Math.max(2, x(upper) - x(lower)), height: BAR.height - 6, rx: 2 }),
    svg('path', { class: 'median', d: `M${x(median)} 1V${BAR.height - 1}` }),
  );
}

/** Where the scale ends: single runs that took very long would squeeze all others. */
function endOf(spreads: Spread[]): number {
  return Math.max(1e-9, ...spreads.map(({ upper, most }) => Math.min(most, upper * 1.6)));
}

/** The heads of the columns, and whether numbers are below. */
const COLUMNS: [string, boolean][] = [
  ['Backend', false],
  ['Threads', true],
  ['Precision', false],
  ['Median', true],
  ['Spread', false],
  ['Quartiles', true],
  ['First run', true],
  ['Load', true],
];

/** The results side by side. */
export function table({ results }: Pick<Benchmark, 'results'>): HTMLElement {
  const spreads = results.flatMap(({ spread }) => spread ?? []);
  const end = endOf(spreads);
  const fastest = Math.min(...spreads.map(({ median }) => median));
  const row = ({ setting, device, half, load, first, spread, failure }: Result) => {
    const time = (seconds: number | undefined) => (seconds === undefined ? '—' : formatTime(seconds));
    const best = spreads.length > 1 && spread?.median === fastest;
    const times = spread
      ? [
          el('td', { class: 'number', 'data-testid': 'median' }, el(best ? 'strong' : 'span', {}, formatTime(spread.median))),
          el('td', {}, bar(spread, end, best)),
          el('td', { class: 'number' }, `${formatTime(spread.lower)} – ${formatTime(spread.upper)}`),
        ]
      : [el('td', { colspan: 3, class: 'refusal' }, failure ?? 'not measured')];
    return el(
      'tr',
      { class: best ? 'best' : undefined, 'data-backend': setting.backend },
      el('th', { scope: 'row', title: device }, el('span', { class: `tag ${setting.backend}` }, setting.backend)),
      el('td', { class: 'number' }, setting.threads),
      el('td', {}, PRECISIONS[setting.precision], half === undefined ? '' : ` (${half} nodes)`),
      ...times,
      el('td', { class: 'number' }, time(first)),
      el('td', { class: 'number' }, time(load)),
    );
  };
  const head = COLUMNS.map(([label, isNumber]) => el('th', { scope: 'col', class: isNumber && 'number' }, label));
  return el(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Results side by side' },
    el('table', { class: 'bench-table' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...results.map(row))),
  );
}

/** What was measured where, in a sentence, with the names of the devices. */
export function about({ model, date, browser, cores, plan, results }: Benchmark): HTMLElement {
  const devices = new Set(results.flatMap(({ setting, device }) => (device ? `${setting.backend}: ${device}` : [])));
  return el(
    'p',
    { class: 'note' },
    [
      `${model}, ${date.slice(0, 16).replace('T', ' ')}, median of ${plan.runs} runs after ${plan.warmup} to warm up`,
      ...devices,
      `${cores} cores`,
      browser,
    ].join('; '),
  );
}
