import { KilimError } from 'kilim';
import type { DType, Port, Tensor } from 'kilim';
import { optionsFor, readPicture } from 'kilim/pictures';
import type { PictureOptions } from 'kilim/pictures';
import { el } from '../dom.js';
import { startCamera } from './camera.js';
import { NORMALISATIONS, guessNormalisation, pictureOptions, pictureTensor } from './picture.js';
import type { Layout, Normalisation } from './picture.js';

/** A picture for an input, of a file or of the camera, and how it becomes a tensor. `undefined` where the input takes none. */
export function pictureSource(
  port: Port,
  type: DType,
  onChange: (live: boolean) => unknown,
  onError: (error: unknown) => void,
): PictureSource | undefined {
  const options = optionsFor(port);
  if (!options) return undefined;
  const layout = options.layout.endsWith('CHW') ? 'NCHW' : 'NHWC';
  return new PictureSource(port, type, layout, guessNormalisation(options), onChange, onError);
}

export class PictureSource {
  readonly element = el('div', { class: 'picture' });
  picture: ImageBitmap | undefined;
  #preview = el('canvas', { class: 'preview', width: 96, height: 96, 'aria-hidden': 'true' });
  #rate = el('span', { class: 'note', role: 'status', 'data-testid': 'camera-rate' });
  #camera = el('button', { type: 'button', 'data-testid': 'camera' }, 'Camera');
  #stopCamera: (() => void) | undefined;

  constructor(
    readonly port: Port,
    readonly type: DType,
    public layout: Layout,
    public normalisation: Normalisation,
    readonly onChange: (live: boolean) => unknown,
    readonly onError: (error: unknown) => void,
  ) {
    const pick = el('input', {
      type: 'file',
      accept: 'image/*',
      'aria-label': `Picture for ${port.name}`,
      'data-testid': `picture-${port.name}`,
    });
    pick.addEventListener('change', () => {
      const file = pick.files?.[0];
      if (file) readPicture(file).then((picture) => this.take(picture), onError);
    });
    this.#camera.addEventListener('click', () => void this.#switchCamera());
    const select = <T extends string>(label: string, value: T, choices: [T, string][], set: (value: T) => void) => {
      const element = el('select', {}, ...choices.map(([key, text]) => el('option', { value: key, selected: key === value }, text)));
      element.addEventListener('change', () => {
        set(element.value as T);
        onChange(this.picture !== undefined);
      });
      return el('label', {}, label, element);
    };
    this.element.append(
      this.#preview,
      el(
        'div',
        { class: 'picture-fields' },
        pick,
        el('div', { class: 'actions' }, this.#camera, this.#rate),
        select(
          'Layout',
          layout,
          [
            ['NCHW', 'channels first (NCHW)'],
            ['NHWC', 'channels last (NHWC)'],
          ],
          (value) => {
            this.layout = value;
          },
        ),
        select(
          'Values',
          normalisation,
          Object.entries(NORMALISATIONS).map(([key, { label }]) => [key as Normalisation, label]),
          (value) => {
            this.normalisation = value;
          },
        ),
      ),
    );
  }

  /** Takes a picture in place of the one before. */
  take(picture: ImageBitmap): void {
    this.stop();
    this.#show(picture);
    this.onChange(true);
  }

  /** Gives the camera back. */
  stop(): void {
    this.#stopCamera?.();
    this.#stopCamera = undefined;
    this.#camera.textContent = 'Camera';
    this.#rate.textContent = '';
  }

  options(dims: readonly number[]): PictureOptions {
    return pictureOptions(this.type, dims, this.layout, this.normalisation);
  }

  /** @throws KilimError `INPUT` while there is no picture. */
  tensor(dims: readonly number[]): Tensor {
    const { picture, port } = this;
    if (!picture) throw new KilimError('INPUT', `choose a picture for the input \`${port.name}\``, { input: port.name });
    return pictureTensor(picture, dims, this.options(dims));
  }

  async #switchCamera(): Promise<void> {
    if (this.#stopCamera) {
      this.stop();
      return;
    }
    try {
      this.#stopCamera = await startCamera(async (frame, rate) => {
        this.#show(frame);
        if (rate > 0) this.#rate.textContent = `${rate.toFixed(1)} frames a second`;
        await this.onChange(true);
        // The field goes away with its model.
        if (!this.element.isConnected) this.stop();
      });
      this.#camera.textContent = 'Stop the camera';
    } catch (error) {
      this.onError(error);
    }
  }

  #show(picture: ImageBitmap): void {
    if (this.picture !== picture) this.picture?.close();
    this.picture = picture;
    const context = this.#preview.getContext('2d');
    const scale = 96 / Math.max(picture.width, picture.height);
    const [width, height] = [picture.width * scale, picture.height * scale];
    context?.clearRect(0, 0, 96, 96);
    context?.drawImage(picture, (96 - width) / 2, (96 - height) / 2, width, height);
  }
}
