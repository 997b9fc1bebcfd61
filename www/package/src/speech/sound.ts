import { KilimError } from '../index.js';

/**
 * Sound: samples from −1 to 1 at the rate that the model takes, or at another one; what Web Audio has; or a sound file of a kind that the browser plays.
 * Where the rate is another one, or a file is to be read, the page's Web Audio does it; workers and Node have none.
 */
export type Sound = Float32Array | { samples: Float32Array; rate: number } | AudioBuffer | Blob | ArrayBuffer;

/** One channel of samples at this rate. */
export async function samplesOf(sound: Sound, rate: number): Promise<Float32Array> {
  if (sound instanceof Float32Array) return sound;
  if (sound instanceof Blob) return samplesOf(await sound.arrayBuffer(), rate);
  if (sound instanceof ArrayBuffer) return mixed(await decoded(sound, rate));
  if (typeof AudioBuffer !== 'undefined' && sound instanceof AudioBuffer) {
    return sound.sampleRate === rate ? mixed(sound) : resampled(mixed(sound), sound.sampleRate, rate);
  }
  const { samples, rate: own } = (sound ?? {}) as { samples?: unknown; rate?: unknown };
  if (!(samples instanceof Float32Array) || typeof own !== 'number' || !(own > 0))
    throw new KilimError('INVALID_VALUE', 'a sound is samples, an AudioBuffer or a sound file', {
      expected: 'Float32Array, { samples, rate }, AudioBuffer, Blob or ArrayBuffer',
    });
  return own === rate ? samples : resampled(samples, own, rate);
}

/** The mean of all channels. */
function mixed(sound: AudioBuffer): Float32Array {
  const { numberOfChannels: channels, length } = sound;
  if (channels === 1) return sound.getChannelData(0);
  const sum = new Float32Array(length);
  for (let channel = 0; channel < channels; channel++) {
    const samples = sound.getChannelData(channel);
    for (let i = 0; i < length; i++) sum[i] = (sum[i] as number) + (samples[i] as number) / channels;
  }
  return sum;
}

function context(length: number, rate: number): OfflineAudioContext {
  if (typeof OfflineAudioContext === 'undefined')
    throw new KilimError('UNSUPPORTED', 'only pages have Web Audio, which reads and resamples sound', {
      hint: `give samples of ${rate} a second, as a Float32Array`,
    });
  return new OfflineAudioContext(1, Math.max(1, length), rate);
}

/** A file, at this rate. */
async function decoded(file: ArrayBuffer, rate: number): Promise<AudioBuffer> {
  const reader = context(1, rate);
  try {
    // What is decoded is taken away from its owner.
    return await reader.decodeAudioData(file.slice(0));
  } catch (error) {
    throw new KilimError('INVALID_VALUE', `the sound cannot be read: ${error}`, {}, error);
  }
}

async function resampled(samples: Float32Array, from: number, to: number): Promise<Float32Array> {
  if (samples.length === 0) return samples;
  const offline = context(Math.ceil((samples.length * to) / from), to);
  const buffer = offline.createBuffer(1, samples.length, from);
  buffer.getChannelData(0).set(samples);
  const source = offline.createBufferSource();
  source.buffer = buffer;
  source.connect(offline.destination);
  source.start();
  return (await offline.startRendering()).getChannelData(0);
}
