/**
 * Text from speech.
 *
 *     const model = await loadSpeech('/models/whisper-base/');
 *     const { text } = await model.transcribe(recording, { onPart: ({ text }) => page.append(text) });
 */
import { KilimError, Tensor, load } from './index.js';
import type { LoadOptions, ModelSource, Progress, Session, SpeechDecoder } from './index.js';
import { samplesAt } from './sound/samples.js';
import type { Sound } from './sound/samples.js';
import { openFolder, parse, readText, weightsOf } from './text/folder.js';
import type { Folder, FolderSource } from './text/folder.js';
import { Stream } from './text/stream.js';
import type { TokenizerSettings } from './text/template.js';
import { openTokenizer } from './text/tokenizer.js';
import { begun, fetchedOnce, wholeOf } from './text/whole.js';
import type { Tokenizer } from './text/tokenizer.js';
import { closedByBlocks } from './disposable.js';
import type { Closes } from './disposable.js';
import { GGML_FILE } from './whole-names.js';

export type { Sound } from './sound/samples.js';
export type { FolderSource } from './text/folder.js';
export type { Tokenizer } from './text/tokenizer.js';

/** Options of `loadSpeech`: those of `load`, and what concerns the folder. */
export interface LoadSpeechOptions extends Omit<LoadOptions, 'externalData' | 'logMel' | 'lastOnly' | 'outputs'> {
  /** How names of the models end, where there are several: `q4` for `encoder_model_q4.onnx`. */
  kind?: string;
  /** A tokenizer in place of the folder's. */
  tokenizer?: Tokenizer;
}

/** Options of one transcript. */
export interface TranscribeOptions {
  /** The code of the language that is spoken, `en` for instance. If nothing is said, the model finds out. */
  language?: string;
  /** Writes English, whatever was spoken. */
  translate?: boolean;
  /** Asks when each part was said. A recording that is longer than what the model hears at once is always asked that. */
  times?: boolean;
  /** How freely words are drawn, one after the other until a text has an end and the model does not doubt it: as in `WindowOptions`. */
  temperatures?: number[];
  /** Told of the parts as they come, and of the seconds of the recording that are done. */
  onPart?: (part: Part, seconds: number) => void;
  signal?: AbortSignal;
}

/** A part of what was said. */
export interface Part {
  /** Seconds from the begin of the recording. */
  start: number;
  end: number;
  text: string;
  /** Numbers of its words (tokens). */
  words: number[];
  /** The mean of the natural logarithms of the probabilities of all words of its window: 0 where the model is sure, doubtful below -1. */
  certainty: number;
  /** Whether the model came to no end of the text, so that more may have been said. */
  cut: boolean;
}

/** What was said. */
export interface Transcript {
  text: string;
  parts: Part[];
  /** The code of the language, where the model knows several. */
  language: string | undefined;
  /** Seconds of sound. */
  soundSeconds: number;
  /** Seconds that the work took. */
  seconds: number;
}

/**
 * Loads a Whisper or Moonshine model from a folder as Optimum and transformers.js lay it out: `encoder_model.onnx` and `decoder_model_merged.onnx` in it
 * or in `onnx/`, with `config.json`, `generation_config.json`, `preprocessor_config.json` and `tokenizer.json`. Or a Whisper file of whisper.cpp,
 * `ggml-NAME.bin`, which has all of it.
 *
 *     const model = await loadSpeech('/models/whisper-tiny/', { backends: ['cpu'] });
 *
 * @throws KilimError what `load` throws; `IO` where a file is missing, `INVALID_MODEL` where one cannot be understood, `UNSUPPORTED` for other models.
 */
export async function loadSpeech(source: FolderSource, options: LoadSpeechOptions = {}): Promise<SpeechModel> {
  const { kind, tokenizer: given, onProgress, ...rest } = options;
  const { signal } = rest;
  const folder = await openFolder(source, options);
  const whole = await wholeOf(source, folder, { kind: GGML_FILE, signal });
  if (whole !== undefined) return loadGgml(whole, options);
  const read = (path: string) => readText(folder, path, signal);
  const needed = async (path: string): Promise<string> => {
    const text = await read(path);
    if (text === undefined) throw missing(path);
    return text;
  };
  const [config, generation, preprocessor, tokens, settings, ...paths] = await Promise.all([
    needed('config.json'),
    read('generation_config.json'),
    preprocessorOf(read),
    given ? undefined : needed('tokenizer.json'),
    read('tokenizer_config.json'),
    modelOf(folder, 'encoder_model', kind, signal),
    modelOf(folder, 'decoder_model_merged', kind, signal),
  ]);
  const tokenizer =
    given ?? openTokenizer(tokens as string, settings === undefined ? {} : parse<TokenizerSettings>('tokenizer_config.json', settings));
  const whisper = parse<{ model_type?: string }>('config.json', config).model_type === 'whisper';
  const told = progressOf(onProgress, paths.length);
  const opening = paths.map(async ([path, model], i) => {
    const own: LoadOptions = { ...rest, externalData: await weightsOf(folder, path, signal), onProgress: (progress) => told(i, progress) };
    if (i === 0 && whisper) own.logMel = preprocessor ?? '{}';
    // Nothing reads the scores behind the words of a prompt.
    if (i === 1) own.lastOnly = { logits: 1 };
    return load(model, own);
  });
  const opened = await Promise.allSettled(opening);
  const sessions = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  try {
    for (const result of opened) if (result.status === 'rejected') throw result.reason;
    const [encoder, decoding] = sessions as [Session, Session];
    const files = { config, ...(generation !== undefined && { generation }), ...(preprocessor !== undefined && { preprocessor }) };
    return new SpeechModel(encoder, decoding, await decoding.speech(files), tokenizer);
  } catch (error) {
    for (const session of sessions) session.close();
    throw error;
  }
}

