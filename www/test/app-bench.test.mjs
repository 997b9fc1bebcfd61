// The benchmark of the web app: settings side by side, a file to save, a link that carries both.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import { ISOLATED, appPage, launchApp, test } from './support/app.mjs';

let app;
before(async () => {
  app = await launchApp();
});
after(() => app.close());

/** The texts of a table, row by row. */
const cells = (table) => table.locator('tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** Measures what the form says, five runs of it, and gives the rows of the table. */
async function measured(page) {
  await page.getByTestId('bench-warmup').fill('1');
  await page.getByTestId('bench-runs').fill('5');
  await page.getByTestId('bench-start').click();
  await page.getByTestId('bench-save').waitFor({ timeout: 60_000 });
  return cells(page.getByTestId('bench-results'));
}

test('backends stand side by side, and a page that is not isolated says why it has one thread', async () => {
  const { page, done } = await appPage(app);
  await page.getByRole('tab', { name: 'Benchmark' }).click();
  assert.match(await page.locator('#panel-bench').textContent(), /More than one thread needs a page that is cross-origin isolated/);
  assert.ok(await page.getByTestId('bench-threads-2').isDisabled());
  await page.getByTestId('bench-precision-half').check();
  const rows = await measured(page);
  assert.deepEqual(
    rows.map(([backend, threads]) => `${backend} ${threads}`),
    ['cpu 1', 'cpu 1', 'wgpu 1', 'wgpu 1'],
  );
  for (const [, , , median, , quartiles, first, load] of rows) {
    for (const time of [load, first, median]) assert.match(time, /\d (s|ms|µs)/);
    assert.match(quartiles, /\d .?s – [\d.]+ .?s/);
  }
  assert.match(rows[1][2], /half where faster \(\d+ nodes\)/);
  await done();
});

test('what is saved and what a link carries is what was measured', async () => {
  const { page, done } = await appPage(app, { headers: ISOLATED });
  await page.getByRole('tab', { name: 'Benchmark' }).click();
  await page.getByTestId('bench-backend-wgpu').uncheck();
  const rows = await measured(page);
  assert.ok(rows.length >= 2 && rows[1][1] === '2', 'an isolated page has more threads');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId('bench-save').click()]);
  const saved = JSON.parse(readFileSync(await download.path(), 'utf8'));
  assert.equal(saved.model, 'Handwritten digits');
  assert.deepEqual(saved.plan, { backends: ['cpu'], threads: saved.plan.threads, precisions: ['file'], warmup: 1, runs: 5 });
  for (const { spread, load, first } of saved.results) {
    const times = [spread.least, spread.lower, spread.median, spread.upper, spread.most];
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
    assert.ok(spread.least > 0 && load > 0 && first > 0);
  }
  const withResults = await page.getByTestId('bench-link').inputValue();
  await page.getByTestId('bench-with-results').uncheck();
  const settingsOnly = await page.getByTestId('bench-link').inputValue();
  assert.ok(settingsOnly.length < withResults.length);
  await done();

  const other = await appPage(app, { hash: new URL(withResults).hash });
  assert.equal(await other.page.getByRole('tab', { name: 'Benchmark' }).getAttribute('aria-selected'), 'true');
  const received = other.page.getByTestId('bench-received');
  const shown = (await cells(received)).map(([, threads]) => threads);
  assert.deepEqual(
    shown,
    saved.results.map(({ setting }) => String(setting.threads)),
  );
  assert.equal(await received.locator('input, button').count(), 0, 'results of others are read only');
  assert.equal(await other.page.getByTestId('bench-runs').inputValue(), '5');
  assert.ok(!(await other.page.getByTestId('bench-backend-wgpu').isChecked()));
  await other.done();

  const third = await appPage(app, { hash: new URL(settingsOnly).hash });
  assert.equal(await third.page.getByTestId('bench-received').count(), 0);
  assert.equal(await third.page.getByTestId('bench-warmup').inputValue(), '1');
  await third.done();
});

test('a link that is no benchmark is a typed error', async () => {
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const plan = { backends: ['cpu'], threads: [1], precisions: ['file'], warmup: 0, runs: 1e9 };
  for (const rest of ['%%%', 'x'.repeat(20_000), encoded([]), encoded({ plan }), encoded({ plan: { ...plan, runs: 1 }, benchmark: {} })]) {
    const { page, done } = await appPage(app, { hash: `#bench=${rest}` });
    await page.locator('#panel-bench [data-code=INVALID_VALUE]').waitFor();
    await done();
  }
});
