import { KilimError, Tensor, fromNumbers } from 'kilim';
import type { DType, Port } from 'kilim';
import { readPicture } from 'kilim/pictures';
import type { GivenInput } from './given.js';
import { el } from '../dom.js';
import { Pad } from './pad.js';
import { rangeOf } from './picture.js';
import { pictureSource } from './picture-source.js';
import type { PictureSource } from './picture-source.js';
import type { FreeSizes } from './sizes.js';
import { SoundSource, takesSound } from './sound-source.js';

type Source = 'draw' | 'picture' | 'sound' | 'random' | 'zeros' | 'number' | 'file';

const LABELS: Record<Source, string> = {
  draw: 'Drawing',
  picture: 'Picture',
  sound: 'Sound',
  random: 'Random',
  zeros: 'Zeros',
  number: 'A number',
  file: 'Of a file',
};

/** The most elements that the form makes. */
const LARGEST = 2 ** 28;

/** The part of the form for one input. */
export class Field {
  readonly element: HTMLElement;
  readonly picture: PictureSource | undefined;
  readonly sound: SoundSource | undefined;
  #type: DType;
  #dims: (() => number)[] = [];
  #source: Source;
  #pad: Pad | undefined;
  /** What fills the tensor. */
  #number = 1;
  /** What a file gave, for comparisons. */
  #given: Tensor | undefined;
  #options = el('div', { class: 'source-options' });
  #select: HTMLSelectElement;
  #onChange: (live: boolean) => unknown;
  #onError: (error: unknown) => void;

