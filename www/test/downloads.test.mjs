// Files from a hub, files that are kept, hashes, and connections that break off: in Node and in the page, with a server of the test's own.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sha256 as hashOf } from '../dist/modules/downloads/sha256.js';
import { clear, list, persist, remove } from '../dist/kilim/node.cache.js';
import * as kilimHere from '../dist/kilim/node.js';
import { loadSpeech } from '../dist/kilim/node.speech.js';
import { loadText } from '../dist/kilim/node.text.js';
import { repository as root } from './support/folders.mjs';
import { COMMIT, LATER, serveHub, sha256 } from './support/hub.mjs';
import { alphabet, bigrams, tokenizer } from './support/language.mjs';
import { noise } from './support/noise.mjs';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';
import { RECORDING, SAID, sound } from './support/tones.mjs';

const digits = readFileSync(join(root, 'assets', 'digits.onnx'));
const outside = bigrams(alphabet, { location: 'model.onnx_data' });
const weights = Buffer.from(outside.table);
const scratch = mkdtempSync(join(tmpdir(), 'kilim-downloads-'));
process.env.KILIM_CACHE = scratch;
after(() => rmSync(scratch, { recursive: true, force: true }));

const REPOSITORIES = () => ({
  'kilim-nn/digits': { commit: COMMIT, files: { 'onnx/digits.onnx': digits, 'README.md': Buffer.from('#') }, large: ['onnx/digits.onnx'] },
  'kilim-nn/outside': {
    commit: COMMIT,
    files: { 'model.onnx': Buffer.from(outside.bytes), 'model.onnx_data': weights },
    large: ['model.onnx_data'],
  },
  'kilim-nn/private': { commit: COMMIT, files: { 'digits.onnx': digits }, token: 'secret' },
  'kilim-nn/odd': { commit: COMMIT, files: { 'digits.onnx': digits }, answer: '<html>' },
});

const hubs = [];
async function hub(files, repositories = REPOSITORIES()) {
  const made = await serveHub(repositories, files);
  hubs.push(made);
  return made;
}
after(() => Promise.all(hubs.map((server) => server.close().catch(() => undefined))));

const here = packagePage({
  headers: { 'content-security-policy': "default-src 'self' 'wasm-unsafe-eval'; connect-src *" },
  opened: (page) => page.evaluate(`globalThis.loaded = ${loaded}`),
});

/** What runs in Node and in the page alike: a load with what was asked for, and calls of the cache. */
const inNode = {
  load: (source, options) => loaded(kilimHere, source, options),
  cache: (call, ...args) => ({ clear, list, persist, remove })[call](...args),
};
const inPage = {
  load: (source, options) => here.page.evaluate(([source, options]) => globalThis.loaded(kilim, source, options), [source, options]),
  cache: (call, ...args) => here.page.evaluate(async ([call, args]) => (await import('/kilim/cache.js'))[call](...args), [call, args]),
};

/** The inputs of what was loaded and the bytes that came last of the download, or the error. */
async function loaded(kilim, source, options = {}) {
  const told = [];
  try {
    const session = await kilim.load(source, {
      backends: ['cpu'],
      ...options,
      onProgress: ({ phase, loaded }) => phase === 'download' && told.push(loaded),
    });
    const inputs = session.inputs.map(({ name }) => name);
    session.close();
    return { inputs, bytes: told.at(-1), rising: told.every((n, i) => i === 0 || n >= told[i - 1]) };
  } catch (error) {
    const { name, code, message, expected, got, hint } = error;
    return { name, code, message, expected, got, hint };
  }
}

test('hashes are those of Node, in pieces of any length', () => {
  const bytes = noise(3000);
  for (let length = 0; length < 300; length++) {
    const hash = hashOf();
    for (let at = 0, step = 1; at < length; at += step, step = (step * 7) % 97) hash.add(bytes.subarray(at, Math.min(length, at + step)));
    assert.equal(hash.end(), sha256(bytes.subarray(0, length)), String(length));
  }
});

const fileRequests = ({ asked }) => asked.filter((line) => /^GET \/[^a]/.test(line) && !line.includes('/api/'));

