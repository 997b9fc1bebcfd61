// Tensors from pictures, held against Pillow and torchvision (tools/references/preprocessing.py) and against formulas in float64; in Node, and of every
// kind of picture that a page has.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Tensor } from '../dist/kilim/node.js';
import { optionsFor, placementOf, readPicture, toImageData, toTensor } from '../dist/kilim/node.pictures.js';
import { launchPicturesPage } from './support/drawn.mjs';
import { www } from './support/folders.mjs';
import { noise } from './support/noise.mjs';

const cases = (name) => JSON.parse(readFileSync(join(www, 'fixtures', 'preprocessing', `${name}.json`), 'utf8'));
const picture = (width, height) => ({ width, height, data: noise(4 * width * height) });

test('bytes are those of Pillow, for each of its filters', () => {
  const all = cases('resized');
  assert.equal(all.length, 80);
  for (const { from, to, channels, resample, sha256 } of all) {
    const options = { size: { width: to[0], height: to[1] }, layout: 'HWC', type: 'uint8', channels, resample };
    const { data } = toTensor(picture(...from), options);
    assert.equal(createHash('sha256').update(data).digest('hex'), sha256, JSON.stringify({ from, to, channels, resample }));
  }
});

test("elements are those of torchvision's Resize, CenterCrop, ToTensor and Normalize", () => {
  for (const { from, float32, ...options } of cases('prepared')) {
    const want = new Float32Array(new Uint8Array(Buffer.from(float32, 'base64')).buffer);
    const { data, dims } = toTensor(picture(...from), { ...options, fit: 'cover' });
    assert.deepEqual(dims, [1, 3, options.size, options.size]);
    // torchvision rounds to float32 three times.
    data.forEach((value, i) => assert.ok(Math.abs(value - want[i]) <= 1e-6, `${i}: ${value} is not ${want[i]}`));
  }
});

