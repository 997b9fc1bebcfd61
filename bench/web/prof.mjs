import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { bench, chromiumOptions, openPage } from './browser.mjs';
import { serve } from './server.mjs';
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': 'www/dist/kilim' };
const server = await serve({ ...packages, 'folder/': process.argv[2], 'bench/': bench }, Object.keys(packages));
const browser = await chromium.launch(chromiumOptions);
const page = await openPage(browser, `${server.base}/visit0/bench/web/decode.html`);
page.on('console', (m) => console.log(m.text()));
const out = await page.evaluate(
  async ([file, threads, past, n]) => {
    const { load } = await import('./../kilim/index.js').catch(() => import('../kilim/index.js'));
    const bytes = new Uint8Array(await (await fetch(`../../folder/${file}`)).arrayBuffer());
    const s = await load(bytes, { backends: ['cpu'], threads, worker: threads > 1 || undefined });
    const feeds = {};
    for (const i of s.inputs) {
      if (i.name === 'input_ids')
        feeds[i.name] = { type: 'int64', dims: [1, n], data: BigInt64Array.from({ length: n }, (_, k) => BigInt(3 + (k % 200))) };
      else if (i.name.startsWith('past'))
        feeds[i.name] = { type: 'float32', dims: [1, 4, past, 8], data: new Float32Array(32 * past).fill(0.01) };
      else if (s.inputs.length === 1 || true) {
        const d = i.dims.map((x) => (typeof x === 'number' ? x : 1));
        feeds[i.name] = { type: i.type, dims: d, data: new Float32Array(d.reduce((a, b) => a * b, 1)).fill(0.1) };
      }
    }
    for (let k = 0; k < 50; k++) await s.run(feeds);
    const t = performance.now();
    for (let k = 0; k < 100; k++) await s.run(feeds);
    const each = (performance.now() - t) / 100;
    const p = [];
    for (let k = 0; k < 30; k++) p.push(await s.profile(feeds));
    return { each, p, keys: Object.keys(p[0]) };
  },
  [process.argv[3], Number(process.argv[4] ?? 1), Number(process.argv[5] ?? 12), Number(process.argv[6] ?? 1)],
);
console.log('run', out.each.toFixed(3), out.keys);
const nodes = (x) => x.nodes ?? x.times ?? x;
const by = {};
const list = [];
nodes(out.p[0]).forEach((n, i) => {
  const all = out.p.map((x) => nodes(x)[i].seconds ?? nodes(x)[i].ms / 1e3).sort((a, b) => a - b);
  const s = all.reduce((a, b) => a + b) / all.length;
  list.push([n.name, n.op, s]);
  by[n.op] = (by[n.op] ?? 0) + s;
});
console.log('sum', (list.reduce((a, x) => a + x[2], 0) * 1e3).toFixed(3));
for (const [k, v] of Object.entries(by)
  .sort((a, b) => b[1] - a[1])
  .slice(0, 20))
  console.log(k.padEnd(24), (v * 1e3).toFixed(4), list.filter((x) => x[1] === k).length);
if (process.argv[7]) for (const x of list) console.log(x[0].padEnd(40), x[1].padEnd(20), (x[2] * 1e6).toFixed(1));
await browser.close();
server.close();
