// Asks a model about an image in headless Chromium, through the npm package as it was built; its answer starts with
// the class of the highest score.
//   node tools/demo.mjs --url http://127.0.0.1:PORT/ --model FILE --image FILE --backend wgpu --pixels OUT.npy
// The package is in the folder `kilim` under the URL, the model and the picture have their paths there. What the browser made of the
// picture goes into OUT.npy.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values: args } = parseArgs({
  options: {
    url: { type: 'string' },
    model: { type: 'string' },
    image: { type: 'string' },
    backend: { type: 'string' },
    pixels: { type: 'string' },
  },
});
const repository = new URL('../', import.meta.url);
const webdriver = JSON.parse(readFileSync(new URL('tests/webdriver.json', repository), 'utf8'));
const flags = webdriver['goog:chromeOptions'].args.filter((flag) => !flag.startsWith('--headless'));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error(String(error)));
  await page.route(args.url, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>demo</title>' }));
  await page.goto(args.url);
  const answer = await page.evaluate(ask, {
    package: new URL('kilim/index.js', args.url).href,
    model: new URL(args.model, args.url).href,
    image: new URL(args.image, args.url).href,
    backends: [args.backend],
  });
  writeFileSync(args.pixels, npy(answer.dims, answer.data));
  console.log(`${answer.best}  ${answer.score.toFixed(6)}`);
} finally {
  await browser.close();
}

/** NumPy's format, version 1.0, of `float32`. */
function npy(dims, data) {
  const fields = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(', ')}), }`;
  const header = `${fields.padEnd(Math.ceil((fields.length + 11) / 64) * 64 - 11)}\n`;
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length & 255, header.length >> 8]);
  return Buffer.concat([start, Buffer.from(header, 'latin1'), Buffer.from(Float32Array.from(data).buffer)]);
}

/** Runs in the page. */
async function ask(want) {
  const { load } = await import(want.package);
  const bitmap = await createImageBitmap(await (await fetch(want.image)).blob());
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
  canvas.drawImage(bitmap, 0, 0);
  const { data: pixels } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
  const data = Float32Array.from({ length: pixels.length / 4 }, (_, i) => pixels[4 * i] / 255);
  const session = await load(want.model, { backends: want.backends });
  try {
    const input = session.inputs[0].name;
    const output = Object.values(await session.run({ [input]: { type: 'float32', dims: [1, 1, bitmap.height, bitmap.width], data } }))[0];
    const scores = [...output.data];
    const score = Math.max(...scores);
    return { best: scores.indexOf(score), score, dims: [1, 1, bitmap.height, bitmap.width], data: [...data] };
  } finally {
    await session.close();
  }
}