/** A channel of a picture at a place that may be between pixels, weighed by a triangle of this half width. */
function triangle(length, at, reach) {
  const weights = Array.from({ length }, (_, i) => Math.max(0, 1 - Math.abs((i + 0.5 - at) / reach)));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

for (const antialias of [true, false]) {
  test(`the filter is the triangle in float64, to a rounding of each pass (antialias: ${antialias})`, () => {
    for (const [width, height, w, h] of [
      [40, 30, 9, 7],
      [9, 7, 31, 20],
    ]) {
      const source = picture(width, height);
      const { data } = toTensor(source, { size: { width: w, height: h }, type: 'uint8', layout: 'HWC', antialias });
      for (let y = 0; y < h; y++) {
        const down = triangle(height, ((y + 0.5) * height) / h, antialias ? Math.max(1, height / h) : 1);
        for (let x = 0; x < w; x++) {
          const across = triangle(width, ((x + 0.5) * width) / w, antialias ? Math.max(1, width / w) : 1);
          for (let c = 0; c < 3; c++) {
            let want = 0;
            for (let j = 0; j < height; j++)
              for (let i = 0; i < width; i++) want += down[j] * across[i] * source.data[4 * (j * width + i) + c];
            assert.ok(Math.abs(data[3 * (y * w + x) + c] - want) <= 1.01, `${x}, ${y}: ${data[3 * (y * w + x) + c]} is not ${want}`);
          }
        }
      }
    }
  });
}

const dots = { width: 2, height: 1, data: Uint8Array.of(10, 20, 30, 255, 200, 100, 0, 51) };
const list = ({ data }) => [...data];

test('layouts, channels, types and ranges', () => {
  const bytes = { type: 'uint8' };
  assert.deepEqual(list(toTensor(dots, bytes)), [10, 200, 20, 100, 30, 0]);
  assert.deepEqual(list(toTensor(dots, { ...bytes, layout: 'NHWC' })), [10, 20, 30, 200, 100, 0]);
  assert.deepEqual(list(toTensor(dots, { ...bytes, layout: 'NHWC', channels: 'BGR' })), [30, 20, 10, 0, 100, 200]);
  assert.deepEqual(list(toTensor(dots, { ...bytes, layout: 'CHW', channels: 'RGBA' })), [10, 200, 20, 100, 30, 0, 255, 51]);
  // (19595 · 10 + 38470 · 20 + 7471 · 30) / 65536 = 18.2, and 118.5 of the other pixel.
  assert.deepEqual(list(toTensor(dots, { ...bytes, channels: 'gray' })), [18, 118]);
  assert.deepEqual(list(toTensor(dots, { ...bytes, background: [255, 255, 255] })), [10, 244, 20, 224, 30, 204]);
  assert.deepEqual(list(toTensor(dots, { type: 'int8' })), [-118, 72, -108, -28, -98, -128]);
  assert.deepEqual(list(toTensor(dots, { type: 'int32', mean: [0, 1, 2], std: 2 })), [5, 100, 10, 50, 14, -1]);
  assert.deepEqual(list(toTensor(dots, { scale: 1, mean: 10, std: 2 })), [0, 95, 5, 45, 10, -5]);
  assert.deepEqual(
    list(toTensor(dots)),
    [10, 200, 20, 100, 30, 0].map((byte) => Math.fround(byte / 255)),
  );
  const half = toTensor(dots, { type: 'float16', scale: 0.5 });
  assert.deepEqual([...half.toNumbers()], [5, 100, 10, 50, 15, 0]);
  assert.deepEqual(toTensor([dots, dots], { layout: 'NHWC' }).dims, [2, 1, 2, 3]);
  assert.deepEqual(toTensor(dots, { layout: 'HWC' }).dims, [1, 2, 3]);
});

test('places: stretched, covering, letterboxed and cropped', () => {
  const source = picture(8, 4);
  const bytes = { type: 'uint8', channels: 'gray', layout: 'HWC' };
  const whole = list(toTensor(source, bytes));
  const boxed = toTensor(source, { ...bytes, size: 8, fit: 'letterbox', padding: 7 });
  assert.deepEqual(list(boxed), [...Array(16).fill(7), ...whole, ...Array(16).fill(7)]);
  assert.deepEqual(list(toTensor(source, { ...bytes, size: 8, fit: 'letterbox', align: 'start' })), [...whole, ...Array(32).fill(0)]);
  const middle = [0, 1, 2, 3].flatMap((y) => whole.slice(8 * y + 2, 8 * y + 6));
  assert.deepEqual(list(toTensor(source, { ...bytes, size: 4, fit: 'cover' })), middle);
  assert.deepEqual(list(toTensor(source, { ...bytes, crop: { x: 2, y: 0, width: 4, height: 4 } })), middle);
  assert.deepEqual(placementOf(source, { size: 16, fit: 'letterbox' }), { scaleX: 2, scaleY: 2, offsetX: 0, offsetY: 4 });
  assert.deepEqual(placementOf({ width: 8, height: 4 }, { size: 8, fit: 'cover' }), { scaleX: 2, scaleY: 2, offsetX: -4, offsetY: 0 });
  const cropped = { crop: { x: 2, y: 0, width: 4, height: 4 }, size: 8 };
  assert.deepEqual(placementOf(source, cropped), { scaleX: 2, scaleY: 2, offsetX: -4, offsetY: 0 });
  // A line is never less than a pixel.
  assert.deepEqual(toTensor(picture(300, 1), { size: 10, fit: 'letterbox' }).dims, [1, 3, 10, 10]);
});

test('a picture goes there and back', () => {
  const source = picture(5, 4);
  const opaque = source.data.map((byte, i) => (i % 4 === 3 ? 255 : byte));
  for (const type of ['float32', 'float64', 'uint8', 'int8', 'int64'])
    for (const layout of ['NCHW', 'NHWC', 'CHW', 'HWC'])
      for (const channels of ['RGB', 'BGR']) {
        const own = type.startsWith('float') ? { mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.1] } : {};
        const back = toImageData(toTensor(source, { type, layout, channels, ...own }), { layout, channels, ...own });
        assert.deepEqual([back.width, back.height, [...back.data]], [5, 4, [...opaque]], `${type} ${layout} ${channels}`);
      }
  const rgba = toImageData(toTensor(source, { channels: 'RGBA' }));
  assert.deepEqual([...rgba.data], [...source.data]);
  const grey = toImageData(new Tensor('float32', [1, 2], Float32Array.of(0.5, 7)));
  assert.deepEqual([...grey.data], [128, 128, 128, 255, 255, 255, 255, 255]);
  const second = toImageData(toTensor([picture(5, 4), dots], { size: 2, type: 'uint8' }), { item: 1 });
  assert.equal(second.data[0], 10);
});

test("an input's dimensions say what a picture becomes", () => {
  const of = (dims, type = 'float32') => optionsFor({ dims, type });
  assert.deepEqual(of(['N', 3, 224, 192]), { type: 'float32', layout: 'NCHW', channels: 'RGB', size: { width: 192, height: 224 } });
  assert.deepEqual(of([1, 96, 96, 1], 'int8'), { type: 'int8', layout: 'NHWC', channels: 'gray', size: { width: 96, height: 96 } });
  assert.deepEqual(of([3, 'h', 'w'], null), { type: 'float32', layout: 'CHW', channels: 'RGB' });
  for (const dims of [null, [1, 10], ['N', 'C', 224, 224], [1, 2, 3, 4, 5]]) assert.equal(of(dims), undefined);
});

