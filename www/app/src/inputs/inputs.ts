import { KilimError } from 'kilim';
import type { Port, Tensor } from 'kilim';
import type { GivenInput } from './given.js';
import { el } from '../dom.js';
import { Field } from './field.js';
import { FreeSizes } from './sizes.js';

/** The form for all inputs of a model. */
export class Inputs {
  readonly element = el('div', { class: 'ports' });
  #fields: Field[];

  /** `onChange` says that the feeds differ; `live` that they should be run at once: what it gives is waited for between pictures of a camera. */
  constructor(ports: readonly Port[], onChange: (live: boolean) => unknown, onError: (error: unknown) => void) {
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

  /** The picture that goes into the model, with the size of its tensor, where one does. */
  picture(): { picture: ImageBitmap; width: number; height: number } | undefined {
    const field = this.#fields.find(({ shown }) => shown);
    const size = field?.given().picture?.size;
    return field?.shown && typeof size === 'object' ? { picture: field.shown, ...size } : undefined;
  }

  /** Whether an input can hold a picture. */
  get takesPicture(): boolean {
    return this.#fields.some(({ picture }) => picture);
  }

  /** Takes a picture into the first input that can hold one; false where there is none. */
  async takePicture(file: File): Promise<boolean> {
    const field = this.#fields.find((candidate) => candidate.picture);
    if (!field) return false;
    await field.takePicture(file);
    return true;
  }

  /**
   * Takes a file's elements into the input of that name.
   * @throws KilimError `INPUT` where the model has none.
   */
  takeTensor(name: string, tensor: Tensor): void {
    const field = this.#fields.find(({ port }) => port.name === name);
    if (!field) throw new KilimError('INPUT', `the model has no input \`${name}\``, { got: name });
    field.takeTensor(tensor);
  }

  /** Shows a sample where digits are drawn. */
  async greet(): Promise<void> {
    for (const field of this.#fields) await field.greet();
  }

  /** Ends what goes on, such as the camera. */
  close(): void {
    for (const field of this.#fields) field.close();
  }

  /** True while an input waits for a drawing, a picture or a sound. */
  get waiting(): boolean {
    return this.#fields.some((field) => field.waiting);
  }
}
