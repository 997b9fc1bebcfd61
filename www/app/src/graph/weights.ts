import type { Tensor } from 'kilim';
import { el, formatBytes, formatNumber, svg } from '../dom.js';
import { readTensor } from '../onnx/tensor.js';
import type { StoredTensor } from '../onnx/tensor.js';

const BINS = 40;
const SIZE = { width: 240, height: 44 };
/** Elements that are looked at for a picture of their distribution. */
const LOOKED_AT = 1 << 22;

/** A weight as the model's file has it: its shape, its range, and how its elements are distributed. */
export function weight(stored: StoredTensor): HTMLElement {
  const { name, type, dims, external } = stored;
  const count = dims.reduce((product, dim) => product * dim, 1);
  const head = [el('code', {}, name), ` ${type ?? '?'} [${dims.join(', ')}]`];
  const rest = () => {
    if (external || type === undefined || type === 'string' || count > LOOKED_AT || count === 0) return [];
    try {
      return distribution(readTensor(stored));
    } catch (error) {
      return [el('span', { class: 'note' }, error instanceof Error ? error.message : String(error))];
    }
  };
  return el('li', { class: 'weight' }, ...head, external && el('span', { class: 'note' }, ', in another file'), ...rest());
}

function distribution(tensor: Tensor): Node[] {
  const values = tensor.toNumbers().filter(Number.isFinite);
  if (values.length === 0) return [];
  let [low, high, sum, zeros] = [Infinity, -Infinity, 0, 0];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
    zeros += Number(value === 0);
  }
  const bytes = tensor.type === 'string' ? 0 : tensor.data.byteLength;
  const facts = [
    formatBytes(bytes),
    values.length === 1 ? formatNumber(low) : `${formatNumber(low)} … ${formatNumber(high)}`,
    values.length > 1 && `mean ${formatNumber(sum / values.length)}`,
    zeros > 0 && `${((100 * zeros) / values.length).toFixed(zeros === values.length ? 0 : 1)} % zeros`,
  ];
  const text = facts.filter(Boolean).join(', ');
  return [el('div', { class: 'note' }, text), ...(values.length > 1 && high > low ? [histogram(values, low, high, text)] : [])];
}

function histogram(values: Float64Array, low: number, high: number, label: string): SVGSVGElement {
  const bins = new Array<number>(BINS).fill(0);
  for (const value of values) {
    const bin = Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS));
    bins[bin] = (bins[bin] as number) + 1;
  }
  const most = Math.max(...bins);
  const across = SIZE.width / BINS;
  const bars = bins.map((count, i) => {
    const height = (count / most) * SIZE.height;
    return svg('rect', { x: i * across, y: SIZE.height - height, width: across - 1, height });
  });
  return svg(
    'svg',
    { class: 'histogram', viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: 'img', 'aria-label': `Distribution: ${label}` },
    ...bars,
  );
}
