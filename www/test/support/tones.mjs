/** Samples a second. */
export const RATE = 16_000;

/**
 * The sound of `tools/builders/speech.py`: digits that are tones, and a higher tone beside each that tells the language. Phrases are
 * `[start, end, digits]` in seconds.
 */
export function sound({ phrases, voice, seconds }) {
  const samples = new Float32Array(Math.round(seconds * RATE));
  for (const [start, end, digits] of phrases) {
    const each = (end - start) / digits.length;
    for (const [place, digit] of digits.entries()) {
      const first = Math.round((start + place * each) * RATE);
      const last = Math.min(Math.round((start + (place + 0.75) * each) * RATE), samples.length);
      const pitch = 2 * Math.PI * 300 * 1.2 ** digit;
      for (let i = first; i < last; i++) {
        const t = (i - first) / RATE;
        const loudness = Math.min(1, Math.min(t, (last - 1 - i) / RATE) / 0.01);
        samples[i] += 0.2 * loudness * (Math.sin(pitch * t) + 0.5 * Math.sin(voice * pitch * t));
      }
    }
  }
  return samples;
}

/** A recording of several windows of two seconds, and what is said in it. */
export const RECORDING = {
  voice: 3,
  seconds: 6.3,
  phrases: [
    [0.3, 0.9, [1, 2, 3]],
    [1.3, 1.7, [4, 5]],
    // Goes on behind the first window.
    [1.95, 2.75, [6, 7, 8, 9]],
    [3.2, 3.6, [0, 1]],
    [4.1, 4.7, [2, 4, 6]],
    [5.2, 5.6, [8, 0]],
  ],
};
export const SAID = '123 45 6789 01 246 80';
