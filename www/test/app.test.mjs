// The web app: a digit drawn with the mouse is read, models and pictures go in, what is wrong is said.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { model, tensor } from './support/onnx.mjs';
import { serve } from './support/server.mjs';

let browser;
let server;
let page;
let problems;

before(async () => {
  browser = await launch();
  server = await serve([
    ['/repository/', join(repository, 'assets')],
    ['/', join(www, 'dist', 'app')],
  ]);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

beforeEach(async () => {
  ({ page, problems } = await open(browser, `${server.url}/`));
  await state('ready');
});

afterEach(async () => {
  await page?.close();
  assert.deepEqual(problems, []);
});

const state = (name) => page.waitForFunction((name) => document.body.dataset.state === name, name, { timeout: 30_000 });

/** Strokes on the pad; points are shares of its width and height. */
async function draw(...strokes) {
  const box = await page.getByTestId('pad').boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  for (const [first, ...rest] of strokes) {
    await page.mouse.move(...at(first));
    await page.mouse.down();
    for (const point of rest) await page.mouse.move(...at(point), { steps: 6 });
    await page.mouse.up();
  }
}

/** Waits until the answer is `digit`. */
const answers = (digit) =>
  page.waitForFunction((digit) => document.querySelector('[data-testid=answer]')?.dataset.value === digit, String(digit), {
    timeout: 30_000,
  });

const DRAWINGS = {
  0: [Array.from({ length: 25 }, (_, i) => [0.5 + 0.2 * Math.sin((i * Math.PI) / 12), 0.5 - 0.33 * Math.cos((i * Math.PI) / 12)])],
  1: [
    [
      [0.5, 0.15],
      [0.5, 0.85],
    ],
  ],
  7: [
    [
      [0.3, 0.2],
      [0.7, 0.2],
      [0.45, 0.85],
    ],
  ],
};

test('the page opens with an answer and its placement', async () => {
  await answers(3);
  assert.ok((await page.locator('[data-testid=graph] .node').count()) > 0);
});

for (const [backend, button] of [
  ['wgpu', 'backends-gpu'],
  ['cpu', 'backends-cpu'],
]) {
  test(`digits drawn with the mouse are read on ${backend}`, async () => {
    await page.getByTestId(button).check({ force: true });
    await state('ready');
    await page.getByTestId(`backend-${backend}`).waitFor();
    for (const [digit, strokes] of Object.entries(DRAWINGS)) {
      await draw(...strokes);
      await answers(digit);
      await page.getByTestId('clear').click();
      await page.getByTestId('top').waitFor({ state: 'detached' });
    }
    assert.ok((await page.locator(`[data-testid=graph] .node[data-backend=${backend}]`).count()) > 0);
  });
}

test('the answer moves while a digit is being drawn', async () => {
  const box = await page.getByTestId('pad').boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.8, { steps: 10 });
  await answers(1);
  await page.mouse.up();
});

test('samples are read by the keyboard alone', async () => {
  for (const digit of [4, 9]) {
    await page.getByTestId(`sample-${digit}`).focus();
    await page.keyboard.press('Enter');
    await answers(digit);
  }
});

/** The number that a text like `28.4 kB` stands for. */
function bytesOf(text) {
  const [, number, unit] = text.match(/^([\d.]+) (B|kB|MB|GB)$/) ?? [];
  return Number(number) * 1000 ** ['B', 'kB', 'MB', 'GB'].indexOf(unit);
}

test('the memory of a model that ran is drawn', async () => {
  await page.getByTestId('backends-cpu').check({ force: true });
  await state('ready');
  await page.getByTestId('sample-3').click();
  await answers(3);
  const plan = page.getByTestId('memory-cpu').first();
  await plan.waitFor();
  const note = await plan.locator('.note').first().textContent();
  const tensors = Number(note.match(/^(\d+) tensors/)[1]);
  const drawn = await plan.locator('svg rect').evaluateAll((all) =>
    all.map((rect) => ({
      width: rect.getBoundingClientRect().width,
      height: rect.getBoundingClientRect().height,
      fill: getComputedStyle(rect).fill,
      title: rect.textContent,
    })),
  );
  assert.ok(tensors > 2, note);
  assert.equal(drawn.length, tensors);
  assert.ok(
    drawn.every(({ width, height, fill }) => width > 0 && height > 0 && fill !== 'none'),
    JSON.stringify(drawn),
  );
  assert.ok(
    drawn.every(({ title }) => /: .+ at \d+, steps \d+ to \d+$/.test(title)),
    JSON.stringify(drawn),
  );
  // What lives at the same time is drawn at different heights.
  assert.ok(new Set(await plan.locator('svg rect').evaluateAll((all) => all.map((rect) => rect.getAttribute('y')))).size > 1);
  const card = page.getByTestId('backend-cpu').locator('dl');
  const values = await card.locator('dd').allTextContents();
  const facts = Object.fromEntries((await card.locator('dt').allTextContents()).map((label, i) => [label, bytesOf(values[i])]));
  const inOrder = [facts['At least'], facts.Intermediates, facts['Without sharing']];
  assert.ok(
    inOrder.every((bytes, i) => bytes > 0 && bytes >= (inOrder[i - 1] ?? 0)),
    JSON.stringify(facts),
  );
  assert.ok(facts['Held in all'] >= facts.Intermediates, JSON.stringify(facts));
  if (process.env.KILIM_PICTURES) await plan.screenshot({ path: join(process.env.KILIM_PICTURES, 'memory.png') });
});

test('a measured run gives a table that sorts', async () => {
  await page.getByTestId('sample-2').click();
  await answers(2);
  await page.getByTestId('profile').click();
  const rows = page.locator('[data-testid=times] tbody tr');
  await rows.first().waitFor();
  assert.equal(await rows.count(), await page.locator('[data-testid=graph] .node:not([data-backend=plan])').count());
  await page.locator('[data-column=op]').click();
  const ops = await page.locator('[data-testid=times] tbody td:nth-child(3)').allTextContents();
  assert.deepEqual(
    ops,
    [...ops].sort((a, b) => a.localeCompare(b)),
  );
});

const drop = (files) =>
  page.evaluate((files) => {
    const transfer = new DataTransfer();
    for (const { name, type, bytes } of files) transfer.items.add(new File([Uint8Array.from(bytes)], name, { type }));
    dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, files);

/** The error on the page, once there is one. */
async function error() {
  const element = page.getByTestId('error');
  await element.waitFor();
  return { code: await element.getAttribute('data-code'), text: await element.textContent() };
}

const noise = { name: 'noise.onnx', type: '', bytes: Array.from({ length: 4000 }, (_, i) => (i * 7919 + 13) % 251) };

test('a truncated model is a typed error', async () => {
  const model = readFileSync(join(repository, 'assets', 'digits.onnx'));
  await drop([{ name: 'half.onnx', type: '', bytes: [...model.subarray(0, model.length >> 1)] }]);
  assert.equal((await error()).code, 'INVALID_MODEL');
});

test('a picture that cannot be read is a typed error', async () => {
  await drop([{ name: 'broken.png', type: 'image/png', bytes: [137, 80, 78, 71, 1, 2, 3] }]);
  const error = page.getByTestId('error');
  await error.waitFor();
  assert.equal(await error.getAttribute('data-code'), 'IO');
  assert.match(await error.textContent(), /broken\.png/);
  const ran = () => page.waitForFunction(() => /\d/.test(document.getElementById('run-time').textContent));
  await ran();
  await page.evaluate(() => document.getElementById('run-time').replaceChildren());
  await page.getByTestId('run').click();
  await ran();
  assert.equal(await error.count(), 1, 'a run says nothing of the picture');
  await page.getByTestId('sample-6').click();
  await answers(6);
  assert.equal(await error.count(), 0);
});

test('a picture goes in, and so do other data', async () => {
  await drop([{ name: 'five.png', type: 'image/png', bytes: [...readFileSync(join(repository, 'assets', 'digit-5.png'))] }]);
  await answers(5);
  await page.getByTestId('source-image').selectOption('zeros');
  await page.getByLabel('Size of N').fill('2');
  await page.getByLabel('Size of N').press('Enter');
  await page.getByTestId('run').click();
  await page.getByTestId('raw').waitFor();
  assert.match(await page.getByTestId('outputs').textContent(), /\[2, 10\]/);
});

test('a model is loaded by its address', async () => {
  await page.getByTestId('url').fill(`${server.url}/repository/digits.onnx`);
  await page.getByTestId('url').press('Enter');
  await page.waitForFunction(() => document.querySelector('[data-testid=model-name]').textContent === 'digits.onnx');
  await state('ready');
  await page.getByTestId('sample-7').click();
  await answers(7);
  await page.getByTestId('url').fill(`${server.url}/repository/none.onnx`);
  await page.getByTestId('url').press('Enter');
  assert.equal((await error()).code, 'IO');
  assert.equal(await page.getByTestId('model-name').textContent(), 'digits.onnx');
});

const dropModel = (name, definition) => drop([{ name, type: '', bytes: [...model(definition)] }]);
const named = (name) => page.waitForFunction((name) => document.querySelector('[data-testid=model-name]').textContent === name, name);

/** How much wider than the window the page is. */
const overhang = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

for (const [device, viewport] of [
  ['a desktop', { width: 1280, height: 900 }],
  ['a telephone', { width: 390, height: 844 }],
  ['a narrow telephone', { width: 360, height: 740 }],
]) {
  test(`nothing is wider than ${device}, with a picture and its fields, an answer, a graph and times`, async () => {
    await page.setViewportSize(viewport);
    assert.equal(await overhang(), 0);
    await page.getByTestId('profile').click();
    await page.locator('[data-testid=times] tbody tr').first().waitFor();
    assert.equal(await overhang(), 0);
    await dropModel('picture.onnx', { nodes: [['Relu', ['x'], ['y']]], inputs: [['x', [1, 3, 32, 32]]], outputs: [['y', [1, 3, 32, 32]]] });
    await named('picture.onnx');
    await drop([{ name: 'five.png', type: 'image/png', bytes: [...readFileSync(join(repository, 'assets', 'digit-5.png'))] }]);
    await page.getByTestId('picture-x').waitFor();
    await page.waitForFunction(() => /\d/.test(document.getElementById('run-time').textContent));
    assert.equal(await overhang(), 0);
    await drop([noise]);
    await error();
    assert.equal(await overhang(), 0);
  });

  test(`a model that does not load leaves the one before it at work, on ${device}`, async () => {
    await page.setViewportSize(viewport);
    await drop([noise]);
    const { code, text } = await error();
    assert.ok(['UNKNOWN_FORMAT', 'INVALID_MODEL'].includes(code), code);
    assert.match(text, /noise\.onnx was not loaded.*Handwritten digits is still here/);
    await state('ready');
    assert.equal(await page.getByTestId('model-name').textContent(), 'Handwritten digits');
    await page.getByTestId('sample-6').click();
    await answers(6);
  });

  test(`Cancel goes back to the model before, on ${device}`, async () => {
    await page.setViewportSize(viewport);
    await page.route('**/slow.onnx', () => undefined); // it never answers
    await page.getByTestId('backends-cpu').check({ force: true });
    await state('ready');
    await page.getByTestId('url').fill(`${server.url}/slow.onnx`);
    await page.getByTestId('url').press('Enter');
    await state('loading');
    // It can be used meanwhile.
    await page.getByTestId('sample-4').click();
    await answers(4);
    await page.getByTestId('backends-gpu').check({ force: true });
    await state('loading');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await state('ready');
    assert.ok(await page.getByTestId('backends-cpu').isChecked(), 'the page says how the model that is there was loaded');
    assert.equal(await page.getByTestId('model-name').textContent(), 'Handwritten digits');
    assert.ok(!(await page.locator('#progress').isVisible()));
    assert.equal(await page.getByTestId('error').count(), 0);
    await page.getByTestId('sample-9').click();
    await answers(9);
  });

  test(`what is no number is said in words, on ${device}`, async () => {
    await page.setViewportSize(viewport);
    // Of numbers from -1 to 1 about half have no root; infinity is what 1 / 0 gives.
    const zero = tensor('zero', [1], { floats: [0] });
    await dropModel('roots.onnx', {
      nodes: [
        ['Sqrt', ['x'], ['roots']],
        ['Mul', ['x', 'zero'], ['z']],
        ['Sqrt', ['z'], ['none']],
        ['Reciprocal', ['z'], ['poles']],
      ],
      inputs: [['x', [60]]],
      outputs: [
        ['roots', [60]],
        ['none', [60]],
        ['poles', [60]],
      ],
      initializers: [zero],
    });
    await named('roots.onnx');
    await page.getByTestId('run').click();
    await page.waitForFunction(() => document.querySelectorAll('[data-testid=oddities]').length === 2);
    const [roots, poles] = await page.getByTestId('oddities').allTextContents();
    const [, nan] = roots.match(/^(\d+) of 60 values are NaN, not a number: /);
    assert.match(poles, /^60 of 60 values are infinite: /);
    const list = page.locator('fieldset', { hasText: 'roots' }).getByTestId('top');
    await page.getByLabel('How many').first().fill('60');
    await page.getByLabel('How many').first().press('Enter');
    const values = await list.locator('.value').allTextContents();
    assert.equal(values.length, 60);
    assert.ok(!values.includes('NaN %'));
    const numbers = values.filter((value) => value !== 'NaN').map(parseFloat);
    assert.equal(values.length - numbers.length, Number(nan));
    assert.deepEqual(
      values.slice(numbers.length),
      Array.from({ length: Number(nan) }, () => 'NaN'),
      'they come last',
    );
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => b - a),
    );
    assert.equal(await overhang(), 0);
  });
}

test('a first model that cannot be read leaves an empty page, which takes the next', async () => {
  const other = await browser.newPage();
  await other.route('**/digits*.onnx', (route) => route.fulfill({ status: 404 }));
  await other.goto(`${server.url}/`);
  await other.locator('[data-testid=error][data-code=IO]').waitFor();
  assert.equal(await other.evaluate(() => document.body.dataset.state), 'empty');
  assert.ok(!(await other.getByTestId('run').isVisible()));
  await other.unroute('**/digits*.onnx');
  await other.getByTestId('digits').click();
  await other.waitForFunction(() => document.body.dataset.state === 'ready');
  assert.ok(await other.getByTestId('run').isVisible());
  await other.close();
});
