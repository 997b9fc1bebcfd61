// Calls every export of the package with what nobody should give it.

const thrower = () => {
  throw new RangeError("the caller's own error");
};
const throwing = (...names) =>
  Object.defineProperties({}, Object.fromEntries(names.map((name) => [name, { get: thrower, enumerable: true }])));
const detached = (buffer) => {
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
};
const detachedArray = (Kind) => {
  const array = new Kind(2);
  detached(array.buffer);
  return array;
};
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const evil = () =>
  new Proxy(
    {},
    Object.fromEntries(
      Reflect.ownKeys(Reflect)
        .filter((trap) => typeof trap === 'string')
        .map((trap) => [trap, thrower]),
    ),
  );
const shrunk = () => {
  const buffer = new ArrayBuffer(16, { maxByteLength: 16 });
  const array = new Float32Array(buffer, 8, 2);
  buffer.resize(4);
  return array;
};

/** Makes them anew for every call: some are used up. */
const VALUES = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  NaN: () => NaN,
  'minus one': () => -1,
  half: () => 0.5,
  'a large number': () => 2 ** 40,
  'a larger number': () => 2 ** 60,
  Infinity: () => Infinity,
  bigint: () => 1n,
  'no text': () => '',
  text: () => 'text',
  __proto__: () => '__proto__',
  toString: () => 'toString',
  'long text': () => 'x'.repeat(1e6),
  surrogate: () => '\ud800',
  symbol: () => Symbol('symbol'),
  function: () => () => undefined,
  thrower: () => thrower,
  class: () => class {},
  generator: () => function* () {},
  '[]': () => [],
  '[1n]': () => [1n],
  '[symbol]': () => [Symbol('symbol')],
  '[[1]]': () => [[1]],
  '[,1]': () => [, 1],
  holes: () => new Array(3),
  '[null]': () => [null],
  "['x']": () => ['x'],
  "['x', 1]": () => ['x', 1],
  '[NaN]': () => [NaN],
  '[2 ** 40]': () => [2 ** 40],
  '[2 ** 60, 2 ** 60]': () => [2 ** 60, 2 ** 60],
  '[-1]': () => [-1],
  '[thrower]': () => Object.defineProperty([], 0, { get: thrower, enumerable: true }),
  'a throwing length': () => new Proxy([1, 2], { get: thrower }),
  '{}': () => ({}),
  'no prototype': () => Object.create(null),
  'all throws': evil,
  revoked,
  'throws as text': () => ({ toString: thrower, [Symbol.toPrimitive]: thrower, toJSON: thrower }),
  'throws in its name': () => ({
    get [Symbol.toStringTag]() {
      return thrower();
    },
  }),
  thenable: () => ({ then: thrower }),
  'code and message': () => ({ code: 'X', message: 'y' }),
  length: () => ({ length: 2 }),
  'huge length': () => ({ length: 2 ** 40 }),
  'negative length': () => ({ length: -1 }),
  find: () => ({ find: thrower }),
  arguments: (function make() {
    return () => arguments;
  })(1, 2),
  date: () => new Date(NaN),
  regexp: () => /x/,
  map: () => new Map([['x', 1]]),
  set: () => new Set([1]),
  weakmap: () => new WeakMap(),
  promise: () => Promise.resolve(1),
  error: () => new Error('error'),
  'boxed text': () => new String('cpu'),
  'boxed number': () => new Number(1),
  buffer: () => new ArrayBuffer(8),
  'no buffer': () => new ArrayBuffer(0),
  'detached buffer': () => detached(new ArrayBuffer(8)),
  shared: () => (typeof SharedArrayBuffer === 'undefined' ? null : new SharedArrayBuffer(8)),
  view: () => new DataView(new ArrayBuffer(8)),
  floats: () => new Float32Array(2),
  'no floats': () => new Float32Array(0),
  bytes: () => new Uint8Array(2),
  clamped: () => new Uint8ClampedArray(2),
  bigints: () => new BigInt64Array(2),
  'detached floats': () => detachedArray(Float32Array),
  'detached bytes': () => detachedArray(Uint8Array),
  'out of its bounds': shrunk,
  blob: () => new Blob(['no model']),
  response: () => new Response('no model'),
  'no response': () => Response.error(),
  'failed response': () => new Response('no', { status: 500 }),
  stream: () => new Blob(['no model']).stream(),
  'locked stream': () => {
    const stream = new Blob(['x']).stream();
    stream.getReader();
    return stream;
  },
  'a stream of texts': () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue('text');
        controller.close();
      },
    }),
  'a torn stream': () =>
    new ReadableStream({
      start(controller) {
        controller.error(thrower);
      },
    }),
  url: () => new URL('http://127.0.0.1:1/x'),
  'no address': () => 'http://:none',
  data: () => 'data:,no model',
  aborted: () => AbortSignal.abort(),
  signal: () => new AbortController().signal,
  module: () => new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)),
  global: () => globalThis,
  'throws when read': () => throwing('type', 'dims', 'data', 'x', 'length', 'signal', 'timeout', 'worker', 'backends', 'samples', 'url'),
  'an unknown type': () => ({ type: '__proto__', dims: [2], data: new Float32Array(2) }),
  'a symbol for a type': () => ({ type: Symbol('x'), dims: [2], data: new Float32Array(2) }),
  'throwing dims': () => ({
    type: 'float32',
    get dims() {
      return thrower();
    },
    data: new Float32Array(2),
  }),
  'throwing data': () => ({
    type: 'float32',
    dims: [2],
    get data() {
      return thrower();
    },
  }),
  'detached, of length 0': () => ({ type: 'float32', dims: [0], data: detachedArray(Float32Array) }),
  'dims that change': () => {
    let n = 0;
    return {
      type: 'float32',
      get dims() {
        return [n++];
      },
      data: new Float32Array(2),
    };
  },
  'data that changes': () => {
    let n = 0;
    return {
      type: 'float32',
      dims: [2],
      get data() {
        return n++ ? Symbol('x') : new Float32Array(2);
      },
    };
  },
  'typed dims': () => ({ type: 'float32', dims: Int32Array.of(2), data: new Float32Array(2) }),
  'no model input': () => ({ ['__proto__']: 1, constructor: 1 }),
  'an input of its own': () => ({ x: new Float32Array(2) }),
  'an input that throws': () => throwing('x'),
  'a detached input': () => ({ x: detachedArray(Float32Array) }),
  'an unknown option': () => ({ nope: 1 }),
  'an absent input': () => ({ x: null }),
  'a text as input': () => ({ x: 'text' }),
};

