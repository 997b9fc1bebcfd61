// Pictures of the web app, made small, beside those in test/screens: a layout that breaks shows, other fonts do not.
// KILIM_WRITE_SCREENS=1 writes them anew: look at them before they are committed.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { appPage, launchApp, test } from './support/app.mjs';
import { www } from './support/browser.mjs';

const folder = join(www, 'test', 'screens');
/** Columns of a small picture. */
const WIDE = 64;
/** Bytes that a picture may differ by in the mean of its channels, and the share of places that may be further off than `FAR`. */
const [MEAN, FAR, SHARE] = [9, 64, 0.04];

let app;
before(async () => {
  app = await launchApp();
});
after(() => app.close());

/** A picture of the window as a PNG file of so many columns. */
async function small(page) {
  const shot = await page.screenshot({ animations: 'disabled' });
  return Buffer.from(
    await page.evaluate(
      async ([text, wide]) => {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        const whole = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
        const high = Math.round((wide * whole.height) / whole.width);
        const canvas = new OffscreenCanvas(wide, high);
        const context = canvas.getContext('2d');
        context.imageSmoothingQuality = 'high';
        context.drawImage(whole, 0, 0, wide, high);
        return [...new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer())];
      },
      [shot.toString('base64'), WIDE],
    ),
  );
}

/** How far two PNG files are apart: their sizes, the mean of all bytes, and the share of places that are far off. */
const apart = (page, files) =>
  page.evaluate(
    async ([files, far]) => {
      const [a, b] = await Promise.all(
        files.map(async (bytes) => {
          const picture = await createImageBitmap(new Blob([Uint8Array.from(bytes)], { type: 'image/png' }));
          const context = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
          context.drawImage(picture, 0, 0);
          return context.getImageData(0, 0, picture.width, picture.height);
        }),
      );
      if (a.width !== b.width || a.height !== b.height) return { sizes: `${a.width}x${a.height}, not ${b.width}x${b.height}` };
      const differences = a.data.map((byte, i) => Math.abs(byte - b.data[i]));
      const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
      return { mean, share: differences.filter((difference) => difference > far).length / differences.length };
    },
    [files.map((file) => [...file]), FAR],
  );

for (const [device, viewport] of [
  ['desktop', { width: 1280, height: 900 }],
  ['phone', { width: 360, height: 740 }],
]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`the app looks as it should on a ${device}, ${colorScheme}`, async () => {
      const { page, done } = await appPage(app, { viewport });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.getByTestId('answer').waitFor();
      const wrong = [];
      for (const name of ['Run', 'Graph', 'Benchmark', 'Compare', 'Code']) {
        await page.getByRole('tab', { name }).click();
        await page.locator('#tabs').evaluate((tabs) => tabs.scrollIntoView({ block: 'start' }));
        await page.waitForTimeout(250);
        const got = await small(page);
        const path = join(folder, `${name.toLowerCase()}-${device}-${colorScheme}.png`);
        if (process.env.KILIM_WRITE_SCREENS) {
          mkdirSync(folder, { recursive: true });
          writeFileSync(path, got);
        }
        assert.ok(existsSync(path), `${path} is missing`);
        const found = await apart(page, [got, readFileSync(path)]);
        if (found.sizes || found.mean > MEAN || found.share > SHARE) wrong.push(`${name}: ${JSON.stringify(found)}`);
      }
      assert.deepEqual(wrong, []);
      await done();
    });
  }
}
