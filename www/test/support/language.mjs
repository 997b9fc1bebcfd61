// Small language models, with tokenizers whose words are bytes.
import { model, tensor } from './onnx.mjs';

/** The characters by which tokenizers of bytes call them: those that can be printed as they are, the others from 256 on. */
function letters() {
  const printed = [
    [33, 126],
    [161, 172],
    [174, 255],
  ];
  const own = (byte) => printed.some(([first, last]) => byte >= first && byte <= last);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(own(byte) ? byte : next++));
}

const SPECIAL = ['<s>', '</s>', '<|user|>', '<|end|>'];
/** The word that ends texts. */
export const END = 1;
/** The number of the first byte's word. */
const BYTES = SPECIAL.length;

/** The words of a text. */
export const wordsOf = (text) => Array.from(Buffer.from(text), (byte) => byte + BYTES);

/** A `tokenizer.json` with so many words: special ones, the bytes, and pairs of small letters that no text is taken apart to. */
export function tokenizer(size = BYTES + 256) {
  const names = [...SPECIAL, ...letters()];
  const small = [...'abcdefghijklmnopqrstuvwxyz'];
  names.push(...small.flatMap((a) => small.map((b) => a + b)));
  const vocab = Object.fromEntries(names.slice(0, size).map((name, number) => [name, number]));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  const special = (content, id) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true });
  return JSON.stringify({
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map(special),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, vocab, merges: [] },
  });
}

/** Turns of a user and of a model, each with its end. */
export const TEMPLATE =
  "{% for m in messages %}{% if m['role'] == 'user' %}<|user|>{{ m['content'] }}<|end|>{% else %}{{ m['content'] }}<|end|>{% endif %}{% endfor %}";

/**
 * A model whose scores for the next word depend on the last one alone: `follow` gives them as `[word, score]`. Words that it does not name are
 * never chosen. `location` puts its table into a file of that name, which is `table`.
 */
export function bigrams(follow, { location } = {}) {
  const size = BYTES + 256;
  const table = new Float32Array(size * size).fill(-1e30);
  for (let word = 0; word < size; word++) {
    for (const [next, score] of follow(word)) table[word * size + next] = score;
  }
  const bytes = model({
    nodes: [['Gather', ['table', 'input_ids'], ['logits'], { int: { axis: 0 } }]],
    inputs: [['input_ids', ['batch', 'words'], 'int64']],
    outputs: [['logits', ['batch', 'words', size]]],
    initializers: [tensor('table', [size, size], { data: table, ...(location && { location }) })],
  });
  return { bytes: Uint8Array.from(bytes), table: new Uint8Array(table.buffer) };
}

/** Each letter follows the one before it, from `z` on é and an exclamation mark; behind k, and that mark, texts end. */
export function alphabet(word) {
  const [k, z, mark] = wordsOf('kz!');
  const [first, second] = wordsOf('é');
  const chain = new Map([
    [k, END],
    [z, first],
    [first, second],
    [second, mark],
    [mark, END],
  ]);
  const next = chain.get(word) ?? (word >= BYTES ? word + 1 : wordsOf('a')[0]);
  return [[Math.min(next, BYTES + 255), 5]];
}
