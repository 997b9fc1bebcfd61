import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { bench, chromiumOptions, openPage } from './browser.mjs';
import { serve } from './server.mjs';
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': process.env.KILIM ?? 'www/dist/kilim' };
const server = await serve({ ...packages, 'folder/': process.argv[2], 'bench/': bench }, Object.keys(packages));
const browser = await chromium.launch(chromiumOptions);
const page = await openPage(browser, `${server.base}/visit0/bench/web/decode.html`);
const engine = process.argv[4] ?? 'kilimpage';
console.log(await page.evaluate((g) => bench.load(...g), [engine, { gpu: false, threads: Number(process.argv[5] ?? 1) }, process.argv[3]]));
await page.evaluate(() => bench.prompt(12));
await page.evaluate(() => bench.go(300));
const cdp = await page.context().newCDPSession(page);
await cdp.send('Profiler.enable');
await cdp.send('Profiler.setSamplingInterval', { interval: 50 });
await cdp.send('Profiler.start');
const r = { took: 0 };
for (let i = 0; i < 20; i++) {
  await page.evaluate(() => bench.prompt(12));
  r.took += (await page.evaluate(() => bench.go(60))).took / 20;
}
console.log('a word', r.took);
const { profile } = await cdp.send('Profiler.stop');
const self = new Map();
const dt = profile.timeDeltas;
const byId = new Map(profile.nodes.map((n) => [n.id, n]));
let total = 0;
profile.samples.forEach((id, i) => {
  const n = byId.get(id);
  const k = `${n.callFrame.functionName}@${n.callFrame.url.split('/').pop()}:${n.callFrame.lineNumber}:${n.callFrame.columnNumber}`;
  self.set(k, (self.get(k) ?? 0) + dt[i]);
  total += dt[i];
});
for (const [k, v] of [...self].sort((a, b) => b[1] - a[1]).slice(0, 60))
  console.log(((v / total) * 100).toFixed(1).padStart(5), (v / 1e6).toFixed(3), k);
await browser.close();
server.close();
