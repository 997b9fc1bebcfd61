// Gives each model of a folder to the package, in Node and in Chromium: `web.mjs FOLDER [--every N] [--in node|chromium]`.
import { readFileSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch, open, www } from '../../www/test/support/browser.mjs';
import { serve } from '../../www/test/support/server.mjs';
import { giveEach } from './give.mjs';

const SECONDS = 5;
const BYTES = 1e9;
/** Files between two looks at memory. */
const BATCH = 20;

const {
  values,
  positionals: [folder],
} = parseArgs({
  allowPositionals: true,
  options: { every: { type: 'string', default: '1' }, in: { type: 'string', multiple: true, default: ['node', 'chromium'] } },
});
const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'));
const models = Object.keys(index).filter((name) => index[name] === 'model');
const names = models.filter((_, i) => i % Number(values.every) === 0);

/** The most memory that a process held, in bytes; 0 where the system does not say. */
function peak(pid) {
  try {
    return 1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function pagesOfBrowsers() {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('--type=renderer');
    } catch {
      return false;
    }
  });
}

async function inNode() {
  const kilim = await import('../../www/dist/kilim/index.js');
  const give = (batch) => giveEach(kilim, batch, async (name) => new Uint8Array(await readFile(join(folder, name))));
  return { give, bytes: () => peak(process.pid), close: () => undefined };
}

async function inChromium() {
  const here = dirname(fileURLToPath(import.meta.url));
  const server = await serve([
    ['/kilim/', join(www, 'dist', 'kilim')],
    ['/hostile/', here],
    ['/files/', folder],
  ]);
  const browser = await launch();
  let page;
  const give = async (batch) => {
    page ??= (await open(browser, `${server.url}/empty`)).page;
    try {
      return await page.evaluate(async (batch) => {
        const [kilim, { giveEach }] = await Promise.all([import('/kilim/index.js'), import('/hostile/give.mjs')]);
        const read = async (name) => new Uint8Array(await (await fetch(`/files/${encodeURIComponent(name)}`)).arrayBuffer());
        return giveEach(kilim, batch, read);
      }, batch);
    } catch (error) {
      page = undefined;
      if (batch.length === 1) return [{ name: batch[0], outcome: `failed: the page ended: ${error}`, milliseconds: 0 }];
      const ended = [];
      for (const name of batch) ended.push(...(await give([name])));
      return ended;
    }
  };
  const close = async () => {
    await browser.close();
    await server.close();
  };
  return { give, bytes: () => Math.max(0, ...pagesOfBrowsers().map(peak)), close };
}

let faults = 0;
for (const place of values.in) {
  const host = await (place === 'node' ? inNode() : inChromium());
  const outcomes = {};
  let slowest = { milliseconds: 0 };
  let most = 0;
  for (let i = 0; i < names.length; i += BATCH) {
    const batch = names.slice(i, i + BATCH);
    for (const ended of await host.give(batch)) {
      const late = ended.milliseconds > SECONDS * 1000;
      const failed = late || ended.outcome.startsWith('failed');
      if (failed) console.log(`${place}: ${ended.name}: ${ended.outcome}, ${(ended.milliseconds / 1000).toFixed(1)} s`);
      faults += failed ? 1 : 0;
      const kind = ended.outcome.split(':')[0];
      outcomes[kind] = (outcomes[kind] ?? 0) + 1;
      if (ended.milliseconds > slowest.milliseconds) slowest = ended;
    }
    const bytes = host.bytes();
    if (bytes > BYTES && most <= BYTES) {
      faults += 1;
      console.log(`${place}: more than ${BYTES / 1e6} MB with one of ${batch.join(', ')}`);
    }
    most = Math.max(most, bytes);
  }
  await host.close();
  console.log(
    `${place}: ${names.length} models: ${JSON.stringify(outcomes)}; slowest ${slowest.name}, ${(slowest.milliseconds / 1000).toFixed(1)} s; most ${(most / 1e6).toFixed()} MB`,
  );
}
process.exit(faults > 0 ? 1 : 0);