for (const [where, world] of [
  ['Node', inNode],
  ['a page', inPage],
]) {
  test(`a model of the hub comes once, and without the hub from then on: ${where}`, async () => {
    const server = await hub();
    const options = { hub: server.url };
    const address = 'hf:kilim-nn/digits/onnx/digits.onnx';
    const first = await world.load(address, options);
    assert.deepEqual(first, { inputs: ['image'], bytes: digits.length, rising: true });
    assert.deepEqual(fileRequests(server), [`GET /kilim-nn/digits/resolve/${COMMIT}/onnx/digits.onnx`]);
    assert.deepEqual((await world.load(address, options)).inputs, ['image']);
    assert.deepEqual((await world.load('hf:kilim-nn/outside/model.onnx', options)).inputs, ['input_ids']);
    assert.equal(fileRequests(server).length, 3);
    const kept = await world.cache('list');
    assert.deepEqual(
      kept.map(({ address, revision, bytes }) => [address, revision, bytes]).sort(),
      [
        [address, COMMIT, digits.length],
        ['hf:kilim-nn/outside/model.onnx', COMMIT, outside.bytes.length],
        ['hf:kilim-nn/outside/model.onnx_data', COMMIT, weights.length],
      ].sort(),
    );
    // A branch that has moved on is another file.
    server.repositories['kilim-nn/digits'].commit = LATER;
    assert.deepEqual((await world.load(address, options)).inputs, ['image']);
    assert.equal(fileRequests(server).at(-1), `GET /kilim-nn/digits/resolve/${LATER}/onnx/digits.onnx`);
    const before = server.asked.length;
    assert.deepEqual((await world.load(address, { ...options, revision: LATER })).inputs, ['image']);
    // The files of a commit were not listed under its own name yet.
    assert.deepEqual(server.asked.slice(before), [`GET /api/models/kilim-nn/digits/revision/${LATER}`]);
    await server.close();
    for (const revision of [LATER, 'main'])
      assert.deepEqual((await world.load(address, { ...options, revision })).inputs, ['image'], revision);
    assert.deepEqual((await world.load('hf:kilim-nn/outside/model.onnx', options)).inputs, ['input_ids']);
    const unkept = await world.load('hf:kilim-nn/private/digits.onnx', options);
    assert.deepEqual([unkept.name, unkept.code], ['KilimError', 'IO']);
    assert.equal(await world.cache('remove', 'hf:kilim-nn/digits'), 2);
    assert.equal(await world.cache('remove', 'hf:kilim-nn'), 2);
    assert.deepEqual(await world.cache('list'), []);
    assert.equal((await world.load(address, options)).code, 'IO');
    assert.equal(typeof (await world.cache('persist')), 'boolean');
  });

  test(`what the hub does not give is an error with the reason: ${where}`, async () => {
    const server = await hub();
    const options = { hub: `${server.url}/` };
    const failure = (address, more = {}) => world.load(address, { ...options, ...more });
    const closed = await failure('hf:kilim-nn/private/digits.onnx');
    assert.deepEqual([closed.code, closed.got], ['IO', '401 Unauthorized']);
    assert.match(closed.hint, /`token`/);
    assert.deepEqual((await failure('hf:kilim-nn/private/digits.onnx', { token: 'secret', cache: false })).inputs, ['image']);
    assert.deepEqual(await world.cache('list'), []);
    const missing = await failure('hf:kilim-nn/digits/model.onnx');
    assert.match(missing.message, /no file `model.onnx`.*its models are onnx\/digits.onnx/);
    assert.equal((await failure('hf:kilim-nn/digits/onnx/digits.onnx', { revision: 'v2' })).got, '404 Not Found');
    assert.equal((await failure('hf:kilim-nn/odd/digits.onnx')).code, 'IO');
    for (const address of ['hf:', 'hf:one', 'hf:one/two', 'hf:one/two/', 'hf:one/two/../x', 'hf:one/t wo/x', 'hf:one/two/%2e%2e/x'])
      assert.equal((await failure(address)).code, 'INVALID_VALUE', address);
    // A file that is not the one that is listed.
    server.repositories['kilim-nn/digits'].sent = { 'onnx/digits.onnx': Buffer.from(noise(digits.length)) };
    const other = await failure('hf:kilim-nn/digits/onnx/digits.onnx');
    assert.deepEqual([other.code, other.expected], ['IO', `sha256-${sha256(digits)}`]);
    assert.deepEqual(await world.cache('list'), []);
    await world.cache('clear');
  });

  test(`hashes are held against what comes: ${where}`, async () => {
    const server = await hub({
      'digits.onnx': { bytes: digits },
      'model.onnx': { bytes: Buffer.from(outside.bytes) },
      weights: { bytes: weights },
    });
    const address = `${server.url}/files/digits.onnx`;
    const integrity = `sha256-${sha256(digits)}`;
    assert.deepEqual((await world.load(address, { integrity })).inputs, ['image']);
    const other = await world.load(address, { integrity: `sha256-${sha256(weights)}` });
    assert.deepEqual([other.name, other.code, other.got], ['KilimError', 'IO', integrity]);
    for (const wrong of ['', 'sha256-abc', `sha512-${sha256(digits)}`])
      assert.equal((await world.load(address, { integrity: wrong })).code, 'INVALID_VALUE');
    const two = { externalData: { 'model.onnx_data': `${server.url}/files/weights` } };
    const hashes = { 'model.onnx': `sha256-${sha256(outside.bytes)}`, 'model.onnx_data': `sha256-${sha256(weights)}` };
    assert.deepEqual((await world.load(`${server.url}/files/model.onnx`, { ...two, integrity: hashes })).inputs, ['input_ids']);
    const swapped = { ...hashes, 'model.onnx_data': hashes['model.onnx'] };
    assert.equal((await world.load(`${server.url}/files/model.onnx`, { ...two, integrity: swapped })).code, 'IO');
    assert.equal((await world.load(address, { integrity: { nothing: integrity } })).code, 'INVALID_VALUE');
  });

  test(`files at addresses are kept, and fetched anew when they have changed: ${where}`, async () => {
    const server = await hub({ 'digits.onnx': { bytes: digits, tag: '"one"' } });
    const address = `${server.url}/files/digits.onnx`;
    const load = async (options = {}) => (await world.load(address, { cache: true, ...options })).inputs;
    const asked = async (options) => {
      const before = server.asked.length;
      assert.deepEqual(await load(options), ['image']);
      return server.asked.slice(before).map((line) => line.split(' ')[0]);
    };
    assert.deepEqual(await asked(), ['GET']);
    assert.deepEqual(await asked(), ['HEAD']);
    server.files['digits.onnx'].tag = '"two"';
    assert.deepEqual(await asked(), ['HEAD', 'GET']);
    // What has a hash is fetched for it once, and never asked about.
    const integrity = `sha256-${sha256(digits)}`;
    assert.deepEqual(await asked({ integrity }), ['GET']);
    assert.deepEqual(await asked({ integrity }), []);
    await server.close();
    assert.deepEqual(await load(), ['image']);
    const [kept] = await world.cache('list');
    assert.deepEqual([kept.address, kept.bytes], [address, digits.length]);
    assert.equal(await world.cache('clear'), 1);
    assert.equal((await world.load(address, { cache: true })).code, 'IO');
  });

  test(`a download that breaks off is taken up where it was: ${where}`, async () => {
    const third = Math.floor(digits.length / 3);
    const file = (more) => ({ bytes: digits, tag: '"one"', drops: [third], ...more });
    const server = await hub({
      twice: file({ drops: [third, third] }),
      never: file({ drops: [third, 0, 0, 0, 0] }),
      changed: file({ changes: '"two"' }),
      unnamed: file({ tag: undefined }),
      weak: file({ tag: 'W/"one"' }),
      whole: file({ ranges: false }),
      hashed: file({}),
    });
    const address = (name) => `${server.url}/files/${name}`;
    assert.deepEqual(await world.load(address('twice')), { inputs: ['image'], bytes: digits.length, rising: true });
    const ranges = server.asked.filter((line) => line.startsWith('GET /files/twice')).map((line) => line.split(' ')[2]);
    assert.equal(ranges.length, 3);
    assert.match(ranges[1], /^bytes=\d+-$/);
    const integrity = `sha256-${sha256(digits)}`;
    assert.deepEqual((await world.load(address('hashed'), { integrity })).inputs, ['image']);
    for (const name of ['never', 'changed', 'unnamed', 'weak', 'whole']) {
      const { code, message } = await world.load(address(name));
      assert.equal(code, 'IO', `${name}: ${message}`);
    }
  });
}

