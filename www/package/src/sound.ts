/**
 * Samples and spectra from sound, as models take them.
 *
 *     const samples = await toSamples(audioBuffer, 16_000);
 *     const recording = await record();
 */
import { describe } from './describe.js';
import { KilimError, load } from './index.js';
import type { LoadOptions, Session, Tensor, TypedArray } from './index.js';
import { made, unread } from './given.js';
import { identity } from './sound/identity.js';
import { resampledAtOnce } from './sound/resample.js';
import { samplesAt } from './sound/samples.js';
import type { Sound } from './sound/samples.js';

export { Recording, record } from './sound/record.js';
export type { Sound } from './sound/samples.js';

/**
 * One channel of samples at this rate: the mean of all channels, resampled as `resample` does it. What is in a file is resampled by the browser.
 *
 *     const samples = await toSamples({ samples: new Float32Array(44_100), rate: 44_100 }, 16_000);
 *
 * @throws KilimError `INVALID_VALUE` for what is no sound and for files that cannot be read, `SHAPE` where channels differ in length, `UNSUPPORTED` for
 * rates below 1,000 or above 768,000 samples a second, and for files where there is no Web Audio.
 */
export async function toSamples(sound: Sound, rate: number): Promise<Float32Array> {
  try {
    return await samplesAt(sound, rate);
  } catch (thrown) {
    throw unread('a sound', thrown);
  }
}

/**
 * Samples at another rate: a sine cardinal under a Kaiser window, as `scipy.signal.resample_poly` has it by default. Silence is before them and behind
 * them, and nothing is shifted.
 *
 *     const samples = resample(new Float32Array(44_100), 44_100, 16_000);
 *
 * @throws KilimError `INVALID_VALUE` for what are no samples, `UNSUPPORTED` for rates below 1,000 or above 768,000 samples a second.
 */
export function resample(samples: Float32Array, from: number, to: number): Float32Array {
  return made('samples', () => {
    if (!(samples instanceof Float32Array)) throw new KilimError('INVALID_VALUE', 'samples are a Float32Array', { got: describe(samples) });
    return resampledAtOnce(samples, from, to);
  });
}

/** What makes log-mel spectra. */
export interface LogMelModel {
  inputs: { samples: Float32Array | { type: 'float32'; dims: readonly number[]; data: TypedArray } };
  outputs: { log_mel: Tensor<'float32'> };
}

/**
 * What makes the log-mel spectrum that a `preprocessor_config.json` as Whisper has it describes: a session from `samples`, `float32`, `[1, samples]` of all
 * that the model hears at once, from −1 to 1, to `log_mel`, `float32`, `[1, bands, frames]`. A model that takes the spectrum itself is better loaded with the
 * option `logMel`, which puts this in front of it.
 *
 *     const spectrum = await loadLogMel(await (await fetch('preprocessor_config.json')).text());
 *     const { log_mel } = await spectrum.run({ samples: new Float32Array(30 * 16_000) });
 *
 * @throws KilimError `INVALID_MODEL` where the file cannot be understood, and what `load` throws.
 */
export function loadLogMel(preprocessor: string, options: Omit<LoadOptions, 'logMel'> = {}): Promise<Session<LogMelModel>> {
  return load<LogMelModel>(identity('input_features', 'log_mel'), { ...options, logMel: preprocessor });
}
