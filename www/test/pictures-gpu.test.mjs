// Pictures that become tensors on the session's GPU, held against the tensors that the CPU makes of them: the elements are the same ones.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { www } from './support/folders.mjs';
import { model } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';
import { serve } from './support/server.mjs';

const negated = [
  ...model({ nodes: [['Neg', ['x'], ['y']]], inputs: [['x', ['n', 'c', 'h', 'w']]], outputs: [['y', ['n', 'c', 'h', 'w']]] }),
];

const other = serve([['/assets/', join(www, '..', 'assets')]]);
after(async () => (await other).close());

const here = packagePage({
  headers: { 'content-security-policy': "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src *" },
  folders: [['/support/', join(www, 'test', 'support')]],
  opened: (page) =>
    page.evaluate(async (negated) => {
      const { noise } = await import('/support/noise.mjs');
      /** A picture of noise, without translucent pixels unless they are wanted. */
      globalThis.noisy = (width, height, opaque = true) => {
        const data = new Uint8ClampedArray(noise(4 * width * height)).map((byte, i) => (opaque && i % 4 === 3 ? 255 : byte));
        return { width, height, data };
      };
      globalThis.drawn = ({ width, height, data }) => {
        const canvas = new OffscreenCanvas(width, height);
        canvas.getContext('2d').putImageData(new ImageData(data, width, height), 0, 0);
        return canvas;
      };
      globalThis.sources = {
        pixels: () => noisy(64, 48),
        'translucent pixels': () => noisy(64, 48, false),
        'a batch': () => [noisy(64, 48), noisy(30, 70)],
        ImageData: () => new ImageData(noisy(24, 16).data, 24, 16),
        ImageBitmap: () => createImageBitmap(drawn(noisy(24, 16))),
        OffscreenCanvas: () => drawn(noisy(24, 16)),
        canvas() {
          const canvas = Object.assign(document.createElement('canvas'), { width: 24, height: 16 });
          canvas.getContext('2d').drawImage(drawn(noisy(24, 16)), 0, 0);
          return canvas;
        },
        VideoFrame: () => new VideoFrame(drawn(noisy(24, 16)), { timestamp: 0 }),
        // Brightness for each pixel, colours for each four.
        'VideoFrame of a camera': () =>
          new VideoFrame(noisy(24, 16).data.slice(0, 576), { format: 'I420', codedWidth: 24, codedHeight: 16, timestamp: 0 }),
        async img() {
          const img = new Image();
          img.src = '/assets/digit-7.png';
          await img.decode();
          return img;
        },
        Blob: async () => (await fetch('/assets/digit-7.png')).blob(),
      };
      globalThis.open = (options) => kilim.load(Uint8Array.from(negated), { backends: ['wgpu', 'cpu'], pins: ['op:Neg=wgpu'], ...options });
      /** How the tensor on the GPU differs from that of the CPU: nothing, or the largest difference. */
      globalThis.differs = async (session, picture, options) => {
        const made = await kilim.Tensor.from(picture, { ...options, session });
        if (!(made instanceof kilim.DeviceTensor)) return 'it is on the CPU';
        const [on, by] = [await made.read(), await kilim.Tensor.from(picture, options)];
        made.dispose();
        if (on.type !== by.type || String(on.dims) !== String(by.dims)) return `${on.type} [${on.dims}] is not ${by.type} [${by.dims}]`;
        const most = by.data.reduce((most, value, i) => Math.max(most, Math.abs(value - on.data[i])), 0);
        return most === 0 ? undefined : most;
      };
    }, negated),
});

/** What differs for which options; `pictures` names those of the page. */
const different = (pictures, all, worker = true) =>
  here.page.evaluate(
    async ([pictures, all, worker]) => {
      const session = await open({ worker });
      const found = [];
      for (const options of all) {
        const difference = await differs(session, await sources[pictures](), options);
        if (difference !== undefined) found.push([options, difference]);
      }
      session.close();
      return found;
    },
    [pictures, all, worker],
  );

