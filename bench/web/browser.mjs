// The browser of the benches, and where engines compute in it.
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const bench = dirname(dirname(fileURLToPath(import.meta.url)));

const { 'goog:chromeOptions': chrome } = JSON.parse(readFileSync(join(bench, '../tests/webdriver.json'), 'utf8'));
export const chromiumOptions = {
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: chrome.args.filter((flag) => !flag.startsWith('--headless')),
};

/** Where engines compute: `1`, `2`, `all` threads, or `webgpu`. */
export function place(word) {
  if (word === 'webgpu') return { name: 'WebGPU', gpu: true, threads: 1 };
  const threads = word === 'all' ? cpus().length : Number(word);
  if (!Number.isInteger(threads) || threads < 1) throw new Error(`--on takes numbers of threads, all and webgpu, not ${word}`);
  return { name: threads === 1 ? '1 thread' : `${threads} threads`, gpu: false, threads };
}

/** Rejects when it takes more than `seconds`. */
export function timed(promise, seconds) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took more than ${seconds} s`)), 1000 * seconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A page of a browser context of its own, with nothing in its cache. */
export async function openPage(browser, url) {
  const page = await (await browser.newContext()).newPage();
  await page.goto(url);
  await page.waitForFunction(() => globalThis.ready);
  return page;
}

/** The version of a package that the benches pin. */
export const version = (name) => JSON.parse(readFileSync(join(bench, 'node_modules', name, 'package.json'), 'utf8')).version;
