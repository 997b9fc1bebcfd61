// Memory of the WebAssembly module: words, conversations and sessions leave nothing behind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadText } from '../dist/kilim/node.text.js';
import { TEMPLATE, tokenizer } from './support/language.mjs';
import { references } from './support/references.mjs';

/** Words of the model. */
const WORDS = 384;
const folder = {
  'model.onnx': references('language').get('llama-int4/model.onnx'),
  'tokenizer.json': Buffer.from(tokenizer(WORDS)),
  'chat_template.jinja': Buffer.from(TEMPLATE),
  'genai_config.json': Buffer.from(
    JSON.stringify({
      model: { eos_token_id: 100_000, context_length: 128, decoder: { filename: 'model.onnx', head_size: 16, num_key_value_heads: 1 } },
      search: { do_sample: false },
    }),
  ),
};

/** The memories of the modules that are instantiated from now on. */
const memories = new Set();
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...args) => {
  const made = await instantiate(...args);
  const { exports } = made.instance ?? made;
  for (const value of Object.values(exports)) if (value instanceof WebAssembly.Memory) memories.add(value);
  return made;
};
const bytes = () => [...memories].reduce((sum, { buffer }) => sum + buffer.byteLength, 0);

const open = () => loadText(folder, { backends: ['cpu'], worker: false });

test('2,000 words in twenty texts and ten conversations leave memory as it is', async () => {
  const model = await open();
  assert.ok(bytes() > 0);
  const held = [];
  for (let text = 0; text < 20; text++) {
    const { words } = await model.generate(`text ${text}`, { maxWords: 100 });
    assert.equal(words.length, 100);
    held.push(bytes());
  }
  for (let i = 0; i < 10; i++) {
    const conversation = model.conversation();
    for (const said of ['hello', 'and you?', 'well']) await conversation.say(said, { maxWords: 20 });
    held.push(bytes());
  }
  model.close();
  assert.deepEqual(held.slice(2), Array(28).fill(held[1]));
});

test('ten sessions, each with a text, leave memory as it is', async () => {
  const held = [];
  for (let session = 0; session < 10; session++) {
    const model = await open();
    await model.generate('hello', { maxWords: 50 });
    model.close();
    held.push(bytes());
  }
  assert.deepEqual(held.slice(2), Array(8).fill(held[1]));
});
