// Text from language models: `kilim/text`, and the decoder beneath it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alphabet, bigrams, END, TEMPLATE, tokenizer, wordsOf } from './support/language.mjs';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';

const json = (value) => Buffer.from(JSON.stringify(value));
const settings = {
  'config.json': json({ eos_token_id: END, max_position_embeddings: 64, num_attention_heads: 1, hidden_size: 16 }),
  'tokenizer.json': Buffer.from(tokenizer()),
  'tokenizer_config.json': json({ chat_template: TEMPLATE }),
};
const letters = bigrams(alphabet);
// Words by these scores, whatever stands before.
const drawn = bigrams(() => [0.5, 2, -1, 1.5, 0].map((score, word) => [word, score]));
const outside = bigrams(alphabet, { location: 'model.onnx.data' });
const cached = references('language').get('llama-int4/model.onnx');
/** Words of the model with caches. */
const WORDS = 384;

const files = {
  'letters/onnx/model.onnx': letters.bytes,
  'drawn/model.onnx': drawn.bytes,
  'outside/model.onnx': outside.bytes,
  'outside/model.onnx.data': outside.table,
  'cached/decoder.onnx': cached,
  'bare/model.onnx': letters.bytes,
};
const folders = new Map(Object.entries(files));
for (const folder of ['letters', 'drawn', 'outside']) {
  for (const [name, bytes] of Object.entries(settings)) folders.set(`${folder}/${name}`, bytes);
}
folders.set('drawn/config.json', json({ eos_token_id: 200 }));
folders.set('drawn/generation_config.json', json({ do_sample: true, temperature: 1 }));
folders.set('bare/config.json', settings['config.json']);
const ggml = references('ggml');
/** Decoders in GGUF files, with tokenizers of each kind. */
const GGUF = ['words-joined', 'words-pieces'];
for (const kind of GGUF) folders.set(`${kind}.gguf`, ggml.get(`${kind}/model.gguf`));
folders.set('cached/tokenizer.json', Buffer.from(tokenizer(WORDS)));
folders.set('cached/chat_template.jinja', Buffer.from(TEMPLATE));
folders.set(
  'cached/genai_config.json',
  json({
    model: { eos_token_id: 100_000, context_length: 128, decoder: { filename: 'decoder.onnx', head_size: 16, num_key_value_heads: 1 } },
    search: { do_sample: false },
  }),
);

const here = packagePage({
  folders: [['/models/', folders]],
  opened: (page) =>
    page.evaluate(async () => {
      globalThis.text = await import('/kilim/text.js');
      const models = new Map();
      /** The model of a folder, loaded once. */
      globalThis.modelOf = (folder, backends = ['cpu']) => {
        const key = `${folder} ${backends}`;
        if (!models.has(key)) models.set(key, text.loadText(`/models/${folder}`, { backends, worker: true }));
        return models.get(key);
      };
      /** A text, with the pieces that it came in. */
      globalThis.made = async (folder, prompt, options = {}, backends = undefined) => {
        const pieces = [];
        const model = await modelOf(folder, backends);
        const generated = await model.generate(prompt, { onText: (piece) => pieces.push(piece), ...options });
        return { ...generated, pieces };
      };
    }),
});
const made = (folder, prompt, options) =>
  here.page.evaluate(([folder, prompt, options]) => made(folder, prompt, options), [folder, prompt, options]);

test('a GGUF file brings its tokenizer, its template and its settings', async () => {
  for (const kind of GGUF) {
    const { texts, goes_on: goesOn, says } = JSON.parse(String(ggml.get(`${kind}/words.json`)));
    const encoded = await here.page.evaluate(
      async ([file, texts]) => {
        const { tokenizer } = await modelOf(file);
        return texts.map(({ text }) => Array.from(tokenizer.encode(text, true)));
      },
      [`${kind}.gguf`, texts],
    );
    assert.deepEqual(
      encoded,
      texts.map(({ words }) => words),
      kind,
    );
    const seen = await made(`${kind}.gguf`, texts[0].text, { maxWords: 12 });
    assert.deepEqual(seen.words, goesOn, kind);
    // Packages differ in how many marks stand for bytes that are no characters.
    if (!says.includes('\ufffd')) assert.equal(seen.text.trim(), says.trim(), kind);
  }
  const answer = await here.page.evaluate(async (file) => {
    const model = await modelOf(file);
    const conversation = model.conversation();
    await conversation.say('hi', { maxWords: 4 });
    return conversation.messages.map(({ role }) => role);
  }, 'words-joined.gguf');
  assert.deepEqual(answer, ['user', 'assistant']);
});

test('a text comes piece by piece, up to the word that ends it', async () => {
  const { firstWordSeconds, wordsPerSecond, ...seen } = await made('letters', 'xab');
  assert.deepEqual(seen, {
    text: 'cdefghijk',
    words: [...wordsOf('cdefghijk'), END],
    ended: 'end',
    promptWords: 3,
    keptWords: 0,
    pieces: [...'cdefghijk'],
  });
  assert.ok(firstWordSeconds > 0 && wordsPerSecond > 0);
});

