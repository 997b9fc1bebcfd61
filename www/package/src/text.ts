/**
 * Text from language models.
 *
 *     const model = await loadText('/models/llama/');
 *     const { text } = await model.generate('Once upon a time', { onText: (piece) => page.append(piece) });
 */
import { KilimError, load } from './index.js';
import type { Decoder, LoadOptions, ModelSource, Sampling, Session } from './index.js';
import { modelOf, openFolder, parse, readText, weightsOf } from './text/folder.js';
import type { FolderSource } from './text/folder.js';
import { begun, wholeOf } from './text/whole.js';
import { Stops } from './text/stops.js';
import { Stream } from './text/stream.js';
import { ChatTemplate } from './text/template.js';
import type { Message, TokenizerSettings } from './text/template.js';
import { openTokenizer } from './text/tokenizer.js';
import type { Tokenizer } from './text/tokenizer.js';

import { closedByBlocks } from './disposable.js';
import type { Closes } from './disposable.js';

export type { FolderSource } from './text/folder.js';
export type { Message } from './text/template.js';
export type { Tokenizer } from './text/tokenizer.js';

/** Options of `loadText`: those of `load`, and what concerns the folder. */
export interface LoadTextOptions extends LoadOptions {
  /** The path of the model from the folder on, where there are several. */
  file?: string;
  /** A tokenizer in place of the folder's. */
  tokenizer?: Tokenizer;
}

/** Options of one text. What is not said of sampling is as the folder says. */
export interface GenerateOptions extends Partial<Sampling> {
  /** Words (tokens) to make at most; 256 by default. */
  maxWords?: number;
  /** Texts that end it. They are not part of it. */
  stops?: readonly string[];
  /** Told of the text as it comes, piece by piece. */
  onText?: (piece: string) => void;
  /** Ends the text; what was made is kept. */
  signal?: AbortSignal;
}

/** Why a text ended: the model said so, one of `stops` came, there are `maxWords`, the model cannot look back on more words, or `signal`. */
export type Ended = 'end' | 'stop' | 'maxWords' | 'context' | 'aborted';

/** A text that was made. */
export interface Generated {
  text: string;
  /** Numbers of its words, with the one that ended it. */
  words: number[];
  ended: Ended;
  /** Words of the prompt. */
  promptWords: number;
  /** Words of the prompt that the caches knew from the text before. */
  keptWords: number;
  /** Seconds until the first word was chosen. */
  firstWordSeconds: number;
  /** Words behind the first one in each second that they took; `undefined` where there are none. */
  wordsPerSecond: number | undefined;
}

/**
 * Loads the language model of a folder, as Hugging Face or onnxruntime-genai lay it out, or of a GGUF file, which has all of it.
 *
 *     const model = await loadText('/models/llama/', { backends: ['wgpu', 'cpu'] });
 *
 * @throws KilimError what `load` throws; `IO` where a file is missing, `INVALID_MODEL` where one cannot be understood, `INPUT` where there are several
 * models and none is chosen, and where the model has no output with scores of words, `UNSUPPORTED` where the model is none that makes text word by word.
 */
export async function loadText(source: FolderSource, options: LoadTextOptions = {}): Promise<TextModel> {
  const { file, tokenizer: given, externalData, ...rest } = options;
  const { signal } = rest;
  const folder = await openFolder(source, options);
  const gguf = await wholeOf(source, folder, { file, signal });
  if (gguf !== undefined) return loadGguf(gguf, given, rest);
  const read = (path: string) => readText(folder, path, signal);
  const [genai, config] = await Promise.all([read('genai_config.json'), read('config.json')]);
  if (genai === undefined && config === undefined)
    throw new KilimError('IO', 'the folder has no settings', { expected: '`genai_config.json` or `config.json`' });
  const path = file ?? (genai === undefined ? await modelOf(folder, signal) : nameIn(genai));
  const model = await folder.find(path, signal);
  if (model === undefined) throw new KilimError('IO', `the folder has no file \`${path}\``);
  const [generation, tokens, settings, template, weights] = await Promise.all([
    genai === undefined ? read('generation_config.json') : undefined,
    given ? undefined : read('tokenizer.json'),
    read('tokenizer_config.json'),
    read('chat_template.jinja'),
    weightsOf(folder, path, signal),
  ]);
  const tokenizerSettings = settings === undefined ? {} : parse<TokenizerSettings>('tokenizer_config.json', settings);
  if (!given && tokens === undefined) throw new KilimError('IO', 'the folder has no file `tokenizer.json`');
  const tokenizer = given ?? openTokenizer(tokens as string, tokenizerSettings);
  const external: Record<string, ModelSource> = { ...weights, ...externalData };
  // Nothing reads the scores behind the other words of a prompt.
  const lastOnly = { [logitsIn(genai)]: 1, ...rest.lastOnly };
  const session = await load(model, { ...rest, lastOnly, externalData: external });
  try {
    const files = { genai, config, generation };
    const known = Object.fromEntries(Object.entries(files).filter(([, text]) => text !== undefined));
    const decoder = await session.decoder(known);
    return new TextModel(session, decoder, tokenizer, () => new ChatTemplate(template, tokenizerSettings));
  } catch (error) {
    session.close();
    throw error;
  }
}

