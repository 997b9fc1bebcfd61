// A page that has imported the package, for all tests of a file.
import { join } from 'node:path';
import { after, before } from 'node:test';
import { launch, open, repository, www } from './browser.mjs';
import { serve } from './server.mjs';

/** What tests use in the page. */
async function prepare() {
  globalThis.kilim = await import('/kilim/index.js');
  globalThis.bytes = async () => new Uint8Array(await (await fetch('/assets/digits.onnx')).arrayBuffer());
  // A picture of a digit as the model takes it.
  globalThis.digit = async (n) => {
    const picture = await createImageBitmap(await (await fetch(`/assets/digit-${n}.png`)).blob());
    const context = new OffscreenCanvas(28, 28).getContext('2d');
    context.drawImage(picture, 0, 0);
    return Float32Array.from({ length: 784 }, (_, i) => context.getImageData(0, 0, 28, 28).data[i * 4] / 255);
  };
  globalThis.best = ({ data }) => data.indexOf(Math.max(...data));
  // What a promise was rejected with, as plain data.
  globalThis.failureOf = async (promise) => {
    try {
      await promise;
      return null;
    } catch (error) {
      const { code, message, node, op, input, expected, got, hint } = error;
      return { typed: error instanceof kilim.KilimError && error instanceof Error, code, message, node, op, input, expected, got, hint };
    }
  };
}

/**
 * Opens the page before the tests of a file and closes it after them. Gives what is filled in then: `browser`, `server`,
 * `page`, and the `problems` that nobody caught. `folders` are served beside the package, and `opened` is told of the page: hooks
 * do not wait for each other. `closing` is called before the server ends. `flags` are for the browser, `headers` for the server.
 */
export function packagePage({ folders = [], opened = () => {}, closing = () => {}, skip = false, flags = [], headers = {} } = {}) {
  const here = {};
  before(async () => {
    if (skip) return;
    here.browser = await launch(flags);
    here.server = await serve([['/kilim/', join(www, 'dist', 'kilim')], ['/assets/', join(repository, 'assets')], ...folders], headers);
    Object.assign(here, await open(here.browser, `${here.server.url}/empty`));
    await here.page.evaluate(prepare);
    await opened(here.page);
  });
  after(async () => {
    await here.browser?.close();
    await closing();
    await here.server?.close();
  });
  return here;
}
