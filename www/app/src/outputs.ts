import { Tensor } from 'kilim';
import { toImageData } from 'kilim/pictures';
import { el, formatNumber } from './dom.js';
import { range, rank } from './numbers.js';

type View = 'top' | 'picture' | 'raw';

const LABELS: Record<View, string> = { top: 'Top', picture: 'Picture', raw: 'Numbers' };
const RAW_LIMIT = 1000;

/** What the user chose to see of each output, kept while a model stays. */
export class Outputs {
  readonly element = el('div', { class: 'ports' });
  #views = new Map<string, View>();
  #counts = new Map<string, number>();
  #last: Record<string, Tensor> = {};

  show(outputs: Record<string, Tensor>): void {
    this.#last = outputs;
    this.element.replaceChildren(...Object.entries(outputs).map(([name, tensor]) => this.#output(name, tensor)));
  }

  #output(name: string, tensor: Tensor): HTMLElement {
    const possible = views(tensor);
    const view = this.#views.get(name) ?? (possible[0] as View);
    const select = el(
      'select',
      { 'aria-label': `View of ${name}`, 'data-testid': `view-${name}` },
      ...possible.map((key) => el('option', { value: key, selected: key === view }, LABELS[key])),
    );
    select.addEventListener('change', () => {
      this.#views.set(name, select.value as View);
      this.show(this.#last);
    });
    const shape = el('span', { class: 'type' }, `${tensor.type} [${tensor.dims.join(', ')}]`);
    const body = view === 'top' ? this.#top(name, tensor) : view === 'picture' ? picture(tensor) : raw(tensor);
    return el(
      'fieldset',
      { class: 'port' },
      el('legend', {}, name),
      el('div', { class: 'port-head' }, shape, select),
      oddities(tensor),
      body,
    );
  }

  #top(name: string, tensor: Tensor): HTMLElement {
    const values = tensor.toNumbers();
    const few = values.length <= 12;
    const count = few ? values.length : Math.min(this.#counts.get(name) ?? 5, values.length);
    const ranked = rank(values);
    const [low, high] = range(values);
    const likely = low >= 0 && high <= 1.0001;
    const base = Math.min(low, 0);
    const best = Number.isNaN(values[ranked[0] as number]) ? undefined : ranked[0];
    const rows = (few ? Array.from(values.keys()) : ranked.slice(0, count)).map((i) => {
      const value = values[i] as number;
      const share = likely ? value : (value - base) / (high - base || 1);
      const bar = el('span', { class: 'bar' });
      bar.style.setProperty('--share', String(Math.min(Math.max(share || 0, 0), 1)));
      return el(
        'li',
        { class: i === best ? 'best' : undefined, 'data-index': i },
        el('span', { class: 'index' }, i),
        bar,
        el('span', { class: 'value' }, likely && Number.isFinite(value) ? `${(value * 100).toFixed(1)} %` : formatNumber(value)),
      );
    });
    const list = el('ol', { class: 'top', 'data-testid': 'top' }, ...rows);
    const winner = el('p', { class: 'winner', 'data-testid': 'answer', 'data-value': best }, best === undefined ? '–' : String(best));
    if (few) return el('div', { class: 'few' }, winner, list);
    const k = el('input', { type: 'number', min: 1, max: values.length, value: count, 'aria-label': 'How many' });
    k.addEventListener('change', () => {
      this.#counts.set(name, Math.max(1, Math.round(k.valueAsNumber) || 1));
      this.show(this.#last);
    });
    return el('div', {}, el('label', { class: 'count' }, 'Best ', k, ` of ${values.length}`), list);
  }
}

/** The ways to see a tensor, the fitting one first. */
function views(tensor: Tensor): View[] {
  if (tensor.type === 'string') return ['raw'];
  const long = tensor.dims.filter((d) => d > 1).length;
  const all: View[] = ['raw'];
  if (long === 1) all.unshift('top');
  if (pictureOf(tensor)) all.unshift('picture');
  return all;
}

interface Picture {
  layout: 'CHW' | 'HWC';
  dims: [number, number, number];
  width: number;
  height: number;
  channels: number;
}

function pictureOf({ dims }: Tensor): Picture | null {
  const [a = 1, b = 1, c = 1] = dims.length >= 3 ? dims.slice(-3) : [1, ...dims.slice(-2)];
  if (dims.length < 2 || dims.slice(0, -3).some((d) => d !== 1)) return null;
  const planar: Picture = { layout: 'CHW', dims: [a, b, c], height: b, width: c, channels: a };
  const packed: Picture = { layout: 'HWC', dims: [a, b, c], height: a, width: b, channels: c };
  const fits = ({ width, height, channels }: Picture) => (channels === 1 || channels === 3) && width >= 16 && height >= 16;
  return [planar, packed].find(fits) ?? null;
}

/** In words, what an output has that is no finite number. */
function oddities(tensor: Tensor): HTMLElement | null {
  if (tensor.type === 'string') return null;
  const values = tensor.toNumbers();
  const count = (which: (value: number) => boolean) => values.reduce((n, value) => n + Number(which(value)), 0);
  const nan = count(Number.isNaN);
  const infinite = count((value) => Math.abs(value) === Infinity);
  if (nan + infinite === 0) return null;
  const parts = [
    nan && `${nan} of ${values.length} values are NaN, not a number`,
    infinite && `${infinite} of ${values.length} values are infinite`,
  ];
  return el(
    'p',
    { class: 'note', 'data-testid': 'oddities' },
    `${parts.filter(Boolean).join(', and ')}: the model cannot compute with these inputs. A mask of zeros does that, for instance.`,
  );
}

function picture(tensor: Tensor): HTMLElement {
  const found = pictureOf(tensor);
  if (!found) return raw(tensor);
  const { layout, dims, width, height, channels } = found;
  const values = tensor.toNumbers();
  const [low, high] = range(values);
  if (low > high) return raw(tensor);
  // Values that are shades already are shown as they are; others are stretched.
  const shades =
    low >= -0.01 && high <= 1.01 && high > 0.5 ? [0, 1] : low >= -1 && high <= 256 && high > 2 && channels === 3 ? [0, 255] : [low, high];
  const [black, white] = shades as [number, number];
  const between = white - black || 1;
  const shown = { layout, scale: 1 / 255, mean: -black / between, std: 1 / between };
  const image = toImageData(new Tensor('float64', dims, values), shown);
  const canvas = el('canvas', {
    width,
    height,
    class: 'output-picture',
    role: 'img',
    'aria-label': `Output as a picture of ${width} by ${height}`,
  });
  canvas.getContext('2d')?.putImageData(image, 0, 0);
  return el('figure', {}, canvas, el('figcaption', {}, `${formatNumber(black)} is black, ${formatNumber(white)} is white`));
}

function raw(tensor: Tensor): HTMLElement {
  const texts = tensor.type === 'string' ? Array.from(tensor.data as readonly string[], (text) => JSON.stringify(text)) : null;
  const width = tensor.dims.at(-1) ?? 1;
  const lines = [];
  const shown = texts?.slice(0, RAW_LIMIT) ?? Array.from(tensor.toNumbers().subarray(0, RAW_LIMIT), formatNumber);
  for (let i = 0; i < shown.length; i += width) lines.push(shown.slice(i, i + width).join('  '));
  const rest = tensor.dims.reduce((n, d) => n * d, 1) - shown.length;
  return el(
    'div',
    {},
    el('pre', { class: 'raw', tabindex: 0, 'data-testid': 'raw' }, lines.join('\n')),
    rest > 0 && el('p', { class: 'note' }, `and ${rest} more`),
  );
}