test('a character of several words comes whole', async () => {
  const { text, pieces, words } = await made('letters', 'z');
  assert.deepEqual([text, pieces, words], ['é!', ['é', '!'], [...wordsOf('é!'), END]]);
});

test('texts, lengths and the context end a text', async () => {
  const of = async (options, prompt = 'b') => {
    const { text, ended, pieces } = await made('letters', prompt, options);
    assert.equal(pieces.join(''), text);
    return [text, ended];
  };
  assert.deepEqual(await of({ stops: ['fg', 'k'] }), ['cde', 'stop']);
  assert.deepEqual(await of({ stops: ['efx', ''] }), ['cdefghijk', 'end']);
  assert.deepEqual(await of({ maxWords: 3 }), ['cde', 'maxWords']);
  // 62 words of the prompt, and two that the model is run on; the last one is not.
  assert.deepEqual(await of({}, 'b'.repeat(62)), ['cde', 'context']);
  const failure = await here.page.evaluate(() => failureOf(made('letters', 'b'.repeat(65))));
  assert.deepEqual([failure.code, failure.expected, failure.got], ['LIMIT', '64', '65']);
});

test('equal seeds give the words that they give natively', async () => {
  const of = async (seed) => (await made('drawn', 'a', { seed, maxWords: 12 })).words;
  // The same numbers stand in crates/text/src/sampler/tests.rs.
  assert.deepEqual(await of(7), [1, 1, 3, 3, 1, 1, 0, 3, 1, 4, 1, 1]);
  assert.notDeepEqual(await of(8), await of(7));
  assert.deepEqual((await made('drawn', 'a', { temperature: 0, maxWords: 3 })).words, [1, 1, 1]);
});

test('a text that is aborted is kept, and the next one is whole', async () => {
  const seen = await here.page.evaluate(async () => {
    const model = await modelOf('letters');
    const controller = new AbortController();
    const onText = (piece) => piece === 'd' && controller.abort();
    const aborted = await model.generate('b', { onText, signal: controller.signal });
    const before = await model.generate('b', { signal: AbortSignal.abort() });
    return [aborted, before, await model.generate('bc')].map(({ text, ended }) => [text, ended]);
  });
  assert.deepEqual(seen, [
    ['cd', 'aborted'],
    ['', 'aborted'],
    ['defghijk', 'end'],
  ]);
});

/** The words of the model with caches, the best one always, each by a run of the whole text. */
const spoken = (prompt, count) =>
  here.page.evaluate(
    async ([prompt, count]) => {
      const { session } = await modelOf('cached');
      const row = (numbers) => new kilim.Tensor('int64', [1, numbers.length], BigInt64Array.from(numbers, BigInt));
      const all = [...prompt];
      for (let i = 0; i < count; i++) {
        const feeds = {};
        for (const { name, type, dims } of session.inputs) {
          if (name === 'input_ids') feeds[name] = row(all);
          else if (name === 'attention_mask') feeds[name] = row(all.map(() => 1));
          else if (name === 'position_ids') feeds[name] = row(all.map((_, at) => at));
          else feeds[name] = new kilim.Tensor(type, [1, dims[1], 0, 16]);
        }
        const { logits } = await session.run(feeds);
        const size = logits.dims[2];
        const last = logits.data.slice(-size);
        all.push(last.indexOf(Math.max(...last)));
      }
      return all.slice(prompt.length);
    },
    [prompt, count],
  );

test('the words of a model with caches are those of runs without', async () => {
  const want = await spoken(wordsOf('hello'), 20);
  const { words } = await made('cached', 'hello', { maxWords: 20 });
  assert.deepEqual(words, want);
  const onGpu = await here.page.evaluate(async () => {
    const { words } = await made('cached', 'hello', { maxWords: 20 }, ['wgpu', 'cpu']);
    // Other words in between, so that caches are cut.
    const model = await modelOf('cached', ['wgpu', 'cpu']);
    await model.generate('help', { maxWords: 3 });
    const again = await model.generate('hello', { maxWords: 20 });
    return { words, again: again.words, kept: again.keptWords, device: model.session.report.backends[0].id };
  });
  assert.deepEqual(onGpu, { words: want, again: want, kept: 3, device: 'wgpu' });
});

test('calls of a decoder that do not wait for each other get the words in order, those of the text that was begun last', async () => {
  const seen = await here.page.evaluate(async (hello) => {
    const session = await (await import('/kilim/index.js')).load('/models/cached/decoder.onnx', { backends: ['cpu'], worker: true });
    const decoder = await session.decoder({ genai: await (await fetch('/models/cached/genai_config.json')).text() });
    const greedy = { temperature: 0 };
    const inTurn = async (words, count) => {
      await decoder.start(words, greedy);
      const made = [];
      while (made.length < count) made.push(await decoder.next());
      return made;
    };
    const want = [await inTurn(hello, 12), await inTurn(hello.slice(1), 5)];
    const calls = (count) => Array.from({ length: count }, () => decoder.next());
    const begun = [decoder.start(hello, greedy), ...calls(12), decoder.start(hello.slice(1), greedy), ...calls(5)];
    const got = (await Promise.all(begun)).filter((_, i) => i !== 0 && i !== 13);
    const stopped = await decoder.next({ signal: AbortSignal.abort() }).then(
      () => 'a word',
      ({ code }) => code,
    );
    session.close();
    return { want: want.flat(), got, stopped };
  }, wordsOf('hello'));
  assert.deepEqual(seen.got, seen.want);
  assert.equal(seen.stopped, 'ABORTED');
});

