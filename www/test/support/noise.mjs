/** Bytes of a linear congruential generator: those of `noise` in tools/references/preprocessing.py. */
export function noise(count) {
  const made = new Uint8Array(count);
  for (let i = 0, state = 1; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    made[i] = state >>> 24;
  }
  return made;
}
