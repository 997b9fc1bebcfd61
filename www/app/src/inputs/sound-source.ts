import { KilimError, fromNumbers } from 'kilim';
import type { DType, Port, Tensor } from 'kilim';
import { record, toSamples } from 'kilim/sound';
import type { Recording } from 'kilim/sound';
import { el } from '../dom.js';

/** Fewer samples are no sound. */
const LEAST = 2000;

/** Whether an input may take samples: one channel of many, or of any number under a name that speaks of sound. */
export function takesSound({ dims, type, name }: Port): boolean {
  if (!dims || dims.length === 0 || dims.length > 3 || (type !== null && type !== 'float32' && type !== 'float16')) return false;
  const last = dims.at(-1);
  const single = dims.slice(0, -1).every((dim) => dim === 1 || typeof dim !== 'number');
  const named = /audio|wave|sample|signal|pcm|speech|sound/i.test(name);
  return single && (typeof last === 'number' ? last >= LEAST : named);
}

/** Samples of a file or of the microphone. A fixed number of them is filled up with silence, or cut. */
export class SoundSource {
  readonly element: HTMLElement;
  samples: Float32Array | undefined;
  #rate = el('input', { type: 'number', min: 1000, max: 192_000, step: 1, value: 16_000 });
  #button: HTMLButtonElement;
  #status = el('span', { class: 'note', role: 'status', 'data-testid': 'sound-status' });
  #recording: Recording | undefined;

  constructor(
    readonly port: Port,
    readonly onChange: (live: boolean) => unknown,
    readonly onError: (error: unknown) => void,
  ) {
    const pick = el('input', {
      type: 'file',
      accept: 'audio/*',
      'aria-label': `Sound for ${port.name}`,
      'data-testid': `sound-${port.name}`,
    });
    pick.addEventListener('change', () => {
      const file = pick.files?.[0];
      if (file) void this.#take(() => toSamples(file, this.rate));
    });
    this.#button = el('button', { type: 'button', 'data-testid': 'microphone', click: () => void this.#listen() }, 'Microphone');
    this.element = el(
      'div',
      { class: 'picture-fields' },
      pick,
      el('label', {}, 'Samples a second', this.#rate),
      el('div', { class: 'actions' }, this.#button, this.#status),
    );
  }

  get rate(): number {
    return Math.round(this.#rate.valueAsNumber) || 16_000;
  }

  /** @throws KilimError `INPUT` while there are no samples. */
  tensor(type: DType, dims: readonly number[]): Tensor {
    const { samples, port } = this;
    if (!samples) throw new KilimError('INPUT', `choose a sound for the input \`${port.name}\``, { input: port.name });
    const shape = this.dims(dims);
    const length = shape.at(-1) ?? 1;
    const count = shape.reduce((product, dim) => product * dim, 1);
    return fromNumbers(
      type,
      shape,
      Float64Array.from({ length: count }, (_, i) => samples[i % length] ?? 0),
    );
  }

  /** The dimensions with as many samples as there are, where the model leaves that open. */
  dims(dims: readonly number[]): number[] {
    const free = typeof this.port.dims?.at(-1) !== 'number';
    return free && this.samples ? [...dims.slice(0, -1), this.samples.length] : [...dims];
  }

  async #listen(): Promise<void> {
    const ending = this.#recording;
    try {
      this.#recording = ending ? undefined : await record();
      this.#button.textContent = this.#recording ? 'End of recording' : 'Microphone';
      if (ending) await this.#take(() => ending.stop(this.rate));
    } catch (error) {
      this.onError(error);
    }
  }

  async #take(samples: () => Promise<Float32Array>): Promise<void> {
    try {
      this.samples = await samples();
      this.#status.textContent = `${(this.samples.length / this.rate).toFixed(1)} s`;
      this.onChange(true);
    } catch (error) {
      this.onError(error);
    }
  }
}