test('a conversation keeps its caches from turn to turn', async () => {
  const { turns, messages, fresh } = await here.page.evaluate(async () => {
    const model = await modelOf('cached');
    // Words that are no bytes leave the conversation: their text is taken apart to other words.
    const conversation = model.conversation();
    const turns = [];
    for (const said of ['hello', 'and you?', 'well']) turns.push(await conversation.say(said, { maxWords: 6 }));
    const other = model.conversation(conversation.messages.slice(0, 4));
    await model.generate('another text', { maxWords: 2 });
    return { turns, messages: conversation.messages, fresh: await other.say('well', { maxWords: 6 }) };
  });
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'user', 'assistant', 'user', 'assistant'],
  );
  assert.deepEqual(
    messages.filter(({ role }) => role === 'assistant').map(({ content }) => content),
    turns.map(({ text }) => text),
  );
  assert.equal(turns[0].keptWords, 0);
  // The first turn's prompt at least.
  assert.ok(turns[1].keptWords >= turns[0].promptWords, JSON.stringify(turns));
  assert.ok(turns[2].keptWords >= turns[1].promptWords, JSON.stringify(turns));
  assert.deepEqual(fresh.words, turns[2].words);
});

test('weights in a file beside the model, folders of files, and the page itself', async () => {
  const seen = await here.page.evaluate(async () => {
    const served = await made('outside', 'a');
    const paths = ['config.json', 'tokenizer.json', 'model.onnx', 'model.onnx.data'];
    const read = async (path) => new File([await (await fetch(`/models/outside/${path}`)).blob()], path.split('/').pop());
    const chosen = await Promise.all(paths.map(read));
    const texts = [served.text];
    for (const folder of [chosen, Object.fromEntries(chosen.map((file) => [file.name, file]))]) {
      const model = await text.loadText(folder, { backends: ['cpu'], worker: false });
      texts.push((await model.generate('a')).text);
      model.close();
    }
    return texts;
  });
  assert.deepEqual(seen, Array(3).fill('bcdefghijk'));
});

test('what is wrong is told', async () => {
  const codes = await here.page.evaluate(async () => {
    const codeOf = async (promise) => {
      const failure = await failureOf(promise);
      return failure && `${failure.code} ${failure.message}`;
    };
    const model = await modelOf('letters');
    const { session } = model;
    const busy = model.generate('a', { maxWords: 2 });
    const codes = {
      busy: await codeOf(model.generate('a')),
      option: await codeOf(busy.then(() => model.generate('a', { max_new_tokens: 3 }))),
      range: await codeOf(model.generate('a', { topP: 2 })),
      kind: await codeOf(model.generate('a', { temperature: 'hot' })),
      empty: await codeOf(model.generate('')),
      folder: await codeOf(text.loadText('/models/none')),
      tokenizer: await codeOf(text.loadText('/models/bare')),
      words: await codeOf(kilim.load('/assets/digits.onnx', { backends: ['cpu'] }).then((digits) => digits.decoder())),
      files: await codeOf(session.decoder({ config: '{' })),
    };
    // The session's decoder was made anew: the model's own is no longer it.
    codes.other = await codeOf(model.generate('a'));
    const decoder = await session.decoder();
    codes.unbegun = await codeOf(decoder.next());
    codes.word = await codeOf(decoder.start([-1]));
    codes.beyond = await codeOf(decoder.start([100_000]).then(() => decoder.next()));
    return codes;
  });
  const begins = {
    busy: 'STATE the model makes another text',
    option: 'INVALID_VALUE `generate` has no option `max_new_tokens`',
    range: 'INVALID_VALUE the sampling option `top_p` is out of its range',
    kind: 'INVALID_VALUE the option `temperature` is of another kind',
    empty: 'INVALID_VALUE a text begins with one word at least',
    folder: 'IO the folder has no settings',
    tokenizer: 'IO the folder has no file `tokenizer.json`',
    words: 'UNSUPPORTED a decoder with the input `image`',
    files: 'INVALID_MODEL `config.json` cannot be understood',
    other: 'STATE another decoder of the session was made',
    unbegun: 'STATE no text was begun',
    word: 'INVALID_VALUE a word is a whole number, zero or more',
  };
  for (const [what, begin] of Object.entries(begins)) assert.ok(codes[what]?.startsWith(begin), `${what}: ${codes[what]}`);
  assert.ok(codes.beyond !== null && !codes.beyond.startsWith('INTERNAL'), codes.beyond);
});
