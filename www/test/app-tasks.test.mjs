// What models are for, in the web app: classes with labels, boxes, masks, points, embeddings; the camera and the microphone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { drop, appPage, dropModel, launchApp, test } from './support/app.mjs';
import { repository } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';

const PICTURE = { name: 'five.png', type: 'image/png', bytes: readFileSync(join(repository, 'assets', 'digit-5.png')) };

let app;
before(async () => {
  app = await launchApp(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
});
after(() => app.close());

/** A model that takes a picture and gives these values, whatever it shows. */
function always(outputs) {
  const entries = Object.entries(outputs);
  return model({
    nodes: [
      ['ReduceMax', ['x'], ['m'], { int: { keepdims: 0 } }],
      ['Mul', ['m', 'zero'], ['z']],
      ...entries.map(([name]) => ['Add', [`${name}_values`, 'z'], [name]]),
    ],
    inputs: [['x', [1, 3, 32, 32]]],
    outputs: entries.map(([name, { dims }]) => [name, dims]),
    initializers: [
      tensor('zero', [1], { floats: [0] }),
      ...entries.map(([name, { dims, floats }]) => tensor(`${name}_values`, dims, { floats })),
    ],
  });
}

/** A page with that model, which has run on a picture. */
async function ranOn(bytes) {
  const opened = await appPage(app);
  await dropModel(opened.page, 'model.onnx', bytes);
  await drop(opened.page, [PICTURE]);
  await opened.page.waitForFunction(() => /\d/.test(document.getElementById('run-time').textContent));
  return opened;
}

const texts = (page, testid) => page.getByTestId(testid).locator('li').allTextContents();

test('classes have the names of a file of labels', async () => {
  const floats = Array.from({ length: 15 }, (_, i) => (i === 7 ? 4 : i === 2 ? 3 : 0));
  const { page, done } = await ranOn(always({ scores: { dims: [1, 15], floats } }));
  assert.equal(await page.getByTestId('task').inputValue(), 'classify', 'it is guessed');
  assert.match((await texts(page, 'classes'))[0], /^class 7\d+\.\d %$/);
  const labels = {
    'labels.txt': 'one\n'.repeat(7).concat('a cat\n'),
    'labels.json': JSON.stringify({ id2label: { 2: 'dog', 7: 'a cat' } }),
  };
  for (const [name, text] of Object.entries(labels)) {
    await page.getByTestId('labels').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
    await page.waitForFunction(() => /^a cat/.test(document.querySelector('[data-testid=classes] li').textContent));
  }
  const classes = await texts(page, 'classes');
  assert.equal(classes.length, 5);
  assert.match(classes[1], /^dog/);
  const wrong = { name: 'labels.json', mimeType: 'text/plain', buffer: Buffer.from('[1, 2') };
  await page.getByTestId('labels').setInputFiles(wrong);
  await page.locator('[data-testid=error][data-code=INVALID_VALUE]').waitFor();
  await done();
});

const BOXES = {
  // Shares of one, the background first: two boxes of one object, and one that scores too little.
  pairs: {
    boxes: { dims: [1, 3, 4], floats: [0.1, 0.2, 0.5, 0.6, 0.11, 0.21, 0.5, 0.6, 0.7, 0.7, 0.9, 0.9] },
    scores: { dims: [1, 3, 2], floats: [0.1, 0.9, 0.2, 0.8, 0.9, 0.1] },
  },
  // TFLite's order: top, left, bottom, right.
  lists: {
    boxes: { dims: [1, 2, 4], floats: [0.2, 0.1, 0.6, 0.5, 0, 0, 1, 1] },
    classes: { dims: [1, 2], floats: [0, 3] },
    scores: { dims: [1, 2], floats: [0.9, 0.2] },
  },
  rows: { found: { dims: [1, 2, 6], floats: [3.2, 6.4, 16, 19.2, 0.9, 0, 0, 0, 32, 32, 0.1, 1] } },
  yolo: {
    // A column a box: centre, size, and two classes, in pixels.
    found: {
      dims: [1, 6, 1200],
      floats: Array.from({ length: 6 * 1200 }, (_, i) => (i % 1200 === 5 ? [9.6, 12.8, 12.8, 12.8, 0.9, 0.1][Math.floor(i / 1200)] : 0)),
    },
  },
};

for (const [layout, outputs] of Object.entries(BOXES)) {
  test(`boxes are found in the layout ${layout}`, async () => {
    const { page, done } = await ranOn(always(outputs));
    await page.getByTestId('task').selectOption('detect');
    assert.deepEqual(await texts(page, 'found'), ['class 0 90 % at 10, 20, 50, 60 %']);
    await page.getByTestId('box-corners').selectOption('centre');
    if (layout !== 'yolo') assert.notDeepEqual(await texts(page, 'found').catch(() => []), ['class 0 90 % at 10, 20, 50, 60 %']);
    await done();
  });
}

test('boxes in the cells of a head are found', async () => {
  // 16 cells of 8 pixels, 4 of 16 and one of 32; the sixth has a box: its place in the cell, the logarithm of its size in cells, object and classes.
  const box = [0.2, 0.6, Math.log(1.6), Math.log(1.6), 1, 0.9, 0.1, 0];
  const floats = Array.from({ length: 21 * 8 }, (_, i) => (Math.floor(i / 8) === 5 ? box[i % 8] : 0));
  const { page, done } = await ranOn(always({ found: { dims: [1, 21, 8], floats } }));
  await page.getByTestId('task').selectOption('detect');
  await page.getByTestId('box-layout').selectOption('cells');
  assert.deepEqual(await texts(page, 'found'), ['class 0 90 % at 10, 20, 50, 60 %']);
  await done();
});

test('a mask lies over the picture', async () => {
  const floats = Array.from({ length: 3 * 256 }, (_, i) => Number(Math.floor(i / 256) === (i % 256 < 64 ? 2 : 0)));
  const { page, done } = await ranOn(always({ mask: { dims: [1, 3, 16, 16], floats } }));
  assert.equal(await page.getByTestId('task').inputValue(), 'segment');
  assert.deepEqual(await texts(page, 'found'), ['class 0 75.0 %', 'class 2 25.0 %']);
  // The upper quarter is coloured, the rest is as the picture: without colours.
  const coloured = await page.getByTestId('overlay').evaluate((canvas) => {
    const at = (y) => canvas.getContext('2d').getImageData(canvas.width / 2, y * canvas.height, 1, 1).data;
    return [0.1, 0.9].map((y) => Math.max(...at(y).slice(0, 3)) - Math.min(...at(y).slice(0, 3)) > 30);
  });
  assert.deepEqual(coloured, [true, false]);
  await done();
});

test('key points are shown, of a list and of maps', async () => {
  const floats = [0.1, 0.2, 0.9, 0.3, 0.4, 0.1, 0.5, 0.6, 0.8, 0.7, 0.8, 0.7, 0.9, 1, 0.6];
  const { page, done } = await ranOn(always({ keypoints: { dims: [1, 1, 5, 3], floats } }));
  assert.equal(await page.getByTestId('task').inputValue(), 'pose');
  const points = await texts(page, 'found');
  assert.equal(points.length, 4);
  assert.equal(points[0], '0 at 20.0, 10.0 %, score 0.90');
  const maps = Array.from({ length: 2 * 64 }, (_, i) => Number(i === 9 || i === 64 + 63));
  await dropModel(page, 'maps.onnx', always({ heatmaps: { dims: [1, 2, 8, 8], floats: maps } }));
  await drop(page, [PICTURE]);
  await page.waitForFunction(() => document.querySelectorAll('[data-testid=found] li').length === 2);
  assert.deepEqual(await texts(page, 'found'), ['0 at 18.8, 18.8 %, score 1.00', '1 at 93.8, 93.8 %, score 1.00']);
  await done();
});

test('embeddings of two inputs are compared', async () => {
  const { page, done } = await appPage(app);
  await dropModel(
    page,
    'embed.onnx',
    model({ nodes: [['Neg', ['x'], ['embedding']]], inputs: [['x', [1, 20]]], outputs: [['embedding', [1, 20]]] }),
  );
  assert.equal(await page.getByTestId('task').inputValue(), 'embed');
  const run = async (number) => {
    await page.getByTestId('source-x').selectOption('number');
    await page.getByTestId('number-x').fill(number);
    await page.getByTestId('number-x').press('Enter');
    await page.getByTestId('run').click();
    await page.getByTestId('keep').waitFor();
  };
  await run('2');
  await page.getByTestId('keep').click();
  assert.match((await texts(page, 'cosines'))[0], /1\.0000$/);
  await run('-3');
  await page.waitForFunction(() => /-1\.0000$/.test(document.querySelector('[data-testid=cosines] li')?.textContent));
  await done();
});

test('the camera runs the model picture after picture, until it is stopped', async () => {
  const { page, done } = await ranOn(always({ scores: { dims: [1, 15], floats: Array(15).fill(0) } }));
  await page.getByTestId('camera').click();
  await page.waitForFunction(() => /^[\d.]+ frames a second$/.test(document.querySelector('[data-testid=camera-rate]').textContent));
  await page.getByTestId('camera').click();
  assert.equal(await page.getByTestId('camera').textContent(), 'Camera');
  assert.equal(await page.getByTestId('camera-rate').textContent(), '');
  await done();
});

test('the microphone goes into an input of samples', async () => {
  const { page, done } = await appPage(app);
  await dropModel(
    page,
    'sound.onnx',
    model({ nodes: [['Abs', ['audio'], ['loud']]], inputs: [['audio', [1, 'N']]], outputs: [['loud', [1, 'N']]] }),
  );
  await page.getByTestId('source-audio').selectOption('sound');
  await page.getByTestId('microphone').click();
  await page.waitForTimeout(600);
  await page.getByTestId('microphone').click();
  await page.waitForFunction(() => /^[\d.]+ s$/.test(document.querySelector('[data-testid=sound-status]').textContent));
  await page.waitForFunction(() => /\d/.test(document.getElementById('run-time').textContent));
  const [, samples] = (await page.getByTestId('outputs').textContent()).match(/float32 \[1, (\d+)\]/);
  assert.ok(Number(samples) > 4000, samples);
  await done();
});
