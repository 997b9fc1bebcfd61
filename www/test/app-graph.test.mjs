// The graph in the web app: it fits, is searched, folds what repeats, tells of a node, and shows time as heat.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { ISOLATED, appPage, dropModel, launchApp, test } from './support/app.mjs';
import { model, tensor } from './support/onnx.mjs';

let app;
before(async () => {
  app = await launchApp();
});
after(() => app.close());

/** Blocks of a product, a root and a sum, one behind another. */
const blocks = (count) => {
  const nodes = [];
  for (let i = 0; i < count; i++) {
    const from = i === 0 ? 'x' : `y${i - 1}`;
    nodes.push(['MatMul', [from, 'weight'], [`a${i}`]], ['Erf', [`a${i}`], [`b${i}`]], ['Atan', [`b${i}`], [`y${i}`]]);
  }
  return model({
    nodes,
    inputs: [['x', [8, 8]]],
    outputs: [[`y${count - 1}`, [8, 8]]],
    initializers: [tensor('weight', [8, 8], { floats: Array.from({ length: 64 }, (_, i) => (i % 9) / 9) })],
  });
};

async function graphPage(bytes, options) {
  const opened = await appPage(app, options);
  if (bytes) await dropModel(opened.page, 'model.onnx', bytes);
  await opened.page.getByRole('tab', { name: 'Graph' }).click();
  await opened.page.locator('.graph .node').first().waitFor();
  return opened;
}

test('a graph fits into its box, and keys and buttons zoom it', async () => {
  const { page, done } = await graphPage();
  const size = () => page.locator('.graph').evaluate((box) => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]);
  await page.waitForTimeout(200);
  assert.deepEqual(await size(), [0, 0]);
  await page.locator('.graph').focus();
  for (let i = 0; i < 6; i++) await page.keyboard.press('+');
  assert.ok((await size())[1] > 0);
  await page.getByTestId('graph-fit').click();
  assert.deepEqual(await size(), [0, 0]);
  await done();
});

test('blocks that repeat are folded, and unfold', async () => {
  const { page, done } = await graphPage(blocks(12));
  const [boxes, folds] = [page.locator('.graph .node'), page.getByTestId('fold')];
  assert.equal(await folds.count(), 12);
  assert.equal(await boxes.count(), 12);
  assert.match(await folds.first().getAttribute('aria-label'), /^Block 1 of 12, 3 nodes folded, /);
  await folds.first().focus();
  await page.keyboard.press('Enter');
  assert.equal(await folds.count(), 11);
  assert.equal(await boxes.count(), 14);
  await page.getByTestId('graph-folding').uncheck();
  assert.equal(await boxes.count(), 36);
  await done();
});

test('a search finds names, operators and values, and Enter goes from one to the next', async () => {
  const { page, done } = await graphPage(blocks(3));
  const search = page.getByTestId('graph-search');
  await search.fill('erf');
  assert.equal(await page.locator('.node.found').count(), 3);
  assert.equal(await page.locator('.node.dim').count(), 6);
  assert.match(await page.getByTestId('graph-status').textContent(), /^3 found/);
  const chosen = () => page.locator('.node.chosen').getAttribute('aria-label');
  await search.press('Enter');
  await page.locator('.node.chosen').waitFor();
  const first = await chosen();
  await search.press('Enter');
  assert.notEqual(await chosen(), first);
  await search.fill('y1');
  assert.ok((await page.locator('.node.found').count()) > 0);
  await search.fill('nowhere');
  assert.equal(await page.getByTestId('graph-status').textContent(), 'nothing fits');
  await done();
});

test('a node tells its attributes, shapes, weights and time, and the arrow keys go along the values', async () => {
  // The clock of an isolated page is fine enough for a node.
  const { page, done } = await graphPage(undefined, { headers: ISOLATED });
  const detail = page.getByTestId('node-detail');
  const conv = page.locator('.graph .node[aria-label^="Conv conv1,"]');
  await conv.click();
  await detail.getByTestId('attributes').waitFor();
  assert.match(await detail.getByTestId('attributes').textContent(), /pads? \[\d+, \d+, \d+, \d+\]/);
  assert.match(await detail.getByTestId('weights').textContent(), /conv1\.weight float32 \[\d+, 1, \d+, \d+\].* … .*mean/);
  assert.equal(await detail.locator('.histogram').count(), 2);
  const name = () => detail.locator('.name').textContent();
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => !/^conv1$/.test(document.querySelector('[data-testid=node-detail] .name').textContent));
  const next = await name();
  await page.keyboard.press('ArrowUp');
  await page.waitForFunction((next) => document.querySelector('[data-testid=node-detail] .name').textContent !== next, next);
  assert.equal(await name(), 'conv1');
  await page.getByTestId('graph-measure').click();
  await page.locator('.blocks.heat').waitFor();
  const heats = await page.locator('.graph .node').evaluateAll((all) => all.map((node) => Number(node.style.getPropertyValue('--heat'))));
  assert.equal(Math.max(...heats), 1);
  assert.ok(heats.every((heat) => heat >= 0 && heat <= 1));
  await page.getByTestId('graph-heat').uncheck();
  assert.equal(await page.locator('.blocks.heat').count(), 0);
  await conv.click();
  await detail.getByTestId('node-time').waitFor();
  assert.match(await detail.getByTestId('node-time').textContent(), /s, [\d.]+ % of the run/);
  await done();
});
