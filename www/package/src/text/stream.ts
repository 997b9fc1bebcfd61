import type { Tokenizer } from './tokenizer.js';

/** The text of words that come one after the other: a character of several words comes with the last of them. */
export class Stream {
  readonly #tokenizer: Tokenizer;
  /** The words whose text was given last, and those behind them: what stands before a word may change its text. */
  #words: number[] = [];
  /** How many of them have been given. */
  #shown = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** The text that a further word completes: none where a character is not whole yet. */
  add(word: number): string {
    this.#words.push(word);
    const text = this.rest();
    if (text === '' || text.endsWith('\ufffd')) return '';
    this.#words = this.#words.slice(this.#shown);
    this.#shown = this.#words.length;
    return text;
  }

  /** The text of the words that have not been given. */
  rest(): string {
    const shown = this.#tokenizer.decode(this.#words.slice(0, this.#shown));
    return this.#tokenizer.decode(this.#words).slice(shown.length);
  }
}