test('places, filters, layouts, channels, types and ranges are those of the CPU', async () => {
  const size = { width: 37, height: 19 };
  const all = [
    ...['nearest', 'box', 'bilinear', 'bicubic', 'lanczos'].flatMap((resample) => [
      { resample, size: 9 },
      { resample, size, antialias: false },
      { resample, size: { width: 200, height: 21 } },
    ]),
    {},
    { size, fit: 'letterbox', padding: [1, 2, 3] },
    { size, fit: 'letterbox', align: 'start', layout: 'HWC', channels: 'BGR', padding: [200, 100, 0] },
    { size: 24, fit: 'cover', shorter: 30, layout: 'NHWC' },
    { size: 16, crop: { x: 3, y: 5, width: 41, height: 30 } },
    { size, channels: 'gray', layout: 'CHW' },
    { size, channels: 'RGBA' },
    { size, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
    ...['uint8', 'int8', 'int16', 'uint16', 'int32', 'uint32'].map((type) => ({ size, type })),
  ];
  assert.deepEqual(await different('pixels', all), []);
  assert.deepEqual(await different('pixels', all.slice(0, 3), false), [], 'in the calling thread');
  const translucent = [
    { size, background: [255, 128, 0] },
    { size, channels: 'gray', background: [9, 8, 7] },
    { channels: 'RGBA', size: 11 },
  ];
  assert.deepEqual(await different('translucent pixels', translucent), []);
  assert.deepEqual(await different('a batch', [{ size }, { size, layout: 'NHWC', fit: 'letterbox' }]), []);
});

const KINDS = ['ImageData', 'ImageBitmap', 'OffscreenCanvas', 'canvas', 'VideoFrame', 'VideoFrame of a camera', 'img', 'Blob'];
for (const kind of KINDS) {
  test(`${kind} gives the elements of the CPU`, async () => {
    const options = { size: 7, fit: 'letterbox', crop: { x: 3, y: 2, width: 20, height: 13 } };
    assert.deepEqual(await different(kind, [options]), []);
  });
}

test('colours of translucent pixels are those of the file, where a canvas rounds them', async () => {
  // A canvas holds colours multiplied by alpha: at 64 of 255 it knows a colour to two steps of 255.
  const found = await here.page.evaluate(async () => {
    const data = noisy(24, 16).data.map((byte, i) => (i % 4 === 3 ? 64 + (byte % 192) : byte));
    const bitmap = await createImageBitmap(new ImageData(data, 24, 16), { premultiplyAlpha: 'none' });
    const session = await open();
    const made = await kilim.Tensor.from(bitmap, { session, type: 'int32', layout: 'HWC', channels: 'RGBA' });
    const [on, by] = [await made.read(), await kilim.Tensor.from(bitmap, { type: 'int32', layout: 'HWC', channels: 'RGBA' })];
    session.close();
    const most = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
    return [most(on.data, data), most(on.data, by.data)];
  });
  assert.equal(found[0], 0);
  assert.ok(found[1] <= 2, `${found[1]} steps`);
});

test('a run takes it where it is, and the picture stays the caller’s', async () => {
  const seen = await here.page.evaluate(async () => {
    const session = await open();
    const [pixels, bitmap] = [noisy(12, 10), await createImageBitmap(drawn(noisy(12, 10)))];
    const sums = [];
    for (const picture of [pixels, bitmap, bitmap]) {
      const x = await kilim.Tensor.from(picture, { session, scale: 1 });
      const { y } = await session.run({ x }, { consume: ['x'] });
      sums.push(y.data.reduce((sum, value) => sum + value, 0));
    }
    const want = (await kilim.Tensor.from(pixels, { scale: 1 })).data.reduce((sum, value) => sum - value, 0);
    const [{ kept }, { length }, { width }] = [session, pixels.data, bitmap];
    session.close();
    return { sums, want, kept, length, width };
  });
  assert.deepEqual(seen, { sums: [seen.want, seen.want, seen.want], want: seen.want, kept: 0, length: 480, width: 12 });
});

test('where there is no GPU, or elements have other bits there, the CPU makes it', async () => {
  const made = await here.page.evaluate(async () => {
    const [gpu, cpu] = [await open(), await open({ backends: ['cpu'], pins: [] })];
    const isHost = async (options) => !((await kilim.Tensor.from(noisy(8, 8), options)) instanceof kilim.DeviceTensor);
    const all = [
      { session: cpu },
      { session: gpu, type: 'float16' },
      { session: gpu, type: 'int64' },
      { session: gpu, background: [0.5, 0, 0] },
    ];
    const found = [];
    for (const options of all) found.push(await isHost(options));
    for (const session of [gpu, cpu]) session.close();
    return found;
  });
  assert.deepEqual(made, [true, true, true, true]);
});

test('what cannot be painted is an error with the reason', async () => {
  const codes = await here.page.evaluate(
    async (foreign) => {
      const session = await open();
      const codeOf = (picture, options) =>
        kilim.Tensor.from(picture, { session, ...options }).then(
          () => undefined,
          ({ name, code }) => name === 'KilimError' && code,
        );
      const bitmap = await createImageBitmap(drawn(noisy(8, 8)));
      bitmap.close();
      const tainted = new Image();
      tainted.src = foreign;
      await tainted.decode();
      const seen = [
        await codeOf(bitmap),
        await codeOf(tainted),
        await codeOf(noisy(8, 8), { crop: { x: 4, y: 0, width: 8, height: 8 } }),
        await codeOf(noisy(8, 8), { session: {} }),
        await codeOf(noisy(8, 8), { sizes: 3 }),
      ];
      session.close();
      return [...seen, await codeOf(noisy(8, 8))];
    },
    `${(await other).url}/assets/digit-7.png`,
  );
  assert.deepEqual(codes, ['INVALID_VALUE', 'IO', 'INVALID_VALUE', 'INVALID_VALUE', 'INVALID_VALUE', 'STATE']);
});

test('the code is fetched for the first picture alone', async () => {
  const server = await serve([
    ['/kilim/', join(www, 'dist', 'kilim')],
    ['/assets/', join(www, '..', 'assets')],
  ]);
  const page = await here.browser.newPage();
  try {
    await page.goto(`${server.url}/empty`);
    const run = (options) =>
      page.evaluate(async (options) => {
        const { Tensor, load } = await import('/kilim/index.js');
        const session = await load('/assets/digits.onnx', { backends: ['wgpu', 'cpu'], pins: ['op:Conv=wgpu'] });
        const data = new Uint8ClampedArray(4 * 28 * 28);
        const image = await Tensor.from({ width: 28, height: 28, data }, { channels: 'gray', ...(options && { session }) });
        const { probabilities } = await session.run({ image });
        session.close();
        return [...probabilities.data];
      }, options);
    const usual = await run(false);
    const times = () => server.asked.filter((path) => path === '/kilim/painter.js').length;
    assert.equal(times(), 0);
    assert.deepEqual(await run(true), usual);
    assert.equal(times(), 1);
  } finally {
    await page.close();
    await server.close();
  }
});
