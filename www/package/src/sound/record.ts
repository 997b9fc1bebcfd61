import { KilimError } from '../index.js';
import { samplesAt } from './samples.js';

/**
 * What the microphone hears, until it is stopped. `record` makes these.
 *
 *     const recording: Recording = await record();
 */
export class Recording {
  readonly #recorder: MediaRecorder;
  readonly #pieces: Blob[] = [];
  readonly #ended: Promise<void>;

  constructor(recorder: MediaRecorder) {
    this.#recorder = recorder;
    recorder.addEventListener('dataavailable', ({ data }) => this.#pieces.push(data));
    // Also where the microphone goes away.
    this.#ended = new Promise((resolve) => recorder.addEventListener('stop', () => resolve()));
    recorder.start();
  }

  /**
   * Ends the recording, gives the microphone back, and gives one channel of samples from −1 to 1 at this rate; a file of the browser's own kind
   * without a rate.
   * @throws KilimError `INVALID_VALUE` where nothing was recorded, `UNSUPPORTED` for rates below 1,000 or above 768,000 samples a second.
   */
  stop(): Promise<Blob>;
  stop(rate: number): Promise<Float32Array>;
  async stop(rate?: number): Promise<Blob | Float32Array> {
    this.cancel();
    await this.#ended;
    const file = new Blob(this.#pieces, { type: this.#recorder.mimeType });
    return rate === undefined ? file : samplesAt(file, rate);
  }

  /** Ends the recording and gives the microphone back. */
  cancel(): void {
    if (this.#recorder.state !== 'inactive') this.#recorder.stop();
    for (const track of this.#recorder.stream.getTracks()) track.stop();
  }
}

/**
 * Asks the visitor for the microphone and begins to record.
 *
 *     const recording = await record();
 *     const samples = await recording.stop(16_000);
 *
 * @throws KilimError `UNSUPPORTED` where there are no microphones, as in workers, in Node and in pages without https; `IO` where the visitor, or the page's
 * permissions policy, allows none or there is none.
 */
export async function record(constraints: MediaTrackConstraints = {}): Promise<Recording> {
  const devices = (globalThis as { navigator?: Navigator }).navigator?.mediaDevices;
  if (devices === undefined || typeof MediaRecorder === 'undefined')
    throw new KilimError('UNSUPPORTED', 'there is no microphone here', { hint: 'only pages that are served over https have one' });
  let stream: MediaStream;
  try {
    stream = await devices.getUserMedia({ audio: constraints });
  } catch (error) {
    throw new KilimError('IO', `the microphone cannot be had: ${error}`, {}, error);
  }
  return new Recording(new MediaRecorder(stream));
}
