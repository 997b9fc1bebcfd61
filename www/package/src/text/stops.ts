/** Passes text on as it comes, but for what may be the beginning of a text that ends it. */
export class Stops {
  readonly #stops: readonly string[];
  #held = '';

  /** Empty texts end nothing. */
  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '');
  }

  /** What may be passed on after `text` has come, and which text has ended it. */
  add(text: string): { passed: string; stop: string | undefined } {
    this.#held += text;
    const found = this.#stops.map((stop) => ({ stop, at: this.#held.indexOf(stop) })).filter(({ at }) => at >= 0);
    // The first that ends; of those that begin at one place, the longest says more.
    const [first] = found.sort((a, b) => a.at - b.at || b.stop.length - a.stop.length);
    if (first) return { passed: this.#take(first.at), stop: first.stop };
    const keep = Math.max(0, ...this.#stops.map((stop) => begun(this.#held, stop)));
    return { passed: this.#take(this.#held.length - keep), stop: undefined };
  }

  /** What was held back, when nothing comes any more. */
  rest(): string {
    return this.#take(this.#held.length);
  }

  #take(length: number): string {
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return taken;
  }
}

/** How much at the end of `text` is the beginning of `stop`. */
function begun(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
