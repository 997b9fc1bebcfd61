// The web app without a network: it opens and runs, is isolated, and offers a newer version.
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { ISOLATED, ready, launchApp, test } from './support/app.mjs';
import { open, www } from './support/browser.mjs';
import { serve } from './support/server.mjs';

const app = join(www, 'dist', 'app');

let launched;
before(async () => {
  launched = await launchApp();
});
after(() => launched.close());

/** Waits until the service worker has what this browser needs. */
const kept = (page) => page.waitForFunction(() => document.documentElement.dataset.offline === 'kept', undefined, { timeout: 30_000 });

const answers = (page, digit) =>
  page.waitForFunction((digit) => document.querySelector('[data-testid=answer]')?.dataset.value === digit, String(digit), {
    timeout: 30_000,
  });

for (const [what, headers] of [
  ['a page', {}],
  ['an isolated page', ISOLATED],
]) {
  test(`${what} opens and runs without a network`, async () => {
    const server = await serve([['/', app]], headers);
    const { page, problems } = await open(launched.browser, `${server.url}/`);
    await ready(page);
    await kept(page);
    await server.close();
    await page.reload();
    await ready(page);
    // The worker isolates pages of servers without headers.
    assert.ok(await page.evaluate(() => crossOriginIsolated));
    await page.getByTestId('sample-6').click();
    await answers(page, 6);
    await page.goto(`${server.url}/listen.html`);
    await page.getByTestId('folder').waitFor();
    await page.close();
    assert.deepEqual(problems, []);
  });
}

test('a newer version is offered, and taken when the visitor wants it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kilim-app-'));
  cpSync(app, folder, { recursive: true });
  const server = await serve([['/', folder]]);
  const { page, problems } = await open(launched.browser, `${server.url}/`);
  await ready(page);
  await kept(page);
  await page.reload();
  await ready(page);
  assert.equal(await page.getByTestId('update').count(), 0);
  appendFileSync(join(folder, 'sw.js'), '\n// Newer.\n');
  await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
  await page.getByTestId('update').waitFor();
  await Promise.all([page.waitForEvent('load'), page.getByTestId('update-use').click()]);
  await ready(page);
  assert.equal(await page.getByTestId('update').count(), 0);
  await page.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
  assert.deepEqual(problems, []);
});

test('the manifest says what an installed app needs', async () => {
  const server = await serve([['/', app]]);
  const { page } = await open(launched.browser, `${server.url}/`);
  const manifest = JSON.parse(readFileSync(join(app, 'manifest.webmanifest'), 'utf8'));
  const sizes = await page.evaluate(async (icons) => {
    const measured = [];
    for (const { src } of icons.filter(({ type }) => type === 'image/png')) {
      const image = await createImageBitmap(await (await fetch(src)).blob());
      measured.push(`${image.width}x${image.height}`);
    }
    return measured;
  }, manifest.icons);
  assert.deepEqual(sizes, ['192x192', '512x512']);
  assert.equal(new URL(manifest.start_url, server.url).pathname, '/index.html');
  await page.close();
  await server.close();
});
