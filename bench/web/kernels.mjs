// Times the kernels of the CPU in Chromium beside the peak of the same machine there. `cargo xtask bench kernels` calls it:
//   node bench/web/kernels.mjs --pkg www/pkg --builds relaxed,simd --out RECORD.json [--shapes TEXT] [--check]
// Each build has a page of its own. The pages compute on one thread.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { commit, machine, save } from '../common/record.mjs';
import { bench, chromiumOptions, openPage, timed } from './browser.mjs';
import { serve } from './server.mjs';

const { values: args } = parseArgs({
  options: {
    pkg: { type: 'string' },
    out: { type: 'string' },
    builds: { type: 'string', default: 'relaxed,simd' },
    shapes: { type: 'string', default: '' },
    runs: { type: 'string', default: '20' },
    sample: { type: 'string', default: '5' },
    timeout: { type: 'string', default: '300' },
    check: { type: 'boolean', default: false },
  },
});

const giga = (rate) => (rate / 1e9).toFixed(1);
const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** A line for each kernel. */
function print({ shape, kernels }) {
  for (const [i, { name, chosen, seconds, rate, of_peak, of_memory }] of kernels.entries()) {
    const figures =
      seconds === null
        ? ['much slower']
        : [`${(1e3 * seconds).toFixed(3)} ms`, `${giga(rate)} GFLOP/s`, percent(of_peak), percent(of_memory)];
    const cells = figures.map((figure) => figure.padStart(14)).join('');
    console.log(`${(i ? '' : shape).padEnd(46)}${`${chosen ? '*' : ' '} ${name}`.padEnd(22)}${cells}`);
  }
}

/** The peaks and rows of a build. */
async function measure(browser, base, build) {
  const page = await openPage(browser, `${base}/${build}/bench/web/kernels.html`);
  const within = (promise) => timed(promise, Number(args.timeout));
  try {
    const given = [build, Number(args.sample) / 1e3, Number(args.runs)];
    const { peaks, titles } = await within(page.evaluate((given) => kernels.open(...given), given));
    const { instructions, float32, int16, int8, memory } = peaks;
    console.log(
      `${instructions}, 1 thread: float32 ${giga(float32)} GFLOP/s, int16 ${giga(int16)} and int8 ${giga(int8)} GOP/s, memory ${giga(memory)} GB/s`,
    );
    console.log(
      `${'shape'.padEnd(46)}${'kernel (* chosen)'.padEnd(22)}${['', '', 'of peak', 'of memory'].map((head) => head.padStart(14)).join('')}`,
    );
    const rows = [];
    for (const [number, title] of titles.entries()) {
      if (!title.includes(args.shapes)) continue;
      const row = await within(page.evaluate((number) => kernels.measure(number), number));
      print(row);
      rows.push(row);
    }
    return { build, peaks, shapes: rows };
  } finally {
    await page.context().close();
  }
}

const here = machine();
const browser = await chromium.launch(chromiumOptions);
const server = await serve({ 'bench/pkg/': resolve(args.pkg), 'bench/': bench }, []);
const chromiumVersion = browser.version();
const builds = [];
try {
  for (const build of args.builds.split(',')) builds.push(await measure(browser, server.base, build));
} finally {
  await browser.close();
  server.close();
}
for (const { build, shapes } of builds) {
  if (!shapes.length) throw new Error(`no shape is called ${args.shapes}`);
  for (const { shape, fastest, loss } of shapes.filter(({ wrong }) => wrong)) {
    console.log(`wrong, ${build}: ${shape}: ${percent(loss)} more time than ${fastest}`);
  }
}
save(args.out, {
  kind: 'kernels',
  date: new Date().toISOString().slice(0, 10),
  machine: here,
  versions: { Chromium: chromiumVersion, Kilim: commit() },
  builds,
});
if (args.check && builds.some(({ shapes }) => shapes.some(({ wrong }) => wrong))) process.exitCode = 1;
