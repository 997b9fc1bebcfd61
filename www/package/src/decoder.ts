import { KilimError, reading } from './errors.js';
import { describe } from './describe.js';
import { readJson } from './json.js';
import type { Spoken } from './protocol.js';

/** How the words (tokens) of a text are chosen. Everything but the seed is applied in the order of the fields. */
export interface Sampling {
  /** Scores of words of the prompt and the text so far are divided by it where they are above zero, multiplied where they are below. 1 changes nothing. */
  repetitionPenalty: number;
  /** Subtracted from a word's score for each time that it stands in the text so far, the prompt left out. */
  frequencyPenalty: number;
  /** Subtracted from the score of every word that stands in the text so far, the prompt left out. */
  presencePenalty: number;
  /** Scores are divided by it. 0 takes the best word always, the first one of several. */
  temperature: number;
  /** Only so many of the best words are drawn from; 0 for all of them. */
  topK: number;
  /** Only the best words are drawn from that together have this probability; 1 for all of them. */
  topP: number;
  /** Only words are drawn from that have this part of the best word's probability; 0 for all of them. */
  minP: number;
  /** Seed of the random numbers: equal seeds give equal words for equal scores, on every machine. */
  seed: number;
}

/** Texts of the files that lie beside a language model. */
export interface DecoderFiles {
  /** `genai_config.json`: names of inputs and outputs, sizes of caches, words that end a text. */
  genai?: string;
  /** `config.json`, which is not read beside a `genai_config.json`. */
  config?: string;
  /** `generation_config.json`, which is read beside a `config.json`. */
  generation?: string;
  /** In place of the others the beginning of a GGUF file, at least as much as stands in front of the data of tensors. */
  gguf?: Uint8Array;
}

/** What the files say, as the runtime tells it. */
interface Said {
  end: number[];
  context: number | null;
  sampling: Sampling;
  /** What `tokenizer.json` and `tokenizer_config.json` would hold, where a GGUF file says it. */
  words?: [string, string];
}

/** The calls of a runtime that a decoder makes. */
export interface DecoderCalls {
  startText(words: Uint32Array, sampling: string): Promise<number>;
  nextWords(signal?: AbortSignal): Promise<Spoken>;
}

/** What `start` was given, which is to be numbers of words. */
function wordsOf(given: ArrayLike<number | bigint>): Uint32Array {
  return reading('the words of a text', () => {
    if (typeof given !== 'object' || given === null || !Number.isSafeInteger(given.length))
      throw new KilimError('INVALID_VALUE', 'a text begins with an array of words', { got: describe(given) });
    if (given.length === 0) throw new KilimError('INVALID_VALUE', 'a text begins with one word at least', { got: 'none' });
    return Uint32Array.from(given as ArrayLike<number>, (word) => {
      const number = Number(word);
      if (!Number.isInteger(number) || number < 0 || number > 0xffffffff)
        throw new KilimError('INVALID_VALUE', 'a word is a whole number, zero or more', { got: describe(word) });
      return number;
    });
  });
}

/**
 * A language model that makes a text word by word, for those who have a tokenizer of their own; `kilim/text` is made of it. Words (tokens) are
 * numbers. Caches stay where they are computed, and the words are chosen there.
 *
 *     const decoder: Decoder = await session.decoder();
 *     await decoder.start([1, 72, 101], { temperature: 0 });
 *     for (let word = await decoder.next(); !decoder.end.includes(word); word = await decoder.next()) console.log(word);
 */
export class Decoder {
  /** The words that end a text. */
  readonly end: readonly number[];
  /** Words that the model can look back on; `undefined` where no file says it. */
  readonly context: number | undefined;
  /** How words are to be chosen, as the files say. */
  readonly sampling: Readonly<Sampling>;
  /** What a GGUF file has of `tokenizer.json` and `tokenizer_config.json`. */
  readonly words: readonly [string, string] | undefined;
  readonly #calls: DecoderCalls;
  #begun = false;
  /** Words that came with one before them. */
  #ahead: number[] = [];
  /** The call before. */
  #before: Promise<unknown> = Promise.resolve();

  /** `session.decoder` makes these. */
  constructor(calls: DecoderCalls, said: string) {
    if (typeof calls?.nextWords !== 'function') throw new KilimError('INVALID_VALUE', 'decoders are made by `session.decoder`');
    const { end, context, sampling, words } = readJson<Said>(said);
    this.end = end;
    this.context = context ?? undefined;
    this.sampling = sampling;
    this.words = words;
    this.#calls = calls;
  }

  /**
   * Begins a text: `words` are the prompt, or a whole conversation. The next call of `next` runs the model on them. What they have in common
   * with the text before stays in the caches and is not computed again. `sampling` goes over what the files say.
   * @returns How many of the words the caches know already.
   * @throws KilimError `INVALID_VALUE` for words and numbers that are none.
   */
  async start(words: ArrayLike<number | bigint>, sampling: Partial<Sampling> = {}): Promise<number> {
    const given = wordsOf(words);
    const chosen = reading('the sampling', () => JSON.stringify({ ...this.sampling, ...sampling }));
    return this.#behind(async () => {
      this.#begun = false;
      this.#ahead = [];
      const kept = await this.#calls.startText(given, chosen);
      this.#begun = true;
      return kept;
    });
  }

  /**
   * The word behind the text so far, which becomes part of it.
   * @throws KilimError `STATE` where no text was begun, or the call before has failed: `start` begins again and keeps what is known;
   * what `session.run` throws.
   */
  async next({ signal }: { signal?: AbortSignal } = {}): Promise<number> {
    return this.#behind(async () => {
      if (!this.#begun) throw new KilimError('STATE', 'no text was begun', { hint: 'call `start` with the words of the text' });
      const known = signal?.aborted ? undefined : this.#ahead.shift();
      if (known !== undefined) return known;
      try {
        const { words } = await this.#calls.nextWords(signal);
        this.#ahead = words.slice(1);
        return words[0] as number;
      } catch (error) {
        // The runtime may have gone on where the page has not waited for it.
        this.#begun = false;
        throw error;
      }
    });
  }

  /** Calls come one behind the other, as words do. */
  #behind<T>(call: () => Promise<T>): Promise<T> {
    const result = this.#before.then(call);
    this.#before = result.catch(() => undefined);
    return result;
  }
}
