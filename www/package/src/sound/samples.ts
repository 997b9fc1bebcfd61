import { KilimError } from '../index.js';
import { checkRate, resampled } from './resample.js';

/**
 * Sound: samples from −1 to 1 at the rate that is asked for, or at another one, with a channel in an array of its own where there are several; what Web
 * Audio has; or a sound file of a kind that the browser plays, which only pages read.
 */
export type Sound = Float32Array | { samples: Float32Array | readonly Float32Array[]; rate: number } | AudioBuffer | Blob | ArrayBuffer;

/** One channel of samples at this rate; what throws when it is read may throw here, too. */
export async function samplesAt(sound: Sound, rate: number): Promise<Float32Array> {
  checkRate(rate);
  if (sound instanceof Float32Array) return sound;
  if (sound instanceof Blob) return samplesAt(await sound.arrayBuffer(), rate);
  if (sound instanceof ArrayBuffer) return mixed(channelsOf(await decoded(sound, rate)));
  const { channels, rate: own } = read(sound);
  const one = mixed(channels);
  return own === rate ? one : resampled(one, own, rate);
}

function read(sound: Exclude<Sound, Float32Array | Blob | ArrayBuffer>): { channels: readonly Float32Array[]; rate: number } {
  if (typeof AudioBuffer !== 'undefined' && sound instanceof AudioBuffer) return { channels: channelsOf(sound), rate: sound.sampleRate };
  const { samples, rate } = (sound ?? {}) as { samples?: unknown; rate?: unknown };
  const channels = Array.isArray(samples) && samples.length > 0 ? samples : [samples];
  if (!channels.every((channel) => channel instanceof Float32Array) || typeof rate !== 'number')
    throw new KilimError('INVALID_VALUE', 'a sound is samples, an AudioBuffer or a sound file', {
      expected: 'a Float32Array, { samples, rate }, an AudioBuffer or a file',
    });
  return { channels, rate };
}

const channelsOf = (sound: AudioBuffer): Float32Array[] =>
  Array.from({ length: sound.numberOfChannels }, (_, channel) => sound.getChannelData(channel));

/** The mean of all channels. */
function mixed(channels: readonly Float32Array[]): Float32Array {
  const [first, ...others] = channels as [Float32Array, ...Float32Array[]];
  if (others.length === 0) return first;
  if (others.some(({ length }) => length !== first.length)) throw new KilimError('SHAPE', 'the channels of a sound differ in length');
  return first.map((sample, i) => others.reduce((sum, channel) => sum + (channel[i] as number), sample) / channels.length);
}

/** A file, at this rate. */
async function decoded(file: ArrayBuffer, rate: number): Promise<AudioBuffer> {
  if (typeof OfflineAudioContext === 'undefined')
    throw new KilimError('UNSUPPORTED', 'only pages have Web Audio, which reads sound files', {
      hint: 'give samples and their rate: { samples, rate }',
    });
  try {
    // What is decoded is taken away from its owner.
    return await new OfflineAudioContext(1, 1, rate).decodeAudioData(file.slice(0));
  } catch (error) {
    throw new KilimError('INVALID_VALUE', `the sound cannot be read: ${error}`, {}, error);
  }
}