/** The outputs of the two halves of a file of whisper.cpp. */
const HALVES = { encoder: ['last_hidden_state'], decoder: ['logits', 'present.*'] };

/** The model of a file of whisper.cpp. The decoder's session says what the encoder hears. */
async function loadGgml(file: ModelSource, options: LoadSpeechOptions): Promise<SpeechModel> {
  const { kind: _, tokenizer: given, onProgress, ...rest } = options;
  const told = progressOf(onProgress, 2);
  const fetched = await fetchedOnce(file, rest, (loaded, total) => {
    told(0, { phase: 'download', loaded: 0, total: 0 });
    told(1, { phase: 'download', loaded, total });
  });
  const { begin, model } = await begun(fetched ?? file, rest.signal);
  const opened: Session[] = [];
  const half = async (i: number, own: LoadOptions): Promise<Session> => {
    const tell = (progress: Progress): void => {
      if (!fetched || progress.phase === 'prepare') told(i, progress);
    };
    const session = await load(model, { ...rest, ...own, onProgress: tell });
    opened.push(session);
    return session;
  };
  try {
    const decoding = await half(1, { outputs: HALVES.decoder, lastOnly: { logits: 1 } });
    const decoder = await decoding.speech({ ggml: begin });
    const [logMel, tokens] = decoder.inside ?? ['{}', '{}'];
    const encoder = await half(0, { outputs: HALVES.encoder, logMel });
    return new SpeechModel(encoder, decoding, decoder, given ?? openTokenizer(tokens, {}));
  } catch (error) {
    for (const session of opened) session.close();
    throw error;
  }
}

/** Newer versions of transformers keep it in another file. */
async function preprocessorOf(read: (path: string) => Promise<string | undefined>): Promise<string | undefined> {
  const text = await read('preprocessor_config.json');
  if (text !== undefined) return text;
  const processor = await read('processor_config.json');
  const extractor = processor && parse<{ feature_extractor?: object }>('processor_config.json', processor).feature_extractor;
  return extractor && JSON.stringify(extractor);
}

async function modelOf(folder: Folder, name: string, kind: string | undefined, signal?: AbortSignal): Promise<[string, ModelSource]> {
  const file = kind === undefined ? `${name}.onnx` : `${name}_${kind}.onnx`;
  for (const path of [`onnx/${file}`, file]) {
    const source = await folder.find(path, signal);
    if (source !== undefined) return [path, source];
  }
  throw missing(file);
}

function missing(path: string): KilimError {
  return new KilimError('IO', `the folder has no file \`${path}\``, {
    hint: 'a folder of speech has an encoder and a merged decoder, as Optimum exports them',
  });
}

/** Tells of several loads as if they were one: the phase of the last one, and the bytes of all. */
function progressOf(onProgress: LoadOptions['onProgress'], count: number): (load: number, progress: Progress) => void {
  const PHASES = ['runtime', 'download', 'prepare'] as const;
  const loads: Progress[] = Array.from({ length: count }, () => ({ phase: 'runtime', loaded: 0, total: 1 }));
  return (load, progress) => {
    loads[load] = progress;
    const phase = PHASES[Math.min(...loads.map((of) => PHASES.indexOf(of.phase)))] ?? 'runtime';
    const now = loads.filter((of) => of.phase === phase);
    const total = now.reduce<number | undefined>(
      (sum, of) => (sum === undefined || of.total === undefined ? undefined : sum + of.total),
      0,
    );
    onProgress?.({ phase, loaded: now.reduce((sum, of) => sum + of.loaded, 0), total });
  };
}

