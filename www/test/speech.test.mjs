// Text from speech: `kilim/speech`, with the models of tests/references/speech.zip and whisper.zip.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';
import { RATE, RECORDING, SAID, sound } from './support/tones.mjs';
import { wav } from './support/wav.mjs';

const files = references('speech');
const { cases } = JSON.parse(files.get('index.json'));

const here = packagePage({
  folders: [
    ['/models/', files],
    ['/whisper/', references('whisper')],
  ],
  opened: (page) =>
    page.evaluate(async () => {
      globalThis.speech = await import('/kilim/speech.js');
      const models = new Map();
      /** The model of a folder, loaded once. */
      globalThis.modelOf = (folder, backends = ['cpu']) => {
        const key = `${folder} ${backends}`;
        if (!models.has(key)) models.set(key, speech.loadSpeech(`/models/${folder}`, { backends, worker: true }));
        return models.get(key);
      };
      globalThis.heard = async (folder, samples, options, backends) => {
        const parts = [];
        const model = await modelOf(folder, backends);
        const { seconds, ...made } = await model.transcribe(Float32Array.from(samples), {
          onPart: ({ text }) => parts.push(text),
          ...options,
        });
        return { ...made, told: parts };
      };
    }),
});
const heard = (folder, said, options = {}, backends = undefined) =>
  here.page.evaluate(
    ([folder, samples, options, backends]) => globalThis.heard(folder, samples, options, backends),
    [folder, [...sound(said)], options, backends],
  );

for (const { name, heard: known } of cases) {
  test(`${name}: the words are those of transformers`, async () => {
    for (const { words, language, translate = false, times, ...said } of known) {
      const options = { translate, times, ...(language && { language }) };
      const { parts } = await heard(name, said, name === 'moonshine' ? {} : options);
      // Words for times are behind all others.
      const text = words.filter((word) => word < 308);
      assert.deepEqual(
        parts.flatMap((part) => part.words),
        text,
        JSON.stringify({ said, options }),
      );
    }
  });
}

test('a recording of several windows is written whole, each part with its times', async () => {
  const { text, parts, told, language, soundSeconds } = await heard('whisper', RECORDING);
  assert.deepEqual([text, language, soundSeconds], [SAID, 'en', 6.3]);
  assert.deepEqual(
    told,
    parts.map((part) => part.text),
  );
  for (const [i, [start, end]] of RECORDING.phrases.entries()) {
    assert.ok(Math.abs(parts[i].start - start) < 0.07, `${parts[i].start}, ${start}`);
    assert.ok(Math.abs(parts[i].end - end) < 0.07, `${parts[i].end}, ${end}`);
  }
});

for (const name of ['floats', 'packed']) {
  test(`${name}: a file of whisper.cpp has all of a model`, async () => {
    const { text, language, parts } = await heard(`../whisper/${name}/ggml-model.bin`, RECORDING);
    assert.deepEqual([text, language, parts.length], [SAID, 'en', RECORDING.phrases.length]);
    // Two sessions open the file.
    const path = `/whisper/${name}/ggml-model.bin`;
    assert.deepEqual(
      here.server.asked.filter((asked) => asked === path),
      [path],
    );
  });
}

test('WebGPU hears the same', async () => {
  const { text } = await heard('whisper', RECORDING, {}, ['wgpu', 'cpu']);
  assert.equal(text, SAID);
});

test('sound of another rate, and a file, are heard', async () => {
  const samples = sound(RECORDING);
  const texts = await here.page.evaluate(
    async ([samples, file]) => {
      const model = await modelOf('whisper');
      const offline = new OfflineAudioContext(1, Math.round((samples.length * 44_100) / 16_000), 44_100);
      const buffer = offline.createBuffer(1, samples.length, 16_000);
      buffer.getChannelData(0).set(samples);
      const source = offline.createBufferSource();
      source.buffer = buffer;
      source.connect(offline.destination);
      source.start();
      const faster = await offline.startRendering();
      const bytes = Uint8Array.from(file);
      const forms = [faster, { samples: faster.getChannelData(0), rate: 44_100 }, new Blob([bytes]), bytes.buffer];
      const made = [];
      for (const form of forms) made.push((await model.transcribe(form)).text);
      return made;
    },
    [[...samples], [...wav(samples, RATE)]],
  );
  assert.deepEqual(texts, Array(4).fill(SAID));
});

test('what cannot be heard is an error', async () => {
  const failures = await here.page.evaluate(async () => {
    const [whisper, moonshine] = await Promise.all([modelOf('whisper'), modelOf('moonshine')]);
    const sound = new Float32Array(4000);
    const aborted = AbortSignal.abort();
    const made = [
      () => whisper.transcribe(sound, { language: 'la' }),
      () => moonshine.transcribe(sound, { times: true }),
      () => moonshine.transcribe(sound, { language: 'en' }),
      () => whisper.transcribe([0, 1]),
      () => whisper.transcribe(new ArrayBuffer(100)),
      () => whisper.transcribe(sound, { speed: 2 }),
      () => whisper.transcribe(sound, { signal: aborted }),
      () => speech.loadSpeech('/models/none'),
      () => speech.loadSpeech('/models/whisper', { kind: 'q4' }),
    ];
    const codes = [];
    for (const call of made) codes.push((await failureOf(call())).code);
    const empty = await whisper.transcribe(new Float32Array(0));
    return { codes, empty: empty.text };
  });
  assert.deepEqual(failures, {
    codes: ['INVALID_VALUE', 'INVALID_VALUE', 'INVALID_VALUE', 'INVALID_VALUE', 'INVALID_VALUE', 'INVALID_VALUE', 'ABORTED', 'IO', 'IO'],
    empty: '',
  });
});