test('pieces of files that are kept are no files', async () => {
  const server = await hub();
  const options = { hub: server.url };
  const address = 'hf:kilim-nn/digits/onnx/digits.onnx';
  assert.deepEqual((await inNode.load(address, options)).inputs, ['image']);
  for (const folder of readdirSync(scratch))
    for (const name of readdirSync(join(scratch, folder))) if (name.endsWith('.onnx')) rmSync(join(scratch, folder, name));
  assert.deepEqual((await inNode.load(address, options)).inputs, ['image']);
  assert.equal(fileRequests(server).length, 2);
  await inNode.cache('clear');
});

test('what was found out of the machine is kept beside the model', async () => {
  const server = await hub();
  const seen = await here.page.evaluate(async (hub) => {
    const store = await caches.open('kilim');
    const bytes = async () => {
      const key = (await store.keys()).find(({ url }) => url.endsWith('?kilim-found'));
      return key ? (await (await store.match(key)).blob()).size : 0;
    };
    const options = { hub, backends: ['cpu'], tune: true };
    const visits = [];
    for (let visit = 0; visit < 2; visit++) {
      const session = await kilim.load('hf:kilim-nn/digits/onnx/digits.onnx', options);
      await session.run({ image: await digit(5) });
      const { tuning, cache } = session.report;
      const own = (await session.saveCache()).length;
      // It is written beside what the page does.
      for (let wait = 0; wait < 100 && (await bytes()) < own; wait++) await new Promise((resolve) => setTimeout(resolve, 50));
      visits.push({ measured: tuning.map(({ times }) => times.length), cache });
      session.close();
    }
    return visits;
  }, server.url);
  const [first, again] = seen;
  assert.ok(first.measured.length > 0 && first.measured.every((times) => times > 1), JSON.stringify(first));
  assert.deepEqual(again, { measured: first.measured.map(() => 0), cache: null });
  await inPage.cache('clear');
});

