// The web app by keyboard and screen reader, and on a telephone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { appPage, launchApp, test } from './support/app.mjs';
import { www } from './support/browser.mjs';

const axe = readFileSync(join(www, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');
const TABS = ['Run', 'Graph', 'Benchmark', 'Compare', 'Code'];

let app;
before(async () => {
  app = await launchApp();
});
after(() => app.close());

test('the tabs are chosen by the arrow keys, and the address says which is open', async () => {
  const { page, done } = await appPage(app);
  await page.getByRole('tab', { name: 'Run' }).focus();
  for (const name of [...TABS.slice(1), 'Run']) {
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getByRole('tab', { selected: true }).textContent(), name);
    assert.equal(await page.getByRole('tabpanel').count(), 1);
    assert.equal(await page.getByRole('tabpanel').getAttribute('aria-labelledby'), `tab-${new URL(page.url()).hash.slice(1)}`);
  }
  await page.keyboard.press('End');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Code');
  await page.reload();
  assert.equal(await page.getByRole('tab', { selected: true }).textContent(), 'Code');
  await done();
});

/** How much wider than the window the page is. */
const overhang = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** What axe-core finds wrong with the page as it is: each rule with the elements, and why. */
async function violations(page) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  return page.evaluate(async () => {
    const found = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`),
    );
  });
}

/** What brings a tab into the states in which it shows the most, one after the other. */
const STATES = {
  Run: [
    (page) => page.getByTestId('profile').click(),
    (page) => page.getByTestId('task').selectOption('detect'),
    (page) => page.getByTestId('task').selectOption('classify'),
    async (page) => {
      await page.getByTestId('url').fill(new URL('/nothing.onnx', page.url()).href);
      await page.locator('#url-form button[type=submit]').click();
      await page.locator('.failure').waitFor();
    },
  ],
  Graph: [(page) => page.locator('.graph .node').first().click()],
  Benchmark: [
    async (page) => {
      await page.getByTestId('bench-backend-wgpu').uncheck();
      await page.getByTestId('bench-runs').fill('2');
      await page.getByTestId('bench-start').click();
      await page.getByTestId('bench-save').waitFor({ timeout: 60_000 });
    },
  ],
  Compare: [
    async (page) => {
      await page.getByTestId('verify').click();
      await page.locator('[data-testid=verify-result] tbody tr').first().waitFor();
    },
  ],
  Code: [],
};

for (const [width, colorScheme] of [
  [1280, 'light'],
  [360, 'dark'],
]) {
  test(`axe-core finds nothing, and nothing is wider than ${width} pixels, ${colorScheme}`, async () => {
    const { page, server, done } = await appPage(app, { viewport: { width, height: 800 } });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.getByTestId('answer').waitFor();
    const check = async (what) => {
      await page.waitForTimeout(100);
      assert.deepEqual(await violations(page), [], what);
      assert.equal(await overhang(page), 0, what);
    };
    for (const name of [...TABS].reverse()) {
      await page.getByRole('tab', { name }).click();
      await check(name);
      for (const [i, bring] of STATES[name].entries()) {
        await bring(page);
        await check(`${name}, state ${i}`);
      }
    }
    for (const other of ['talk', 'listen']) {
      await page.goto(`${server.url}/${other}.html`);
      await page.getByTestId('folder').waitFor();
      await check(other);
    }
    await done();
  });
}

/** The least contrast of texts with what is behind them, in this tab, with the text. */
const contrasts = (page) =>
  page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const light = (colours) => {
      canvas.clearRect(0, 0, 1, 1);
      for (const colour of colours) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
        const share = byte / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const grounds = (element) => {
      const all = [];
      for (let at = element; at; at = at.parentElement) all.unshift(getComputedStyle(at).backgroundColor);
      return all;
    };
    const found = [];
    for (const element of document.querySelectorAll('main *, header *')) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
      if (!own || element instanceof SVGElement || !element.checkVisibility() || element.closest(':disabled, .pad-hint, option')) continue;
      const behind = grounds(element);
      const [a, b] = [light([...behind, getComputedStyle(element).color]), light(behind)].sort((x, y) => y - x);
      found.push([(a + 0.05) / (b + 0.05), element.textContent.trim().slice(0, 40)]);
    }
    return found.sort(([a], [b]) => a - b)[0];
  });

for (const colorScheme of ['light', 'dark']) {
  test(`texts stand out from what is behind them when the page is ${colorScheme}`, async () => {
    const { page, done } = await appPage(app);
    await page.emulateMedia({ colorScheme });
    for (const name of TABS) {
      await page.getByRole('tab', { name }).click();
      await page.waitForTimeout(100);
      const [contrast, text] = await contrasts(page);
      assert.ok(contrast >= 4.5, `${name}: "${text}" has a contrast of ${contrast.toFixed(2)}`);
    }
    await done();
  });
}
