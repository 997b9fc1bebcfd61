import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { bench, chromiumOptions, openPage } from './browser.mjs';
import { serve } from './server.mjs';
const packages = { 'bench/modules/': join(bench, 'node_modules'), 'bench/kilim/': 'www/dist/kilim' };
const server = await serve({ ...packages, 'bench/': bench }, Object.keys(packages));
const browser = await chromium.launch(chromiumOptions);
const page = await openPage(browser, `${server.base}/visit0/bench/web/decode.html`);
console.log(await page.evaluate(async () => {
  const src = `onmessage = (e) => { const t = performance.now(); const spin = e.data.spin ?? 0; while (performance.now() - t < spin); postMessage(e.data, e.data.b ? [e.data.b] : []); }`;
  const w = new Worker(URL.createObjectURL(new Blob([src])));
  const ask = (m, t) => new Promise((r) => { w.onmessage = (e) => r(e.data); w.postMessage(m, t); });
  const out = {};
  for (const [name, spin, big] of [['empty', 0, 0], ['1ms', 1, 0], ['2ms', 2, 0], ['2ms+600k carrier', 2, 602112], ['2ms+600k copy', 2, -602112], ['0+600k carrier', 0, 602112]]) {
    let b = big > 0 ? new ArrayBuffer(big) : undefined; const src = new Float32Array(Math.abs(big) / 4);
    const go = async () => { if (big > 0) { new Float32Array(b).set(src); const d = await ask({ spin, b }, [b]); b = d.b; } else if (big < 0) await ask({ spin, x: src }, []); else await ask({ spin }, []); };
    for (let i = 0; i < 100; i++) await go();
    const t = performance.now(); for (let i = 0; i < 300; i++) await go(); out[name] = (performance.now() - t) / 300 - spin;
  }
  const x = new Float32Array(150528), y = new Float32Array(150528); const t = performance.now(); for (let i = 0; i < 200; i++) y.set(x); out.copy = (performance.now() - t) / 200;
  return out;
}));
await browser.close(); server.close();
