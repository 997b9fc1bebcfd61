import { Tokenizer as HuggingFace } from '@huggingface/tokenizers';
import { KilimError } from '../index.js';

/** Words (tokens) and their text. */
export interface Tokenizer {
  /** The numbers of a text's words. `special` puts before and behind them what the tokenizer says, the word that begins a text for instance. */
  encode(text: string, special: boolean): ArrayLike<number>;
  /** The text of words. Special words leave none. */
  decode(words: number[]): string;
}

/**
 * The tokenizer of the files `tokenizer.json` and `tokenizer_config.json`.
 * @throws KilimError `INVALID_MODEL` where they are none.
 */
export function openTokenizer(file: string, config: object): Tokenizer {
  let own: HuggingFace;
  try {
    own = new HuggingFace(JSON.parse(file), config);
  } catch (error) {
    throw new KilimError('INVALID_MODEL', `\`tokenizer.json\` is not a tokenizer: ${error}`, {}, error);
  }
  return {
    encode: (text, special) => own.encode(text, { add_special_tokens: special }).ids,
    decode: (words) => (words.length === 0 ? '' : own.decode(words, { skip_special_tokens: true, clean_up_tokenization_spaces: false })),
  };
}
