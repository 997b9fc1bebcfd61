// The web app in the tests' browser.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test as nodeTest } from 'node:test';
import { launch, noBrowser, open, repository, www } from './browser.mjs';
import { serve } from './server.mjs';

/** Headers of a page that is cross-origin isolated. */
export const ISOLATED = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

/** A test that is skipped, with the reason, where its browser is not there. */
export const test = (name, work) => nodeTest(name, { skip: noBrowser }, work);

/** A browser, and what closes it. */
export async function launchApp(flags = []) {
  const browser = noBrowser ? undefined : await launch(flags);
  return { browser, close: () => browser?.close() };
}

/**
 * The app with its first model loaded, on a server of its own. `done` closes both and fails on what nobody caught. `headers` are the
 * server's, `hash` is the address's fragment, `viewport` the window's size, `folders` are served beside the app.
 */
export async function appPage({ browser }, { headers = {}, hash = '', viewport, folders = [] } = {}) {
  const server = await serve([...folders, ['/repository/', join(repository, 'assets')], ['/', join(www, 'dist', 'app')]], headers);
  const { page, problems } = await open(browser, `${server.url}/${hash}`);
  if (viewport) await page.setViewportSize(viewport);
  await ready(page);
  const done = async () => {
    await page.close();
    await server.close();
    assert.deepEqual(problems, []);
  };
  return { page, server, done };
}

/** Waits until a model is there. */
export const ready = (page) => page.waitForFunction(() => document.body.dataset.state === 'ready', undefined, { timeout: 30_000 });

/** Drops files on the page: `{name, type, bytes}`. */
export const drop = (page, files) =>
  page.evaluate(
    (files) => {
      const transfer = new DataTransfer();
      for (const { name, type, bytes } of files) transfer.items.add(new File([Uint8Array.from(bytes)], name, { type }));
      dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    },
    files.map(({ name, type = '', bytes }) => ({ name, type, bytes: [...bytes] })),
  );

/** Opens a model file, and waits until it is the one that the page has. */
export async function dropModel(page, name, bytes) {
  await drop(page, [{ name, bytes }]);
  await page.waitForFunction((name) => document.querySelector('[data-testid=model-name]').textContent === name, name, { timeout: 60_000 });
  await ready(page);
}
