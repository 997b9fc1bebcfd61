import { centreDigit } from './digit.js';
import { el } from '../dom.js';

const SIZE = 280;
const BRUSH = 22;

const samples = import.meta.glob<string>('../../../../assets/digit-*.png', { query: '?url', import: 'default', eager: true });

/** A place to draw a digit on, with samples for those who cannot or would rather not. */
export class Pad {
  readonly element: HTMLElement;
  #canvas = el('canvas', { width: SIZE, height: SIZE, 'data-testid': 'pad', 'aria-label': 'Draw a digit here', role: 'img' });
  #seen = el('canvas', { width: 28, height: 28, class: 'seen', 'aria-hidden': 'true' });
  #context: CanvasRenderingContext2D;
  #onChange: () => void;
  #last: { x: number; y: number } | null = null;
  /** The sample that the first stroke wipes away. */
  #sample = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.#context = context(this.#canvas);
    this.#clear();
    const buttons = Object.entries(samples).map(([file, url]) => {
      const digit = /digit-(\d)/.exec(file)?.[1] ?? '?';
      return el(
        'button',
        {
          type: 'button',
          class: 'sample',
          'aria-label': `Sample of a ${digit}`,
          'data-testid': `sample-${digit}`,
          click: () => void this.show(url),
        },
        el('img', { src: url, alt: '', width: 28, height: 28 }),
      );
    });
    this.element = el(
      'div',
      { class: 'pad' },
      el('div', { class: 'pad-canvas' }, this.#canvas, el('span', { class: 'pad-hint' }, 'Draw a digit')),
      el(
        'div',
        { class: 'pad-side' },
        el('figure', {}, this.#seen, el('figcaption', {}, 'What the model sees')),
        el('div', { class: 'samples', role: 'group', 'aria-label': 'Samples' }, ...buttons),
        el('button', { type: 'button', 'data-testid': 'clear', click: () => this.#erase() }, 'Clear'),
      ),
    );
    this.#canvas.addEventListener('pointerdown', (event) => this.#begin(event));
    this.#canvas.addEventListener('pointermove', (event) => this.#move(event));
    for (const end of ['pointerup', 'pointercancel'] as const)
      this.#canvas.addEventListener(end, () => {
        this.#last = null;
      });
  }

  /** The drawing as the model wants it; nothing drawn is an empty picture. */
  pixels(): Float32Array {
    const { data } = this.#context.getImageData(0, 0, SIZE, SIZE);
    const values = Float32Array.from({ length: SIZE * SIZE }, (_, i) => (data[i * 4] as number) / 255);
    const digit = centreDigit({ width: SIZE, height: SIZE, values }) ?? new Float32Array(28 * 28);
    const seen = context(this.#seen);
    const picture = seen.createImageData(28, 28);
    digit.forEach((value, i) => picture.data.set([value * 255, value * 255, value * 255, 255], i * 4));
    seen.putImageData(picture, 0, 0);
    return digit;
  }

  get empty(): boolean {
    return !this.element.classList.contains('drawn');
  }

  /** Puts the sample of a 3 onto the pad, unless something has been drawn by then. */
  async greet(): Promise<void> {
    const url = Object.entries(samples).find(([file]) => file.includes('digit-3'))?.[1];
    if (url) await this.show(url, () => this.empty);
  }

  /** Puts a picture of a digit, white on black, onto the pad, if that is still wanted once it is read. */
  async show(url: string, wanted = () => true): Promise<void> {
    const image = new Image();
    image.src = url;
    await image.decode();
    if (!wanted()) return;
    this.#context.drawImage(image, 0, 0, SIZE, SIZE);
    this.#sample = true;
    this.element.classList.add('drawn');
    this.#onChange();
  }

  #clear(): void {
    this.#sample = false;
    this.#context.fillStyle = '#000';
    this.#context.fillRect(0, 0, SIZE, SIZE);
    this.element?.classList.remove('drawn');
  }

  #erase(): void {
    this.#clear();
    this.#onChange();
  }

  #begin(event: PointerEvent): void {
    this.#canvas.setPointerCapture(event.pointerId);
    if (this.#sample) this.#clear();
    this.#last = this.#position(event);
    this.#stroke(this.#last);
  }

  #move(event: PointerEvent): void {
    if (this.#last) this.#stroke(this.#position(event));
  }

  #position(event: PointerEvent): { x: number; y: number } {
    const box = this.#canvas.getBoundingClientRect();
    return { x: ((event.clientX - box.left) * SIZE) / box.width, y: ((event.clientY - box.top) * SIZE) / box.height };
  }

  #stroke(to: { x: number; y: number }): void {
    const pen = this.#context;
    pen.strokeStyle = '#fff';
    pen.lineWidth = BRUSH;
    pen.lineCap = pen.lineJoin = 'round';
    pen.beginPath();
    pen.moveTo(this.#last?.x ?? to.x, this.#last?.y ?? to.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    this.#last = to;
    this.element.classList.add('drawn');
    this.#onChange();
  }
}

function context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const found = canvas.getContext('2d', { willReadFrequently: true });
  if (!found) throw new Error('this browser has no 2D canvas');
  return found;
}
