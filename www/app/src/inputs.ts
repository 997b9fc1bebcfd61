import { KilimError, Tensor, fromNumbers } from 'kilim';
import type { DType, Port } from 'kilim';
import { el } from './dom.js';
import { Pad } from './pad.js';
import { optionsFor, readPicture } from 'kilim/pictures';
import type { GivenInput } from './code/given.js';
import { NORMALISATIONS, guessNormalisation, pictureOptions, pictureTensor, rangeOf } from './picture.js';
import type { Layout, Normalisation } from './picture.js';

type Source = 'draw' | 'picture' | 'random' | 'zeros' | 'number';

const LABELS: Record<Source, string> = { draw: 'Drawing', picture: 'Picture', random: 'Random', zeros: 'Zeros', number: 'A number' };

/** The form for all inputs of a model. */
export class Inputs {
  readonly element = el('div', { class: 'ports' });
  #fields: Field[];

  /** `onChange` says that the feeds differ; `live` that they should be run at once. */
  constructor(ports: readonly Port[], onChange: (live: boolean) => void, onError: (error: unknown) => void) {
    const sizes = new FreeSizes();
    this.#fields = ports.map((port) => new Field(port, sizes, onChange, onError));
    this.element.append(...this.#fields.map((field) => field.element));
    if (ports.length === 0) this.element.append(el('p', { class: 'note' }, 'This model has no inputs.'));
  }

  /** @throws KilimError where an input is not filled in. */
  feeds(): Record<string, Tensor> {
    return Object.fromEntries(this.#fields.map((field) => [field.port.name, field.tensor()]));
  }

  /** What each input is given, without its elements. */
  given(): GivenInput[] {
    return this.#fields.map((field) => field.given());
  }

  /** Takes a picture into the first input that can hold one; false where there is none. */
  async takePicture(file: File): Promise<boolean> {
    const field = this.#fields.find((candidate) => candidate.layout !== null);
    if (!field) return false;
    await field.takePicture(file);
    return true;
  }

  /** Shows a sample where digits are drawn. */
  async greet(): Promise<void> {
    for (const field of this.#fields) await field.greet();
  }

  /** True while nothing has been drawn on the pad that the only input is. */
  get waiting(): boolean {
    return this.#fields.some((field) => field.waiting);
  }
}

/** Sizes of free dimensions: those of one name are one field of the form everywhere. */
class FreeSizes {
  #values = new Map<string, number>();
  #inputs = new Map<string, HTMLInputElement[]>();

  field(key: string, label: string, initial: number, onChange: () => void): { element: HTMLElement; value: () => number } {
    const value = this.#values.get(key) ?? initial;
    this.#values.set(key, value);
    const input = el('input', { type: 'number', min: 1, max: 65536, step: 1, value, 'aria-label': `Size of ${label}` });
    const all = this.#inputs.get(key) ?? [];
    this.#inputs.set(key, [...all, input]);
    input.addEventListener('change', () => {
      const size = Math.max(1, Math.round(input.valueAsNumber) || 1);
      this.#values.set(key, size);
      for (const same of this.#inputs.get(key) ?? []) same.value = String(size);
      onChange();
    });
    return { element: el('label', { class: 'dim free' }, el('span', {}, label), input), value: () => this.#values.get(key) ?? initial };
  }
}

class Field {
  readonly element: HTMLElement;
  readonly layout: Layout | null;
  #type: DType;
  #dims: (() => number)[] = [];
  #source: Source;
  #pad: Pad | undefined;
  #picture: ImageBitmap | undefined;
  /** What fills the tensor. */
  #number = 1;
  #layoutChoice: Layout;
  #normalisation: Normalisation;
  #options = el('div', { class: 'source-options' });
  #select: HTMLSelectElement;
  #onChange: (live: boolean) => void;
  #onError: (error: unknown) => void;

  constructor(
    readonly port: Port,
    sizes: FreeSizes,
    onChange: (live: boolean) => void,
    onError: (error: unknown) => void,
  ) {
    this.#onChange = onChange;
    this.#onError = onError;
    this.#type = port.type ?? 'float32';
    const picture = optionsFor(port);
    this.layout = picture ? (picture.layout.endsWith('CHW') ? 'NCHW' : 'NHWC') : null;
    this.#layoutChoice = this.layout ?? 'NCHW';
    this.#normalisation = picture ? guessNormalisation(picture) : 'bytes';
    const digit = picture?.channels === 'gray' && port.dims?.filter((d) => d === 28).length === 2;
    const choices: Source[] = [
      ...(digit ? (['draw'] as const) : []),
      ...(this.layout ? (['picture'] as const) : []),
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
    return (this.#source === 'draw' && (this.#pad?.empty ?? true)) || (this.#source === 'picture' && !this.#picture);
  }

  tensor(): Tensor {
    const dims = this.#dims.map((dim) => dim());
    const count = dims.reduce((n, d) => n * d, 1);
    if (count > 2 ** 28)
      throw new KilimError('LIMIT', `the input \`${this.port.name}\` would have ${count} elements`, { input: this.port.name });
    if (this.#source === 'zeros') return new Tensor(this.#type, dims);
    if (this.#source === 'number') return fromNumbers(this.#type, dims, new Float64Array(count).fill(this.#number));
    if (this.#source === 'random') return this.#random(dims, count);
    if (this.#source === 'draw' && this.#pad) return this.#drawing(dims, count, this.#pad.pixels());
    if (!this.#picture) throw new KilimError('INPUT', `choose a picture for the input \`${this.port.name}\``, { input: this.port.name });
    return pictureTensor(this.#picture, dims, pictureOptions(this.#type, dims, this.#layoutChoice, this.#normalisation));
  }

  given(): GivenInput {
    const dims = this.#dims.map((dim) => dim());
    const picture = this.#source === 'picture' && pictureOptions(this.#type, dims, this.#layoutChoice, this.#normalisation);
    return { port: this.port, type: this.#type, dims, ...(picture && { picture }) };
  }

  async greet(): Promise<void> {
    await this.#pad?.greet().catch(this.#onError);
  }

  async takePicture(file: Blob): Promise<void> {
    this.#picture = await readPicture(file);
    this.#select.value = 'picture';
    this.#choose('picture');
  }

  #drawing(dims: number[], count: number, one: Float32Array): Tensor {
    const values = Float64Array.from({ length: count }, (_, i) => one[i % one.length] as number);
    const { scale = 1, mean, std } = rangeOf(this.#normalisation, 1);
    return fromNumbers(
      this.#type,
      dims,
      values.map((v) => (v * 255 * scale - Number(mean)) / Number(std)),
    );
  }

  /** Numbers from -1 to 1, or whole ones that are valid indices in most models. */
  #random(dims: number[], count: number): Tensor {
    const float = this.#type.includes('float');
    const high = this.#type === 'uint8' && this.layout ? 256 : 2;
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
      const spatial = this.layout !== null && i > 0;
      const free = sizes.field(dim ?? `${name}/${i}`, dim ?? '?', spatial ? 224 : 1, () => this.#onChange(false));
      this.#dims.push(free.value);
      box.append(free.element);
    });
    if (dims?.length === 0) box.append(el('span', { class: 'dim' }, 'scalar'));
    return box;
  }

  #choose(source: Source, first = false): void {
    this.#source = source;
    this.#options.replaceChildren();
    if (source === 'draw') {
      this.#pad ??= new Pad(() => this.#onChange(true));
      this.#options.append(this.#pad.element);
    } else if (source === 'picture') {
      this.#options.append(this.#pictureOptions());
    } else if (source === 'number') {
      this.#options.append(this.#numberField());
    }
    if (!first) this.#onChange(!this.waiting);
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

  #pictureOptions(): HTMLElement {
    const pick = el('input', {
      type: 'file',
      accept: 'image/*',
      'aria-label': `Picture for ${this.port.name}`,
      'data-testid': `picture-${this.port.name}`,
    });
    pick.addEventListener('change', () => {
      const file = pick.files?.[0];
      if (file) this.takePicture(file).catch(this.#onError);
    });
    const select = <T extends string>(label: string, value: T, choices: [T, string][], set: (value: T) => void) => {
      const element = el('select', {}, ...choices.map(([key, text]) => el('option', { value: key, selected: key === value }, text)));
      element.addEventListener('change', () => {
        set(element.value as T);
        this.#onChange(!this.waiting);
      });
      return el('label', {}, label, element);
    };
    const preview = el('canvas', { class: 'preview', width: 96, height: 96, 'aria-hidden': 'true' });
    if (this.#picture) {
      const scale = 96 / Math.max(this.#picture.width, this.#picture.height);
      const [width, height] = [this.#picture.width * scale, this.#picture.height * scale];
      preview.getContext('2d')?.drawImage(this.#picture, (96 - width) / 2, (96 - height) / 2, width, height);
    }
    return el(
      'div',
      { class: 'picture' },
      preview,
      el(
        'div',
        { class: 'picture-fields' },
        pick,
        select(
          'Layout',
          this.#layoutChoice,
          [
            ['NCHW', 'channels first (NCHW)'],
            ['NHWC', 'channels last (NHWC)'],
          ],
          (v) => {
            this.#layoutChoice = v;
          },
        ),
        select(
          'Values',
          this.#normalisation,
          Object.entries(NORMALISATIONS).map(([key, { label }]) => [key as Normalisation, label]),
          (v) => {
            this.#normalisation = v;
          },
        ),
      ),
    );
  }
}