/**
 * A model of speech with its tokenizer. It makes one transcript at a time.
 *
 *     using model = await loadSpeech('/models/whisper-tiny/');
 *     const { text } = await model.transcribe(pixels);
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface declares what is set on the prototype where the engine has the symbols.
export class SpeechModel {
  readonly encoder: Session;
  readonly decoding: Session;
  readonly decoder: SpeechDecoder;
  readonly tokenizer: Tokenizer;
  #busy = false;

  /** `loadSpeech` makes these. */
  constructor(encoder: Session, decoding: Session, decoder: SpeechDecoder, tokenizer: Tokenizer) {
    this.encoder = encoder;
    this.decoding = decoding;
    this.decoder = decoder;
    this.tokenizer = tokenizer;
  }

  /** Codes of the languages that it knows; none where it knows one alone. */
  get languages(): readonly string[] {
    return this.decoder.languages;
  }

  /**
   * Writes what is said in a recording of any length.
   * @throws KilimError `INVALID_VALUE` for options that are none, for sound that cannot be read, and for a language, a task or times that the model does not know; `STATE`
   * while another transcript is made; `ABORTED`; what `session.run` throws.
   */
  async transcribe(sound: Sound, options: TranscribeOptions = {}): Promise<Transcript> {
    const { onPart, signal, language, translate, times, temperatures } = readOptions(options);
    if (this.#busy) throw new KilimError('STATE', 'the model makes another transcript');
    this.#busy = true;
    try {
      const { decoder } = this;
      const samples = await samplesAt(sound, decoder.rate);
      const began = performance.now();
      const wanted = {
        translate,
        times: times || (samples.length > decoder.window && decoder.hasTimes),
        ...(temperatures && { temperatures }),
        ...(signal && { signal }),
      };
      const parts: Part[] = [];
      let spoken = language;
      for (let at = 0; at < samples.length; ) {
        const left = samples.subarray(at);
        const window = left.subarray(0, await decoder.nextWindow(left, wanted.times));
        const made = await this.#encode(window, signal);
        const heard = await decoder.hear(made, window.length, { ...wanted, ...(spoken !== undefined && { language: spoken }) });
        spoken = heard.language;
        const start = at / decoder.rate;
        at += heard.passed;
        for (const { words, ...part } of heard.parts) {
          const told: Part = { ...part, start: start + part.start, end: start + part.end, text: this.#text(words), words };
          parts.push(told);
          onPart?.(told, at / decoder.rate);
        }
      }
      return {
        text: parts
          .map(({ text }) => text.trim())
          .filter(Boolean)
          .join(' '),
        parts,
        language: spoken,
        soundSeconds: samples.length / decoder.rate,
        seconds: (performance.now() - began) / 1000,
      };
    } finally {
      this.#busy = false;
    }
  }

  /** Gives everything back, the sessions included. */
  close(): void {
    this.encoder.close();
    this.decoding.close();
  }

  /** What the encoder makes of a window. */
  async #encode(window: Float32Array, signal: AbortSignal | undefined): Promise<Tensor> {
    const feeds = this.encoder.inputs.map(({ name, type, dims }): [string, Tensor] => {
      const wide = dims?.[1];
      const length = typeof wide === 'number' ? wide : window.length;
      if (window.length > length)
        throw new KilimError('UNSUPPORTED', 'the encoder hears less than a window at once', {
          expected: `${window.length}`,
          got: `${length}`,
        });
      // Silence behind the samples, which a mask does not count.
      if (type === 'int64') return [name, new Tensor('int64', [1, length], new BigInt64Array(length).fill(1n, 0, window.length))];
      const samples = new Float32Array(length);
      samples.set(window);
      return [name, new Tensor('float32', [1, length], samples)];
    });
    const [output] = this.encoder.outputs;
    const outputs = await this.encoder.run(Object.fromEntries(feeds), signal ? { signal } : {});
    return outputs[output?.name ?? ''] as Tensor;
  }

  #text(words: readonly number[]): string {
    const stream = new Stream(this.tokenizer);
    return words.map((word) => stream.add(word)).join('') + stream.rest();
  }
}

export interface SpeechModel extends Closes {}

closedByBlocks(SpeechModel);

function readOptions(given: TranscribeOptions): TranscribeOptions & { translate: boolean; times: boolean } {
  const { language, translate = false, times = false, temperatures, onPart, signal, ...others } = given ?? {};
  const wrong = (name: string, expected: string, got: unknown) =>
    new KilimError('INVALID_VALUE', `the option \`${name}\` is of another kind`, { expected, got: String(got) });
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new KilimError('INVALID_VALUE', `\`transcribe\` has no option \`${unknown}\``, {
      expected: 'language, translate, times, temperatures, onPart, signal',
    });
  if (language !== undefined && typeof language !== 'string') throw wrong('language', 'a string', language);
  if (typeof translate !== 'boolean') throw wrong('translate', 'true or false', translate);
  if (typeof times !== 'boolean') throw wrong('times', 'true or false', times);
  if (temperatures !== undefined && !(Array.isArray(temperatures) && temperatures.every((t) => typeof t === 'number')))
    throw wrong('temperatures', 'a list of numbers', temperatures);
  if (onPart !== undefined && typeof onPart !== 'function') throw wrong('onPart', 'a function', onPart);
  const chosen = { ...(temperatures && { temperatures }), ...(onPart && { onPart }), ...(signal && { signal }) };
  return { translate, times, ...(language !== undefined && { language }), ...chosen };
}
