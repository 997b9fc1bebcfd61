// `kilim/isolation`: pages of a server without headers become cross-origin isolated, and have threads.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, repository, www } from './support/browser.mjs';
import { run } from './support/project.mjs';
import { serve } from './support/server.mjs';

const dist = join(www, 'dist', 'kilim');
const NONE = { 'content-security-policy': "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; img-src *" };

let browser;
let folder;
before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), 'kilim-isolation-'));
  await run(folder, process.execPath, [join(dist, 'node.cli.js'), 'isolation', 'site']);
  mkdirSync(join(folder, 'site', 'below'));
  copyFileSync(join(repository, 'assets', 'digits.onnx'), join(folder, 'site', 'digits.onnx'));
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A page that calls `isolate(worker)` as it opens, unless its address has `?not`; what came out is `globalThis.done`. */
const pageWith = (worker, more = '') => `<!doctype html><title>test</title>${more}<script type="module">
import { isolate } from '/kilim/isolation.js';
globalThis.done = location.search === '?not' ? {} : await isolate(${worker});
</script>`;

/** Opens a page of the site. `loads` counts how often it was asked for. */
async function opened(html, { path = '/', headers = NONE, files = {}, context } = {}) {
  writeFileSync(join(folder, 'site', path, 'index.html'), html);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'site', name), text);
  const server = await serve(
    [
      ['/kilim/', dist],
      ['/', join(folder, 'site')],
    ],
    headers,
  );
  const { page, problems } = await open(context ?? browser, `${server.url}${path}`);
  return {
    page,
    url: server.url,
    loads: () => server.asked.filter((asked) => asked === path).length,
    done: () =>
      page.waitForFunction(() => globalThis.done && { ...globalThis.done, is: crossOriginIsolated }).then((handle) => handle.jsonValue()),
    async close() {
      await page.close();
      await server.close();
      assert.deepEqual(problems, []);
    },
  };
}

/** What a session with threads computes on, and why it has one. */
const session = (page) =>
  page.evaluate(async () => {
    const { load } = await import('/kilim/index.js');
    const session = await load('/digits.onnx', { backends: ['cpu'], threads: 2 });
    await session.run({ image: new Float32Array(784) });
    const { backends, oneThread } = session.report;
    session.close();
    return { threads: /(\d+) threads?$/.exec(backends[0].device)?.[1], oneThread };
  });

test('a page of a server without headers is isolated after one reload, and its session has threads', { timeout: 60_000 }, async () => {
  const here = await opened(pageWith("'/isolation.worker.js'"));
  await here.page.goto(`${here.url}/?not`);
  await here.done();
  const before = await session(here.page);
  assert.equal(before.threads, '1');
  assert.match(before.oneThread, /not cross-origin isolated.*kilim\/isolation/);
  const loads = here.loads();
  await here.page.goto(`${here.url}/?`);
  assert.deepEqual(await here.done(), { isolated: true, reason: null, is: true });
  assert.deepEqual(await session(here.page), { threads: '2', oneThread: null });
  assert.ok(here.loads() - loads <= 2, `${here.loads() - loads} loads`);
  // From then on nothing is loaded twice.
  const then = here.loads();
  await here.page.goto(`${here.url}/?`);
  assert.deepEqual(await here.done(), { isolated: true, reason: null, is: true });
  assert.equal(here.loads() - then, 1);
  // Pictures of other origins that know nothing of isolation are shown: the policy is the browser's `credentialless`.
  const other = await serve([['/', join(repository, 'assets')]]);
  const width = await here.page
    .evaluate(async (src) => {
      const image = Object.assign(new Image(), { src });
      await image.decode();
      return image.naturalWidth;
    }, `${other.url}/digit-3.png`)
    .catch(({ message }) => message);
  await other.close();
  await here.close();
  assert.equal(width, 28);
});

