// Sound as models take it: resampling held against scipy (tools/references/preprocessing.py), spectra against what speech models hear, the microphone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadLogMel, record, resample, toSamples } from '../dist/kilim/node.sound.js';
import { www } from './support/folders.mjs';
import { noise } from './support/noise.mjs';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';
import { wav } from './support/wav.mjs';

const samplesOf = (count) => Float32Array.from(noise(count), (byte) => (byte - 128) / 128);

test('samples at another rate are those of scipy', async () => {
  const cases = JSON.parse(readFileSync(join(www, 'fixtures', 'preprocessing', 'resampled.json'), 'utf8'));
  assert.equal(cases.length, 8);
  for (const { from, to, count, float32 } of cases) {
    const want = new Float32Array(new Uint8Array(Buffer.from(float32, 'base64')).buffer);
    const given = resample(samplesOf(count), from, to);
    assert.equal(given.length, want.length, `${from} to ${to}`);
    given.forEach((sample, i) => assert.ok(Math.abs(sample - want[i]) <= 1e-6, `${from} to ${to}, ${i}: ${sample} is not ${want[i]}`));
    assert.deepEqual(await toSamples({ samples: samplesOf(count), rate: from }, to), given);
  }
});

const tone = (pitch, rate, seconds) => Float32Array.from({ length: rate * seconds }, (_, i) => Math.sin((2 * Math.PI * pitch * i) / rate));

test('a tone stays, and what the new rate cannot have goes', async () => {
  const [from, to] = [44_100, 16_000];
  // Longer than what is made at once.
  const long = await toSamples({ samples: tone(1000, from, 6), rate: from }, to);
  assert.equal(long.length, 6 * to);
  const want = tone(1000, to, 6);
  for (let i = 100; i < long.length - 100; i++) assert.ok(Math.abs(long[i] - want[i]) < 2e-3, `${i}: ${long[i]} is not ${want[i]}`);
  const high = resample(tone(12_000, from, 1), from, to).subarray(100, to - 100);
  assert.ok(Math.max(...high.map(Math.abs)) < 2e-3);
});

test('channels are averaged, and what is no sound is refused', async () => {
  const samples = [Float32Array.of(1, 0.5), Float32Array.of(0, -0.5)];
  assert.deepEqual([...(await toSamples({ samples, rate: 8000 }, 8000))], [0.5, 0]);
  assert.deepEqual([...(await toSamples(Float32Array.of(1), 8000))], [1]);
  assert.equal((await toSamples({ samples: new Float32Array(0), rate: 8000 }, 16_000)).length, 0);
  const refused = (code, promise) => assert.rejects(promise, { name: 'KilimError', code });
  await refused('SHAPE', toSamples({ samples: [new Float32Array(2), new Float32Array(3)], rate: 8000 }, 8000));
  await refused('UNSUPPORTED', toSamples({ samples: new Float32Array(2), rate: 0 }, 8000));
  await refused('UNSUPPORTED', toSamples(new Float32Array(2), 44_100.5));
  await refused('UNSUPPORTED', toSamples(new Blob([wav(samplesOf(100), 8000)]), 8000));
  for (const given of [null, 3, [0, 1], {}, { samples: [], rate: 8000 }, { samples: new Float64Array(2), rate: 8000 }])
    await refused('INVALID_VALUE', toSamples(given, 8000));
  await refused('UNSUPPORTED', record());
  assert.throws(() => resample(new Float32Array(2), 16_000, 1e9), { code: 'UNSUPPORTED' });
});

const files = references('speech');
const preprocessor = files.get('whisper/preprocessor_config.json').toString();

test('a spectrum is the one in front of a model', async () => {
  const { load } = await import('../dist/kilim/node.js');
  const options = { backends: ['cpu'], worker: false };
  const { sampling_rate: rate, chunk_length: seconds } = JSON.parse(preprocessor);
  const samples = tone(440, rate, seconds);
  const encoder = Uint8Array.from(files.get('whisper/encoder_model.onnx'));
  const [spectrum, heard, plain] = await Promise.all([
    loadLogMel(preprocessor, options),
    load(encoder, { ...options, logMel: preprocessor }),
    load(encoder, options),
  ]);
  const { log_mel: logMel } = await spectrum.run({ samples });
  const [name] = heard.outputs.map((output) => output.name);
  const [want, given] = await Promise.all([heard.run({ samples }), plain.run({ input_features: logMel })]);
  given[name].data.forEach((value, i) => assert.ok(Math.abs(value - want[name].data[i]) <= 1e-4, `${i}: ${value}`));
  assert.equal(logMel.dims.length, 3);
  for (const session of [spectrum, heard, plain]) session.close();
  await assert.rejects(loadLogMel('{', options), { name: 'KilimError', code: 'INVALID_MODEL' });
});

const here = packagePage({ flags: ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'] });

test('AudioBuffers and files are brought to the rate', async () => {
  const samples = tone(440, 22_050, 1);
  const seen = await here.page.evaluate(
    async ([samples, file]) => {
      const { toSamples } = await import('/kilim/sound.js');
      const buffer = new AudioBuffer({ numberOfChannels: 2, length: samples.length, sampleRate: 22_050 });
      buffer.copyToChannel(Float32Array.from(samples), 0);
      const [given, decoded] = [await toSamples(buffer, 16_000), await toSamples(new Blob([Uint8Array.from(file)]), 16_000)];
      return [[...given], [...decoded]];
    },
    [[...samples], [...wav(samples, 22_050)]],
  );
  const want = resample(samples, 22_050, 16_000);
  const [given, decoded] = seen;
  // The other channel is silent.
  assert.deepEqual(given, [
    ...resample(
      samples.map((sample) => sample / 2),
      22_050,
      16_000,
    ),
  ]);
  assert.equal(decoded.length, 16_000);
  decoded.slice(500, 15_500).forEach((sample, i) => assert.ok(Math.abs(sample - want[i + 500]) < 0.01, `${i}: ${sample}`));
});

test('the microphone is recorded, and given back', async () => {
  const seen = await here.page.evaluate(async () => {
    const { record } = await import('/kilim/sound.js');
    const recording = await record();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const samples = await recording.stop(16_000);
    const other = await record({ noiseSuppression: false });
    await new Promise((resolve) => setTimeout(resolve, 200));
    const file = await other.stop();
    return { kind: samples.constructor.name, length: samples.length, loudest: Math.max(...samples.map(Math.abs)), type: file.type };
  });
  assert.equal(seen.kind, 'Float32Array');
  assert.ok(seen.length > 8_000 && seen.length < 64_000, String(seen.length));
  // The device of the test beeps.
  assert.ok(seen.loudest > 0.01, String(seen.loudest));
  assert.match(seen.type, /^audio\//);
  await here.page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = async () => {
      throw new DOMException('no', 'NotAllowedError');
    };
  });
  const code = await here.page.evaluate(async () => (await import('/kilim/sound.js')).record().catch((error) => error.code));
  assert.equal(code, 'IO');
});