  constructor(
    readonly port: Port,
    sizes: FreeSizes,
    onChange: (live: boolean) => unknown,
    onError: (error: unknown) => void,
  ) {
    this.#onChange = onChange;
    this.#onError = onError;
    this.#type = port.type ?? 'float32';
    this.picture = pictureSource(port, this.#type, onChange, onError);
    this.sound = !this.picture && takesSound(port) ? new SoundSource(port, onChange, onError) : undefined;
    const digit = this.picture && port.dims?.filter((d) => d === 28).length === 2 && port.dims.includes(1);
    const choices: Source[] = [
      ...(digit ? (['draw'] as const) : []),
      ...(this.picture ? (['picture'] as const) : []),
      ...(this.sound ? (['sound'] as const) : []),
      'random',
      'zeros',
      'number',
    ];
    // A mask of random zeros may leave nothing to attend to, which gives NaN.
    const mask = /mask/i.test(port.name) && !this.#type.includes('float');
    this.#source = choices.includes('draw') ? 'draw' : mask || port.dims?.length === 0 ? 'number' : 'random';
    this.#select = el(
      'select',
      {
        'aria-label': `Data for ${port.name}`,
        'data-testid': `source-${port.name}`,
        change: () => this.#choose(this.#select.value as Source),
      },
      ...choices.map((choice) => el('option', { value: choice, selected: choice === this.#source }, LABELS[choice])),
    );
    this.element = el(
      'fieldset',
      { class: 'port' },
      el('legend', {}, port.name),
      el('div', { class: 'port-head' }, el('span', { class: 'type' }, this.#type), this.#shape(sizes), this.#select),
      this.#options,
    );
    this.#choose(this.#source, true);
  }

  get waiting(): boolean {
    if (this.#source === 'draw') return this.#pad?.empty ?? true;
    return (this.#source === 'picture' && !this.picture?.picture) || (this.#source === 'sound' && !this.sound?.samples);
  }

  /** The picture that goes in, where one does. */
  get shown(): ImageBitmap | undefined {
    return this.#source === 'picture' ? this.picture?.picture : undefined;
  }

  tensor(): Tensor {
    if (this.#source === 'file' && this.#given) return this.#given;
    const dims = this.#dims.map((dim) => dim());
    const count = dims.reduce((n, d) => n * d, 1);
    if (count > LARGEST)
      throw new KilimError('LIMIT', `the input \`${this.port.name}\` would have ${count} elements`, { input: this.port.name });
    if (this.#source === 'zeros') return new Tensor(this.#type, dims);
    if (this.#source === 'number') return fromNumbers(this.#type, dims, new Float64Array(count).fill(this.#number));
    if (this.#source === 'draw' && this.#pad) return this.#drawing(dims, count, this.#pad.pixels());
    if (this.#source === 'picture' && this.picture) return this.picture.tensor(dims);
    if (this.#source === 'sound' && this.sound) return this.sound.tensor(this.#type, dims);
    return this.#random(dims, count);
  }

  given(): GivenInput {
    const dims = this.#given && this.#source === 'file' ? [...this.#given.dims] : this.#dims.map((dim) => dim());
    const picture = this.#source === 'picture' && this.picture?.options(dims);
    return {
      port: this.port,
      type: this.#type,
      dims: this.#source === 'sound' ? (this.sound?.dims(dims) ?? dims) : dims,
      ...(picture && { picture }),
    };
  }

  async greet(): Promise<void> {
    await this.#pad?.greet().catch(this.#onError);
  }

  async takePicture(file: Blob): Promise<void> {
    const picture = await readPicture(file);
    this.#become('picture');
    this.picture?.take(picture);
  }

  /** Takes the elements of a file, until another source is chosen. */
  takeTensor(tensor: Tensor): void {
    this.#given = tensor;
    if (!this.#select.querySelector('[value=file]')) this.#select.append(el('option', { value: 'file' }, LABELS.file));
    this.#become('file');
  }

  /** Ends what goes on, such as the camera. */
  close(): void {
    this.picture?.stop();
  }

  #become(source: Source): void {
    this.#select.value = source;
    this.#choose(source, true);
  }

  #drawing(dims: number[], count: number, one: Float32Array): Tensor {
    const values = Float64Array.from({ length: count }, (_, i) => one[i % one.length] as number);
    const { scale = 1, mean, std } = rangeOf(this.picture?.normalisation ?? 'unit', 1);
    return fromNumbers(
      this.#type,
      dims,
      values.map((v) => (v * 255 * scale - Number(mean)) / Number(std)),
    );
  }

  /** Numbers from -1 to 1, or whole ones that are valid indices in most models. */
  #random(dims: number[], count: number): Tensor {
    const float = this.#type.includes('float');
    const high = this.#type === 'uint8' && this.picture ? 256 : 2;
    return fromNumbers(
      this.#type,
      dims,
      Float64Array.from({ length: count }, () => (float ? Math.random() * 2 - 1 : Math.floor(Math.random() * high))),
    );
  }

  #shape(sizes: FreeSizes): HTMLElement {
    const { dims, name } = this.port;
    const box = el('div', { class: 'dims', role: 'group', 'aria-label': `Dimensions of ${name}` });
    (dims ?? []).forEach((dim, i) => {
      if (typeof dim === 'number') {
        this.#dims.push(() => dim);
        box.append(el('span', { class: 'dim' }, dim));
        return;
      }
      const spatial = this.picture !== undefined && i > 0;
      const free = sizes.field(dim ?? `${name}/${i}`, dim ?? '?', spatial ? 224 : 1, () => this.#onChange(false));
      this.#dims.push(free.value);
      box.append(free.element);
    });
    if (dims?.length === 0) box.append(el('span', { class: 'dim' }, 'scalar'));
    return box;
  }

  #choose(source: Source, quiet = false): void {
    if (source !== 'picture') this.picture?.stop();
    this.#source = source;
    this.#options.replaceChildren();
    if (source === 'draw') {
      this.#pad ??= new Pad(() => this.#onChange(true));
      this.#options.append(this.#pad.element);
    } else if (source === 'picture' && this.picture) {
      this.#options.append(this.picture.element);
    } else if (source === 'sound' && this.sound) {
      this.#options.append(this.sound.element);
    } else if (source === 'number') {
      this.#options.append(this.#numberField());
    }
    if (!quiet) this.#onChange(!this.waiting);
  }

  #numberField(): HTMLElement {
    const field = el('input', {
      type: 'number',
      step: 'any',
      value: this.#number,
      'aria-label': `Number for ${this.port.name}`,
      'data-testid': `number-${this.port.name}`,
    });
    field.addEventListener('change', () => {
      this.#number = Number.isNaN(field.valueAsNumber) ? 0 : field.valueAsNumber;
      this.#onChange(false);
    });
    return field;
  }
}
