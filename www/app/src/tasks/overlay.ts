import { el } from '../dom.js';
import type { Ran } from './task.js';

/** The longer side of a drawing, in pixels. */
const SIDE = 960;

/** The picture that went in, or a grey field of its shape, with something drawn above it. Places are shares of width and height. */
export function overlay(
  { picture }: Ran,
  label: string,
  drawOn: (context: CanvasRenderingContext2D, width: number, height: number) => void,
): HTMLCanvasElement {
  const [wide, high] = picture ? [picture.picture.width, picture.picture.height] : [SIDE, SIDE];
  const scale = SIDE / Math.max(wide, high, 1);
  const [width, height] = [Math.max(1, Math.round(wide * scale)), Math.max(1, Math.round(high * scale))];
  const canvas = el('canvas', { class: 'overlay', width, height, role: 'img', 'aria-label': label, 'data-testid': 'overlay' });
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  if (picture) context.drawImage(picture.picture, 0, 0, width, height);
  else {
    context.fillStyle = '#888';
    context.fillRect(0, 0, width, height);
  }
  drawOn(context, width, height);
  return canvas;
}

/** A choice that is kept while a model stays. */
export function chooser<T extends string>(
  label: string,
  choices: Record<T, string>,
  testid: string,
  changed: () => void,
): HTMLSelectElement {
  const options = Object.entries<string>(choices).map(([key, text]) => el('option', { value: key }, text));
  return el('select', { 'aria-label': label, 'data-testid': testid, change: changed }, ...options);
}

/** A number from 0 to 1 that is kept while a model stays. */
export function slider(label: string, value: number, changed: () => void): { element: HTMLElement; value(): number } {
  const input = el('input', { type: 'range', min: 0, max: 1, step: 0.01, value, input: changed });
  return { element: el('label', { class: 'slider' }, `${label} `, input), value: () => input.valueAsNumber };
}
