import type { Tensor } from './tensor.js';
import { KilimError, reading } from './errors.js';
import { readJson } from './json.js';
import type { Window } from './protocol.js';
import { toWire } from './tensor.js';
import type { WireTensor } from './tensor.js';

/** Texts of the files that lie beside a model of speech. */
export interface SpeechFiles {
  /** `config.json`: what kind of model it is. It may lack where `ggml` is there. */
  config?: string;
  /** `generation_config.json`: its languages, tasks and special words. */
  generation?: string;
  /** `preprocessor_config.json`: what its encoder hears. */
  preprocessor?: string;
  /** In place of the others the beginning of a Whisper file of whisper.cpp, at least as much as stands in front of its tensors. */
  ggml?: Uint8Array;
}

/** What the files say, as the runtime tells it. */
interface Said {
  rate: number;
  window: number;
  languages: string[];
  tasks: string[];
  times: { firstWord: number; step: number } | null;
  /** What `preprocessor_config.json` and `tokenizer.json` would hold, where a file of whisper.cpp says it. */
  inside?: [string, string];
}

/** What is to be made of a window. */
export interface WindowOptions {
  /** The code of the language, `en` for instance. If nothing is said, the model says which it is. */
  language?: string;
  /** Whether English is wanted, whatever was said. */
  translate?: boolean;
  /** Whether times are wanted. */
  times?: boolean;
  /**
   * How freely words are drawn, one after the other until a text has an end and the model does not doubt it; 0 takes the likeliest words. Whisper's are 0,
   * 0.2 and so on up to 1, if nothing is said, Moonshine's 0 alone.
   */
  temperatures?: number[];
  signal?: AbortSignal;
}

/** A part of what was said in a window. */
export interface HeardPart {
  /** Seconds from the window's begin. */
  start: number;
  end: number;
  /** Numbers of its words (tokens). */
  words: number[];
  /** The mean of the natural logarithms of the probabilities of all words of the window: 0 where the model is sure, doubtful below -1. */
  certainty: number;
  /** Whether the model came to no end of the text, so that more may have been said. */
  cut: boolean;
}

/** What was said in a window. */
export interface HeardWindow {
  /** Parts with their words (tokens), in seconds from the window's begin. None where nobody speaks. */
  parts: HeardPart[];
  /** Samples that are done with: where a sentence goes on behind the window, it is to be heard again from there on. */
  passed: number;
  /** The code of the language, where the model knows several. */
  language: string | undefined;
}

/** The calls of a runtime that a speech decoder makes. */
export interface SpeechCalls {
  hearWindow(source: WireTensor, samples: number, wanted: string, signal?: AbortSignal): Promise<Window>;
  nextWindow(samples: Float32Array, times: boolean): Promise<number>;
}

/**
 * The decoder of a speech model, for those who have a tokenizer of their own; `kilim/speech` is made of it. It is given what the encoder made of a
 * window of sound.
 *
 *     const decoder: SpeechDecoder = await session.speech({ config: '{ "model_type": "whisper" }' });
 *     const heard = await decoder.hear(tensor, 16_000 * 30, { language: 'en' });
 */
export class SpeechDecoder {
  /** Samples a second that the model takes. */
  readonly rate: number;
  /** Samples that it hears at once. */
  readonly window: number;
  /** Codes of the languages that it knows; none where it knows one alone. */
  readonly languages: readonly string[];
  /** Whether it can write in English what was said in another language. */
  readonly translates: boolean;
  /** Whether it can say when something was said. */
  readonly hasTimes: boolean;
  /** What a file of whisper.cpp has of `preprocessor_config.json` and `tokenizer.json`. */
  readonly inside: readonly [string, string] | undefined;
  readonly #calls: SpeechCalls;

  /** `session.speech` makes these. */
  constructor(calls: SpeechCalls, said: string) {
    if (typeof calls?.hearWindow !== 'function') throw new KilimError('INVALID_VALUE', 'speech decoders are made by `session.speech`');
    const { rate, window, languages, tasks, times, inside } = readJson<Said>(said);
    this.rate = rate;
    this.window = window;
    this.languages = languages;
    this.translates = tasks.includes('translate');
    this.hasTimes = times !== null;
    this.inside = inside;
    this.#calls = calls;
  }

  /**
   * What was said in a window of so many samples. `source` is what the encoder made of it, `[1, places, size]`. A text without an end, or that the
   * model doubts, is made again at the next of the `temperatures`.
   * @throws KilimError `INVALID_VALUE` for a language or a task that the model does not know, for times where it has none, and for temperatures that
   * are none; what `session.run` throws.
   */
  async hear(source: Tensor, samples: number, { signal, ...options }: WindowOptions = {}): Promise<HeardWindow> {
    const { language, translate, times, temperatures } = options;
    const wanted = JSON.stringify({ language, translate, times, temperatures });
    const given = reading('what an encoder made', () => toWire('source', source));
    const { json } = await this.#calls.hearWindow(given, samples, wanted, signal);
    const { language: spoken, ...window } = readJson<Omit<HeardWindow, 'language'> & { language: string | null }>(json);
    return { ...window, language: spoken ?? undefined };
  }

  /**
   * How many of the samples that are left of a recording are to be heard next: all of a window where `times` are asked for, else up to the quietest
   * place near its end.
   */
  async nextWindow(samples: Float32Array, times: boolean): Promise<number> {
    if (samples.length <= this.window) return samples.length;
    if (times) return this.window;
    return this.#calls.nextWindow(samples.slice(0, this.window + 1), times);
  }
}