test('what cannot be done is refused with the reason', async () => {
  const refused = (code, call, parts = {}) => assert.throws(call, { name: 'KilimError', code, ...parts });
  refused('INVALID_VALUE', () => toTensor(dots, { sizes: 3 }), { message: /no option `sizes`/ });
  refused('INVALID_VALUE', () => toTensor(dots, { size: 0 }));
  refused('INVALID_VALUE', () => toTensor(dots, { std: [1, 0, 1] }));
  refused('INVALID_VALUE', () => toTensor(dots, { crop: { x: 1, y: 0, width: 2, height: 1 } }), { got: '2 × 1 at 1, 0' });
  refused('INVALID_VALUE', () => toTensor(dots, { crop: { x: 0.5, y: 0, width: 1, height: 1 } }));
  refused('INVALID_VALUE', () => toTensor(dots, { shorter: 9 }));
  refused('INVALID_VALUE', () => toTensor(dots, { fit: 'cover', size: 9, shorter: 3 }));
  refused('INVALID_VALUE', () => toTensor(dots, { channels: 'RGBA', background: [0, 0, 0] }));
  refused('SHAPE', () => toTensor(dots, { mean: [1, 2] }), { expected: '3', got: '2' });
  refused('SHAPE', () => toTensor([dots, picture(3, 3)]));
  refused('SHAPE', () => toTensor([dots, dots], { layout: 'HWC' }));
  refused('SHAPE', () => toTensor([]));
  refused('SHAPE', () => toTensor({ ...dots, width: 3 }), { expected: '12 bytes, four to a pixel' });
  refused('DTYPE', () => toTensor(dots, { type: 'string' }));
  refused('DTYPE', () => toTensor(dots, { type: 'complex64' }));
  refused('LIMIT', () => toTensor(dots, { size: 2 ** 26 }));
  for (const given of [null, 3, 'file.png', {}]) refused('INVALID_VALUE', () => toTensor(given));
  // Something to draw, for all that Node knows.
  refused('UNSUPPORTED', () => toTensor({ width: 2, height: 2 }));
  refused('INVALID_VALUE', () => toTensor(new Blob([])), { hint: /readPicture/ });
  refused('SHAPE', () => toImageData(new Tensor('float32', [10])));
  refused('SHAPE', () => toImageData(new Tensor('float32', [1, 5, 5, 5])));
  refused('SHAPE', () => toImageData(new Tensor('float32', [1, 3, 4, 4]), { channels: 'gray' }));
  refused('INVALID_VALUE', () => toImageData(new Tensor('float32', [1, 3, 4, 4]), { item: 1 }));
  await assert.rejects(readPicture(new Blob([])), { code: 'UNSUPPORTED' });
  await assert.rejects(Tensor.from(new Blob([])), { code: 'UNSUPPORTED' });
  assert.deepEqual(list(await Tensor.from(dots, { type: 'uint8' })), [10, 200, 20, 100, 30, 0]);
});

const here = launchPicturesPage();
const want = () => {
  const opaque = picture(24, 16);
  opaque.data.forEach((_, i) => {
    if (i % 4 === 3) opaque.data[i] = 255;
  });
  return list(toTensor(opaque, { size: 7, fit: 'letterbox', crop: { x: 3, y: 2, width: 20, height: 13 } }));
};

for (const kind of ['pixels', 'ImageData', 'ImageBitmap', 'OffscreenCanvas', 'canvas', 'VideoFrame', 'img', 'Blob']) {
  test(`${kind} gives the elements of its pixels`, async () => assert.deepEqual(await here.drawn(kind), want()));
}

test('a worker makes them, too', async () => assert.deepEqual(await here.drawnInWorker('ImageBitmap'), want()));

test('pictures that are not there, and those that may not be read, are errors', async () => {
  assert.deepEqual(await here.failures(), {
    closed: 'INVALID_VALUE',
    unloaded: 'INVALID_VALUE',
    broken: 'IO',
    foreign: 'IO',
    video: 'INVALID_VALUE',
  });
});

test('the code is fetched by the first call', async () => {
  assert.ok(here.before !== undefined && !here.before.includes('/kilim/pictures.js'));
  assert.ok(here.server.asked.includes('/kilim/pictures.js'));
});