test('a browser that does not know the first policy gets the other, and one that knows none is left alone', {
  timeout: 60_000,
}, async () => {
  const text = readFileSync(join(folder, 'site', 'isolation.worker.js'), 'utf8');
  for (const [file, replaced, isolated] of [
    ['other.js', { credentialless: 'never-heard' }, true],
    ['none.js', { credentialless: 'never-heard', 'require-corp': 'nor-this' }, false],
  ]) {
    // What the worker calls its policies stays; what it sends is not known.
    const send = `const set = Headers.prototype.set; const sent = ${JSON.stringify(replaced)};
Headers.prototype.set = function (name, value) { set.call(this, name, sent[value] ?? value); };\n`;
    const context = await browser.newContext();
    const here = await opened(pageWith(`'/${file}'`), { files: { [file]: send + text }, context });
    const done = await here.done();
    assert.deepEqual([done.isolated, done.is, here.loads()], [isolated, isolated, 3], file);
    if (!isolated) {
      assert.match(done.reason, /sends other headers/);
      await here.page.reload();
      assert.match((await here.done()).reason, /sends other headers/);
      assert.equal(here.loads(), 4);
    }
    await here.close();
    await context.close();
  }
});

test('where a reload would not help there is none, and the reason is given', { timeout: 60_000 }, async () => {
  const isolated = { ...NONE, 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
  const absent = '<script>delete Navigator.prototype.serviceWorker</script>';
  const frame = '<script>if (location.hash) globalThis.done = {}</script>';
  for (const [html, how, want] of [
    [pageWith("'/isolation.worker.js'"), { headers: isolated }, null],
    [pageWith("'/isolation.worker.js'", absent), {}, /no service workers/],
    [pageWith("'/missing.js'"), {}, /cannot be used: .*404/],
    [pageWith('undefined'), {}, /cannot be used/],
    [pageWith("'/below/isolation.worker.js'", frame), { files: { 'below/isolation.worker.js': '' } }, /in charge of .*\/below\/ /],
  ]) {
    const context = await browser.newContext();
    const here = await opened(html, { ...how, context });
    const { isolated, reason } = await here.done();
    assert.equal(here.loads(), 1);
    assert.equal(await here.page.evaluate(async () => (await navigator.serviceWorker?.getRegistration('/'))?.scope), undefined);
    await here.close();
    await context.close();
    if (want === null) assert.deepEqual([isolated, reason], [true, null]);
    else assert.match(reason, want);
  }
});

test('a page in a frame, and one that may keep nothing, are told and not loaded again', { timeout: 60_000 }, async () => {
  const framed = "<script>if (location.search === '?not') document.write('<iframe src=\"/\"></iframe>')</script>";
  const closed = "<script>Object.defineProperty(globalThis, 'sessionStorage', { get() { throw new Error('not allowed'); } })</script>";
  const context = await browser.newContext();
  const here = await opened(pageWith("'/isolation.worker.js'", closed + framed), { context });
  assert.match((await here.done()).reason, /cannot be used: not allowed/);
  await here.page.goto(`${here.url}/?not`);
  const frame = here.page.frames()[1];
  await frame.waitForFunction(() => globalThis.done);
  assert.match(await frame.evaluate(() => globalThis.done.reason), /in a frame/);
  assert.equal(here.loads(), 3);
  await here.close();
  const isolated = { ...NONE, 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
  const other = await opened(pageWith("'/isolation.worker.js'", closed), { context, headers: isolated });
  assert.deepEqual(await other.done(), { isolated: true, reason: null, is: true });
  await other.close();
  await context.close();
});

test("a page's own service worker answers with the headers", { timeout: 60_000 }, async () => {
  const own = `import { isolated } from '/kilim/isolation.js';
addEventListener('fetch', (event) => {
  if (new URL(event.request.url).origin !== location.origin) return;
  const answer = event.request.url.endsWith('/mine') ? new Response('of the worker') : fetch(event.request);
  event.respondWith(isolated(answer));
});`;
  const context = await browser.newContext();
  const here = await opened(pageWith("await navigator.serviceWorker.register('/own.js', { type: 'module' })"), {
    files: { 'own.js': own },
    context,
  });
  assert.deepEqual(await here.done(), { isolated: true, reason: null, is: true });
  assert.equal(here.loads(), 2);
  assert.equal(await here.page.evaluate(async () => (await fetch('/mine')).text()), 'of the worker');
  assert.deepEqual(await session(here.page), { threads: '2', oneThread: null });
  await here.close();
  await context.close();
});

test('Node.js imports it, and is told that it is no page', async () => {
  const { isolate } = await import(join(dist, 'isolation.js'));
  assert.deepEqual(await isolate('/isolation.worker.js'), { isolated: false, reason: 'this is no page' });
});