/** The language model of a GGUF file. */
async function loadGguf(file: ModelSource, given: Tokenizer | undefined, options: LoadOptions): Promise<TextModel> {
  const { begin, model } = await begun(file, options.signal);
  const session = await load(model, { ...options, lastOnly: { logits: 1, ...options.lastOnly } });
  try {
    const decoder = await session.decoder({ gguf: begin });
    const [words, settings] = decoder.words ?? ['{}', '{}'];
    const templates = parse<TokenizerSettings>('tokenizer_config.json', settings);
    return new TextModel(session, decoder, given ?? openTokenizer(words, templates), () => new ChatTemplate(undefined, templates));
  } catch (error) {
    session.close();
    throw error;
  }
}

interface GenAiDecoder {
  filename?: string;
  outputs?: { logits?: string };
}

/** What `genai_config.json` says of the decoder. */
function decoderIn(genai: string): GenAiDecoder | undefined {
  return parse<{ model?: { decoder?: GenAiDecoder } }>('genai_config.json', genai).model?.decoder;
}

/** The model's file that `genai_config.json` names. */
const nameIn = (genai: string): string => decoderIn(genai)?.filename ?? 'model.onnx';

/** The output with the scores of words. */
const logitsIn = (genai: string | undefined): string => (genai && decoderIn(genai)?.outputs?.logits) ?? 'logits';

/**
 * A language model with its tokenizer. It makes one text at a time.
 *
 *     using model = await loadText('/models/llama/');
 *     const { text } = await model.generate('Once upon a time', { maxWords: 100 });
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface declares what is set on the prototype where the engine has the symbols.
export class TextModel {
  readonly session: Session;
  readonly tokenizer: Tokenizer;
  readonly #decoder: Decoder;
  readonly #open: () => ChatTemplate;
  #template: ChatTemplate | undefined;
  #busy = false;

  /** `loadText` makes these. */
  constructor(session: Session, decoder: Decoder, tokenizer: Tokenizer, template: () => ChatTemplate) {
    this.session = session;
    this.tokenizer = tokenizer;
    this.#decoder = decoder;
    this.#open = template;
  }

  /** How words are to be chosen, as the folder says. */
  get sampling(): Readonly<Sampling> {
    return this.#decoder.sampling;
  }

  /**
   * Makes a text that goes on from `prompt`.
   * @throws KilimError `INVALID_VALUE` for options that are none and a prompt without words, `LIMIT` for one that is longer than the model can look
   * back, `STATE` while another text is made, and what `session.run` throws.
   */
  async generate(prompt: string, options: GenerateOptions = {}): Promise<Generated> {
    return this.#generate(this.tokenizer.encode(prompt, true), options);
  }

  /** A conversation, which may begin with messages. Its caches are kept from turn to turn, as long as no other text comes between. */
  conversation(messages: readonly Message[] = []): Conversation {
    this.#template ??= this.#open();
    const template = this.#template;
    const answer: Answer = (all, options, variables) =>
      this.#generate(this.tokenizer.encode(template.prompt(all, variables), false), options);
    return new Conversation(answer, messages);
  }

  /** Gives everything back, the session included. */
  close(): void {
    this.session.close();
  }

  async #generate(prompt: ArrayLike<number>, options: GenerateOptions): Promise<Generated> {
    if (this.#busy) throw new KilimError('STATE', 'the model makes another text');
    this.#busy = true;
    try {
      return await generate(this.#decoder, this.tokenizer, prompt, options);
    } finally {
      this.#busy = false;
    }
  }
}

export interface TextModel extends Closes {}

closedByBlocks(TextModel);

/** Makes the answer to a conversation. */
type Answer = (messages: readonly Message[], options: GenerateOptions, variables: Record<string, unknown>) => Promise<Generated>;

/**
 * A conversation with a model.
 *
 *     const conversation = textModel.conversation([{ role: 'system', content: 'You are brief.' }]);
 *     const { text } = await conversation.say('What is a kilim?');
 */
export class Conversation {
  /** What was said so far. */
  readonly messages: Message[];
  readonly #answer: Answer;

  /** `TextModel.conversation` makes these. */
  constructor(answer: Answer, messages: readonly Message[]) {
    this.messages = messages.map((message) => ({ ...message }));
    this.#answer = answer;
  }

