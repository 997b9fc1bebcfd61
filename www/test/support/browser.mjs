// The installed browser, with the flags that all of the repository's browser tests use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { repository } from './folders.mjs';

export { repository, www } from './folders.mjs';

/** The flags of all browser tests. */
export function usualFlags() {
  const { args } = JSON.parse(readFileSync(join(repository, 'tests', 'webdriver.json'), 'utf8'))['goog:chromeOptions'];
  return args.filter((flag) => !flag.startsWith('--headless'));
}

/** `flags` go to the browser beside the usual ones. */
export function launch(flags = []) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [...usualFlags(), ...flags],
  });
}

/** A page at `url` that fails the test on errors which nobody caught and on breaches of the content security policy. */
export async function open(browser, url, problems = []) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) problems.push(message.text());
  });
  await page.goto(url);
  return { page, problems };
}
