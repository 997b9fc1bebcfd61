import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { bench, chromiumOptions, openPage } from './browser.mjs';
import { serve } from './server.mjs';
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': process.env.KILIM ?? 'www/dist/kilim' };
const server = await serve({ ...packages, 'folder/': process.argv[2], 'bench/': bench }, Object.keys(packages));
for (const [engine, threads] of process.argv.slice(4).map((x) => x.split(':'))) {
  const browser = await chromium.launch(chromiumOptions);
  const page = await openPage(browser, `${server.base}/visit0/bench/web/decode.html`);
  await page.evaluate((g) => bench.load(...g), [engine, { gpu: false, threads: Number(threads) }, process.argv[3]]);
  const rows = [];
  for (let k = 0; k < 8; k++) {
    await page.evaluate(() => bench.prompt(12));
    const a = [];
    for (const n of [60, 200, 200]) a.push((await page.evaluate((n) => bench.go(n), n)).took.toFixed(3));
    rows.push(a.join('/'));
  }
  console.log(engine, threads, rows.join('  '));
  await browser.close();
}
server.close();