  /**
   * Says something to the model. Its answer becomes part of the conversation, one that was ended by `signal` too. `variables` are further ones
   * that the chat template reads.
   * @throws KilimError `INVALID_MODEL` where the template refuses the conversation, and what `TextModel.generate` throws; the conversation
   * stays as it was then.
   */
  async say(content: string, options: GenerateOptions = {}, variables: Record<string, unknown> = {}): Promise<Generated> {
    const said = { role: 'user', content };
    const made = await this.#answer([...this.messages, said], options, variables);
    this.messages.push(said, { role: 'assistant', content: made.text });
    return made;
  }
}

const SAMPLING = [
  'repetitionPenalty',
  'frequencyPenalty',
  'presencePenalty',
  'temperature',
  'topK',
  'topP',
  'minP',
  'seed',
] as const satisfies readonly (keyof Sampling)[];

/** The options of a text, each read once. */
function readOptions(given: GenerateOptions): Omit<GenerateOptions, keyof Sampling> & { sampling: Partial<Sampling> } {
  const { maxWords, stops, onText, signal, ...others } = given ?? {};
  const unknown = Object.keys(others).find((name) => !SAMPLING.some((known) => known === name));
  if (unknown !== undefined)
    throw new KilimError('INVALID_VALUE', `\`generate\` has no option \`${unknown}\``, {
      expected: ['maxWords', 'stops', 'onText', 'signal', ...SAMPLING].join(', '),
    });
  if (maxWords !== undefined && !(Number.isInteger(maxWords) && maxWords >= 1))
    throw wrong('maxWords', 'a whole number, one or more', maxWords);
  if (stops !== undefined && !(Array.isArray(stops) && stops.every((stop) => typeof stop === 'string')))
    throw wrong('stops', 'an array of strings', stops);
  if (onText !== undefined && typeof onText !== 'function') throw wrong('onText', 'a function', onText);
  const sampling: Partial<Sampling> = {};
  for (const name of SAMPLING) {
    const value = others[name];
    if (value === undefined) continue;
    const whole = name === 'topK' || name === 'seed';
    if (whole ? !(Number.isSafeInteger(value) && value >= 0) : !Number.isFinite(value))
      throw wrong(name, whole ? 'a whole number, zero or more' : 'a number', value);
    sampling[name] = value;
  }
  return { sampling, ...(maxWords && { maxWords }), ...(stops && { stops }), ...(onText && { onText }), ...(signal && { signal }) };
}

function wrong(name: string, expected: string, got: unknown): KilimError {
  return new KilimError('INVALID_VALUE', `the option \`${name}\` is of another kind`, { expected, got: String(got) });
}

async function generate(decoder: Decoder, tokenizer: Tokenizer, prompt: ArrayLike<number>, options: GenerateOptions): Promise<Generated> {
  const { sampling, maxWords = 256, stops = [], onText, signal } = readOptions(options);
  const context = decoder.context ?? Infinity;
  if (prompt.length > context)
    throw new KilimError('LIMIT', 'the prompt is longer than the model can look back', { expected: `${context}`, got: `${prompt.length}` });
  const stopping = new Stops(stops);
  const stream = new Stream(tokenizer);
  const words: number[] = [];
  let text = '';
  const pass = (piece: string) => {
    if (piece === '') return;
    text += piece;
    onText?.(piece);
  };
  /** Whether the text has ended. */
  const add = (piece: string): boolean => {
    const { passed, stop } = stopping.add(piece);
    pass(passed);
    return stop !== undefined;
  };
  const began = performance.now();
  let [first, last] = [began, began];
  const keptWords = signal?.aborted ? 0 : await decoder.start(prompt, sampling);
  let ended: Ended | undefined;
  while (ended === undefined) {
    const run = words.length === 0 ? 0 : prompt.length + words.length - 1;
    if (words.length >= maxWords) ended = 'maxWords';
    else if (run >= context) ended = 'context';
    else {
      const word = await nextWord(decoder, signal);
      if (word === undefined) {
        ended = 'aborted';
        continue;
      }
      last = performance.now();
      if (words.length === 0) first = last;
      words.push(word);
      if (decoder.end.includes(word)) ended = 'end';
      else if (add(stream.add(word))) ended = 'stop';
    }
  }
  if (ended !== 'stop' && !add(stream.rest())) pass(stopping.rest());
  const more = words.length - 1;
  return {
    text,
    words,
    ended,
    promptWords: prompt.length,
    keptWords,
    firstWordSeconds: (first - began) / 1000,
    wordsPerSecond: more > 0 ? (more * 1000) / (last - first) : undefined,
  };
}

/** The next word; `undefined` where `signal` has ended the text. */
async function nextWord(decoder: Decoder, signal: AbortSignal | undefined): Promise<number | undefined> {
  if (signal?.aborted) return undefined;
  try {
    return await decoder.next(signal ? { signal } : {});
  } catch (error) {
    if (error instanceof KilimError && error.code === 'ABORTED' && signal?.aborted) return undefined;
    throw error;
  }
}
