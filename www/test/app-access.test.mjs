// The web app by keyboard and screen reader, and on a telephone.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { appPage, launchApp, test } from './support/app.mjs';

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

/** The fields, buttons and links that are seen and have no name. */
const nameless = (page) =>
  page.evaluate(() => {
    const nameOf = (element) => {
      const by = (element.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '');
      const labels = [...(element.labels ?? [])].map((label) => label.textContent);
      return [element.getAttribute('aria-label') ?? '', ...by, ...labels, element.textContent, element.title].join('').trim();
    };
    const controls = 'button, a[href], input, select, textarea, progress, [role=button], [role=img], [role=region], [tabindex]';
    return [...document.querySelectorAll(controls)]
      .filter((element) => element.checkVisibility() && nameOf(element) === '')
      .map((element) => element.outerHTML.slice(0, 200));
  });

/** How much wider than the window the page is. */
const overhang = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

for (const width of [1280, 360]) {
  test(`every control has a name, headings go down by one, and nothing is wider than ${width} pixels`, async () => {
    const { page, done } = await appPage(app, { viewport: { width, height: 800 } });
    for (const name of TABS) {
      await page.getByRole('tab', { name }).click();
      if (name === 'Graph') await page.locator('.graph .node').first().click();
      if (name === 'Run') await page.getByTestId('task').selectOption('detect');
      await page.waitForTimeout(100);
      assert.deepEqual(await nameless(page), [], name);
      assert.equal(await overhang(page), 0, name);
      const levels = await page.evaluate(() =>
        [...document.querySelectorAll('h1, h2, h3, h4')]
          .filter((heading) => heading.checkVisibility())
          .map(({ tagName }) => Number(tagName[1])),
      );
      assert.ok(
        levels.every((level, i) => level <= (levels[i - 1] ?? 0) + 1),
        `${name}: ${levels}`,
      );
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
