// A page, and a worker of it, that makes tensors of every kind of picture. All are of the same pixels.
import { join } from 'node:path';
import { www } from './folders.mjs';
import { packagePage } from './page.mjs';
import { serve } from './server.mjs';

/** What page and worker have. */
const SCRIPT = `
import { noise } from '/support/noise.mjs';

const data = new Uint8ClampedArray(noise(4 * 24 * 16)).map((byte, i) => (i % 4 === 3 ? 255 : byte));
const pixels = { width: 24, height: 16, data };
const image = new ImageData(data, 24, 16);

function painted(canvas) {
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}
const offscreen = () => painted(new OffscreenCanvas(24, 16));
const png = () => offscreen().convertToBlob();
const KINDS = {
  pixels: () => pixels,
  ImageData: () => image,
  ImageBitmap: () => createImageBitmap(image),
  OffscreenCanvas: offscreen,
  canvas: () => painted(Object.assign(document.createElement('canvas'), { width: 24, height: 16 })),
  VideoFrame: () => new VideoFrame(data, { format: 'RGBA', codedWidth: 24, codedHeight: 16, timestamp: 0 }),
  img: async () => {
    const element = new Image();
    element.src = '/drawn/picture.png';
    await element.decode();
    return element;
  },
  Blob: png,
};

export async function draw(kind) {
  const { Tensor } = await import('/kilim/index.js');
  const tensor = await Tensor.from(await KINDS[kind](), { size: 7, fit: 'letterbox', crop: { x: 3, y: 2, width: 20, height: 13 } });
  return [...tensor.data];
}

export async function failures(foreign) {
  const { Tensor } = await import('/kilim/index.js');
  const codeOf = async (picture) => Tensor.from(await picture).then(() => undefined, ({ name, code }) => name === 'KilimError' && code);
  const closed = await createImageBitmap(image);
  closed.close();
  const tainted = new Image();
  tainted.src = foreign;
  await tainted.decode();
  return {
    closed: await codeOf(closed),
    unloaded: await codeOf(new Image()),
    broken: await codeOf(new Blob(['not a picture'], { type: 'image/png' })),
    foreign: await codeOf(tainted),
    video: await codeOf(document.createElement('video')),
  };
}

export const file = async () => [...new Uint8Array(await (await png()).arrayBuffer())];
`;
const WORKER = `
import { draw } from '/drawn/drawn.js';
onmessage = async ({ data }) => postMessage(await draw(data));
`;

export function launchPicturesPage() {
  const files = new Map([
    ['drawn.js', Buffer.from(SCRIPT)],
    ['worker.js', Buffer.from(WORKER)],
  ]);
  const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src *";
  let other;
  const here = packagePage({
    folders: [
      ['/support/', join(www, 'test', 'support')],
      ['/drawn/', files],
    ],
    headers: { 'content-security-policy': policy },
    async opened(page) {
      const bytes = await page.evaluate(async () => (await import('/drawn/drawn.js')).file());
      files.set('picture.png', Uint8Array.from(bytes));
      here.before = [...here.server.asked];
    },
    async closing() {
      await (await other)?.close();
    },
  });
  here.drawn = (kind) => here.page.evaluate(async (kind) => (await import('/drawn/drawn.js')).draw(kind), kind);
  here.drawnInWorker = (kind) =>
    here.page.evaluate(
      (kind) =>
        new Promise((resolve, reject) => {
          const worker = new Worker('/drawn/worker.js', { type: 'module' });
          worker.onerror = ({ message }) => reject(new Error(message));
          worker.onmessage = ({ data }) => {
            worker.terminate();
            resolve(data);
          };
          worker.postMessage(kind);
        }),
      kind,
    );
  here.failures = async () => {
    other ??= serve([['/drawn/', files]]);
    const { url } = await other;
    return here.page.evaluate(async (url) => (await import('/drawn/drawn.js')).failures(url), `${url}/drawn/picture.png`);
  };
  return here;
}