/** Every call, by its name: what it takes one piece of garbage for. `session` is one of a model whose input is `x`. */
const calls = ({ kilim, pictures, sound, cache }, model, session) => {
  const feeds = { x: [1, 2] };
  const options = [
    'backends',
    'strict',
    'pins',
    'precision',
    'configs',
    'without',
    'mixedPrecision',
    'dims',
    'outputs',
    'lastOnly',
    'schedule',
    'calibration',
    'tune',
    'cache',
    'memory',
    'keepWeights',
    'externalData',
    'operators',
    'onProgress',
    'signal',
    'worker',
    'wasm',
    'variant',
    'integrity',
    'revision',
    'token',
    'hub',
  ];
  const hub = 'http://127.0.0.1:1';
  const dots = { width: 1, height: 1, data: new Uint8Array(4) };
  const ofPictures = [
    'size',
    'crop',
    'fit',
    'shorter',
    'align',
    'scale',
    'mean',
    'std',
    'type',
    'layout',
    'channels',
    'padding',
    'background',
    'resample',
    'antialias',
  ];
  const loadWith = async (given) => (await kilim.load(model, { backends: ['cpu'], worker: false, ...given })).close();
  return {
    load: async (value) => (await kilim.load(value, { backends: ['cpu'], worker: false })).close(),
    'load in a worker': async (value) => (await kilim.load(value, { backends: ['cpu'] })).close(),
    'options of load': async (value) => (await kilim.load(model, value)).close(),
    ...Object.fromEntries(options.map((name) => [`option ${name}`, (value) => loadWith({ [name]: value })])),
    samples: (value) => loadWith({ mixedPrecision: { tolerance: 1, samples: value } }),
    'a sample': (value) => loadWith({ mixedPrecision: { tolerance: 1, samples: [value] } }),
    'a tolerance': (value) => loadWith({ mixedPrecision: { tolerance: value, samples: [feeds] } }),
    'a size': (value) => loadWith({ dims: { N: value } }),
    'an axis': (value) => loadWith({ lastOnly: { scores: value } }),
    'external data': (value) => loadWith({ externalData: { file: value } }),
    'options of prepare': (value) => kilim.prepare(value),
    'backends of calibrate': (value) => kilim.calibrate({ backends: value ?? [], worker: false }),
    pickBackends: (value) => kilim.pickBackends(value),
    detectVariant: (value) => kilim.detectVariant(value),
    feeds: (value) => session.run(value),
    'an input': (value) => session.run({ x: value }),
    'options of run': (value) => session.run(feeds, value),
    'a signal of run': (value) => session.run(feeds, { signal: value }),
    timeout: (value) => session.run(feeds, { timeout: value }),
    'an input of profile': (value) => session.profile({ x: value }),
    'options of profile': (value) => session.profile(feeds, value),
    'an input of verify': (value) => session.verify({ x: value }),
    'options of verify': (value) => session.verify(feeds, value),
    tolerance: (value) => session.verify(feeds, { tolerance: value }),
    reference: (value) => session.verify(feeds, { reference: value }),
    saveCache: (value) => session.saveCache(value),
    Session: (value) => new kilim.Session(value, value),
    'type of Tensor': (value) => new kilim.Tensor(value, [2]),
    'dims of Tensor': (value) => new kilim.Tensor('float32', value),
    'dims of texts': (value) => new kilim.Tensor('string', value),
    'a dim': (value) => new kilim.Tensor('float32', [value, 2]),
    'data of Tensor': (value) => new kilim.Tensor('float32', [0], value),
    'texts of Tensor': (value) => new kilim.Tensor('string', [2], value),
    toNumbers: (value) => kilim.toNumbers(value),
    'type of fromNumbers': (value) => kilim.fromNumbers(value, [2], [1, 2]),
    'dims of fromNumbers': (value) => kilim.fromNumbers('float32', value, [1, 2]),
    'values of fromNumbers': (value) => kilim.fromNumbers('float32', [2], value),
    ...Object.fromEntries(
      ['int64', 'int4', 'string', 'bool', 'float16', 'complex64'].map((type) => [
        `a value of ${type}`,
        (value) => kilim.fromNumbers(type, [2], [value, 1, value, 1].slice(0, type === 'complex64' ? 4 : 2)),
      ]),
    ),
    'a hash': (value) => loadWith({ integrity: { '': value } }),
    openHub: (value) => kilim.openHub(value, { hub }),
    'options of openHub': (value) => kilim.openHub('hf:owner', value),
    'a revision': (value) => kilim.load('hf:owner/name/model.onnx', { hub, revision: value, worker: false }),
    'a hub': (value) => kilim.load('hf:owner/name/model.onnx', { hub: value ?? hub, worker: false }),
    remove: (value) => cache.remove(value),
    'a picture of Tensor': (value) => kilim.Tensor.from(value),
    'options of Tensor.from': (value) => kilim.Tensor.from(dots, value),
    toTensor: (value) => pictures.toTensor(value),
    'pictures of toTensor': (value) => pictures.toTensor([dots, value]),
    'options of toTensor': (value) => pictures.toTensor(dots, value),
    'a width': (value) => pictures.toTensor({ ...dots, width: value }),
    'data of a picture': (value) => pictures.toTensor({ ...dots, data: value }),
    ...Object.fromEntries(ofPictures.map((name) => [`option ${name}`, (value) => pictures.toTensor(dots, { [name]: value })])),
    placementOf: (value) => pictures.placementOf(value),
    optionsFor: (value) => pictures.optionsFor(value),
    'dims of optionsFor': (value) => pictures.optionsFor({ dims: value }),
    toImageData: (value) => pictures.toImageData(value),
    'options of toImageData': (value) => pictures.toImageData({ type: 'float32', dims: [1, 1], data: new Float32Array(1) }, value),
    readPicture: (value) => pictures.readPicture(value),
    toSamples: (value) => sound.toSamples(value, 8000),
    'a rate': (value) => sound.toSamples(new Float32Array(2), value),
    'the rate of samples': (value) => sound.toSamples({ samples: new Float32Array(2), rate: value }, 8000),
    resample: (value) => sound.resample(value, 8000, 16_000),
    loadLogMel: async (value) => (await sound.loadLogMel(value, { worker: false })).close(),
    KilimError: (value) => {
      throw new kilim.KilimError(value, value, value, value);
    },
    'a part of KilimError': (value) => {
      throw new kilim.KilimError('IO', 'x', { got: value });
    },
  };
};

/** Does all of it with the modules `kilim`, `pictures`, `sound` and `cache` of the package. Gives how many calls were made, and those that failed as nothing of this package should, or not within 20 seconds. */
export async function throwGarbage(modules, model) {
  const { kilim } = modules;
  const session = await kilim.load(model, { backends: ['cpu'], worker: false, keepWeights: true });
  const wrong = [];
  let made = 0;
  for (const [name, call] of Object.entries(calls(modules, model, session))) {
    for (const [what, make] of Object.entries(VALUES)) {
      made++;
      let timer;
      const late = new Promise((_resolve, reject) => {
        timer = setTimeout(() => reject('nothing came'), 20_000);
      });
      try {
        await Promise.race([call(make()), late]);
      } catch (error) {
        if (!(error instanceof kilim.KilimError) || typeof error.message !== 'string')
          wrong.push(`${name}, ${what}: ${error?.stack ?? String(error)}`);
      }
      clearTimeout(timer);
    }
  }
  const { y } = await session.run({ x: [1, -2] });
  session.close();
  return { made, values: Object.keys(VALUES).length, wrong, y: [...y.data] };
}
