import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { bench, chromiumOptions, openPage } from './browser.mjs';
import { serve } from './server.mjs';
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': 'www/dist/kilim' };
const server = await serve({ ...packages, 'folder/': process.argv[2], 'bench/': bench }, Object.keys(packages));
const browser = await chromium.launch(chromiumOptions);
const page = await openPage(browser, `${server.base}/visit0/bench/web/decode.html`);
await page.evaluate(async ([file]) => {
  const { load } = await import('../kilim/index.js');
  const bytes = new Uint8Array(await (await fetch(`../../folder/${file}`)).arrayBuffer());
  const s = await load(bytes, { backends: ['cpu'], threads: 1, worker: false });
  const feeds = {};
  for (const i of s.inputs) { const d = i.dims.map((x) => (typeof x === 'number' ? x : 1)); feeds[i.name] = { type: i.type, dims: d, data: new Float32Array(d.reduce((a, b) => a * b, 1)).fill(0.1) }; }
  globalThis.go = async (n) => { const t = performance.now(); for (let k = 0; k < n; k++) await s.run(feeds); return (performance.now() - t) / n; };
}, [process.argv[3]]);
await page.evaluate(() => go(200));
console.log('without profiler', await page.evaluate(() => go(300)));
const cdp = await page.context().newCDPSession(page);
await cdp.send('Profiler.enable'); await cdp.send('Profiler.setSamplingInterval', { interval: 50 });
await cdp.send('Profiler.start');
console.log('with', await page.evaluate(() => go(500)));
const { profile } = await cdp.send('Profiler.stop');
const self = new Map(); const dt = profile.timeDeltas;
const byId = new Map(profile.nodes.map((n) => [n.id, n])); let total = 0;
profile.samples.forEach((id, i) => { const n = byId.get(id); const k = `${n.callFrame.functionName}@${n.callFrame.url.split('/').pop()}:${n.callFrame.lineNumber}:${n.callFrame.columnNumber}`; self.set(k, (self.get(k) ?? 0) + dt[i]); total += dt[i]; });
for (const [k, v] of [...self].sort((a, b) => b[1] - a[1]).slice(0, 16)) console.log((v / total * 100).toFixed(1).padStart(5), (v / 5e5).toFixed(4), 'ms a run', k);
await browser.close(); server.close();
