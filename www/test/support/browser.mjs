// The installed browser, with the flags that all of the repository's browser tests use.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, firefox } from 'playwright-core';
import { repository } from './folders.mjs';

export { repository, www } from './folders.mjs';

/** The flags of all browser tests. */
export function usualFlags() {
  const { args } = JSON.parse(readFileSync(join(repository, 'tests', 'webdriver.json'), 'utf8'))['goog:chromeOptions'];
  return args.filter((flag) => !flag.startsWith('--headless'));
}

const FIREFOX = process.env.FIREFOX ?? firefox.executablePath();
const usesFirefox = process.env.KILIM_BROWSER === 'firefox';

/** Why the browser that `KILIM_BROWSER` names, `chromium` or `firefox`, cannot be had; `false` where it can. */
export const noBrowser = usesFirefox && !existsSync(FIREFOX) && `there is no Firefox at ${FIREFOX}; FIREFOX says where one is`;

/** `flags` go to Chromium beside the usual ones; Firefox has a camera and a microphone of its own. */
export function launch(flags = []) {
  if (usesFirefox) {
    const firefoxUserPrefs = { 'media.navigator.streams.fake': true, 'media.navigator.permission.disabled': true };
    return firefox.launch({ executablePath: FIREFOX, firefoxUserPrefs });
  }
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