test('a page without https can keep nothing, and says so', async () => {
  const server = await hub();
  const failure = await here.page.evaluate(async (hub) => {
    const own = Object.getOwnPropertyDescriptor(globalThis, 'caches') ?? Object.getOwnPropertyDescriptor(Window.prototype, 'caches');
    delete globalThis.caches;
    delete Window.prototype.caches;
    try {
      const address = 'hf:kilim-nn/digits/onnx/digits.onnx';
      const session = await kilim.load(address, { hub, backends: ['cpu'] });
      session.close();
      const code = await kilim.load(address, { hub, cache: true }).catch((error) => error.code);
      return [session.inputs.length, code, (await (await import('/kilim/cache.js')).list()).length];
    } finally {
      if (own) Object.defineProperty(globalThis, 'caches', own);
    }
  }, server.url);
  assert.deepEqual(failure, [1, 'UNSUPPORTED', 0]);
});

const ggml = references('ggml');
const TEXT = {
  'kilim-nn/letters': {
    commit: COMMIT,
    files: {
      'small/onnx/model.onnx': Buffer.from(outside.bytes),
      'small/onnx/model.onnx_data': weights,
      'small/config.json': Buffer.from(JSON.stringify({ max_position_embeddings: 64, num_attention_heads: 1, hidden_size: 16 })),
      'small/tokenizer.json': Buffer.from(tokenizer()),
      'words.gguf': Buffer.from(ggml.get('words-joined/model.gguf')),
    },
  },
  'kilim-nn/whisper': {
    commit: COMMIT,
    files: Object.fromEntries(
      [...references('speech')]
        .filter(([name]) => name.startsWith('whisper/'))
        .map(([name, bytes]) => [name.slice('whisper/'.length), Buffer.from(bytes)]),
    ),
  },
};

test('folders of text and of speech come from the hub, and without it from then on', async () => {
  const server = await hub({}, TEXT);
  const options = { hub: server.url, backends: ['cpu'], worker: false };
  for (let visit = 0; visit < 2; visit++) {
    const told = [];
    const letters = await loadText('hf:kilim-nn/letters/small', options);
    assert.equal((await letters.generate('ab', { maxWords: 3 })).words.length, 3);
    const words = await loadText('hf:kilim-nn/letters/words.gguf', {
      ...options,
      onProgress: ({ phase, loaded }) => phase === 'download' && told.push(loaded),
    });
    assert.ok((await words.generate('a', { maxWords: 2 })).words.length > 0);
    assert.ok(told.includes(TEXT['kilim-nn/letters'].files['words.gguf'].length));
    const speech = await loadSpeech('hf:kilim-nn/whisper', options);
    assert.equal((await speech.transcribe(sound(RECORDING))).text, SAID);
    for (const model of [letters, words, speech]) model.close();
    if (visit === 0) await server.close();
  }
  const repository = await kilimHere.openHub('hf:kilim-nn/letters/', { hub: server.url });
  assert.deepEqual([repository.name, repository.commit, repository.paths.length], ['kilim-nn/letters', COMMIT, 5]);
  assert.equal(JSON.parse(new TextDecoder().decode(await repository.read('small/config.json'))).hidden_size, 16);
  const refused = (code, promise) => assert.rejects(promise, { name: 'KilimError', code });
  await refused('IO', repository.read('nothing.json'));
  await refused('IO', kilimHere.openHub('hf:kilim-nn/other', { hub: server.url }));
  await refused('INVALID_VALUE', kilimHere.openHub('hf:kilim-nn', { hub: server.url }));
  await refused('INVALID_VALUE', kilimHere.openHub('hf:kilim-nn/letters', { revisions: 1 }));
  await refused('IO', loadText('hf:kilim-nn/letters/large', options));
});
