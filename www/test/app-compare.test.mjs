// The web app holds a model against files of inputs and outputs, and its nodes against the CPU.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { deflateRawSync } from 'node:zlib';
import { appPage, dropModel, launchApp, test } from './support/app.mjs';
import { model, tensor } from './support/onnx.mjs';

let app;
before(async () => {
  app = await launchApp();
});
after(() => app.close());

const doubled = model({
  nodes: [
    ['Mul', ['x', 'two'], ['y']],
    ['Neg', ['x'], ['z']],
  ],
  inputs: [['x', [2, 3]]],
  outputs: [
    ['y', [2, 3]],
    ['z', [2, 3]],
  ],
  initializers: [tensor('two', [1], { floats: [2] })],
});

/** A `.npy` file of floats. */
function npy(dims, floats) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(', ')},), }`;
  const header = `${text.padEnd(117)}\n`;
  return Buffer.concat([
    Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length, 0]),
    Buffer.from(header),
    Buffer.from(Float32Array.from(floats).buffer),
  ]);
}

/** A zip archive, with its second entry deflated. */
function zip(files) {
  const [parts, directory] = [[], []];
  let at = 0;
  Object.entries(files).forEach(([name, bytes], i) => {
    const packed = i === 1 ? deflateRawSync(bytes) : bytes;
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(i === 1 ? 8 : 0, 4);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(bytes.length, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), packed]);
    const where = Buffer.alloc(14);
    where.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\0\0', 'latin1'), fields, where, Buffer.from(name)]));
    parts.push(local);
    at += local.length;
  });
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, listed, Buffer.from('PK\x05\x06', 'latin1'), end]);
}

const file = (name, buffer) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(buffer) });

async function comparing() {
  const opened = await appPage(app);
  await dropModel(opened.page, 'doubled.onnx', doubled);
  await opened.page.getByRole('tab', { name: 'Compare' }).click();
  return opened;
}

const row = (page, output) => page.locator(`[data-testid=compare-result] tr[data-output=${output}]`);

test('an archive of numpy says where an output is off', async () => {
  const { page, done } = await comparing();
  const x = [1, 2, 3, 4, 5, 6];
  const archive = zip({
    'x.npy': npy([2, 3], x),
    'y.npy': npy([2, 3], [2, 4, 6, 8, 10.5, 12]),
    'z.npy': npy(
      [2, 3],
      x.map((v) => -v),
    ),
    'w.npy': npy([1], [0]),
  });
  await page.getByTestId('compare-files').setInputFiles(file('reference.npz', archive));
  await row(page, 'y').waitFor();
  assert.equal(await row(page, 'y').getByTestId('largest').textContent(), '0.5');
  assert.equal(await row(page, 'y').getByTestId('where').textContent(), '[1, 1]');
  assert.match(await row(page, 'y').textContent(), /1 of 6$/);
  assert.match(await row(page, 'z').textContent(), /none of 6$/);
  assert.equal(
    await page.getByTestId('compare-status').textContent(),
    '1 of 2 outputs differ; 1 of 1 inputs are of the files; not used: w',
  );
  await page.getByTestId('compare-absolute').fill('1');
  await page.getByTestId('compare-again').click();
  await page.waitForFunction(() => /^All outputs/.test(document.querySelector('[data-testid=compare-status]').textContent));
  await done();
});

test("test data of ONNX is taken by its files' names, and a wrong file is a typed error", async () => {
  const { page, done } = await comparing();
  const input = tensor('x', [2, 3], { floats: [1, 2, 3, 4, 5, 6] });
  const output = tensor('whatever', [2, 3], { floats: [-1, -2, -3, -4, -5, -6], typed: true });
  const short = tensor('whatever', [3, 2], { floats: [2, 4, 6, 8, 10, 12] });
  await page
    .getByTestId('compare-files')
    .setInputFiles([file('input_0.pb', input), file('output_1.pb', output), file('output_0.pb', short)]);
  await row(page, 'z').waitFor();
  assert.match(await row(page, 'z').textContent(), /none of 6$/);
  assert.match(await row(page, 'y').textContent(), /\[2, 3\], not \[3, 2\]/);
  const archive = zip({ 'y.npy': npy([2, 3], [2, 4, 6, 8, 10, 12]) });
  const wrong = [
    ['INVALID_VALUE', file('y.npy', npy([2, 30], [1, 2]))],
    ['INVALID_VALUE', file('y.npz', archive.subarray(0, archive.length - 30))],
    ['INVALID_MODEL', file('output_0.pb', Buffer.from(input).subarray(0, 20))],
    ['INVALID_VALUE', file('y.txt', '1 2 3')],
    ['INPUT', file('nothing.npy', npy([1], [1]))],
  ];
  for (const [code, bad] of wrong) {
    await page.getByTestId('compare-files').setInputFiles(bad);
    await page.locator(`[data-testid=compare-result] [data-code=${code}]`).waitFor({ timeout: 5000 });
  }
  await done();
});

test('nodes are held against the CPU', async () => {
  const { page, done } = await appPage(app);
  await page.getByRole('tab', { name: 'Compare' }).click();
  await page.getByTestId('verify-backend').selectOption('wgpu');
  await page.getByTestId('verify').click();
  const rows = page.locator('[data-testid=verify-result] tbody tr');
  await rows.first().waitFor();
  assert.ok((await page.locator('[data-testid=verify-result] tr[data-agreement=same]').count()) > 3);
  assert.match(await page.locator('#panel-compare').textContent(), /nodes of wgpu agree with cpu, 0 differ/);
  await page.getByTestId('verify-tolerance').fill('0');
  await page.getByTestId('verify').click();
  await page.locator('[data-testid=verify-result] tr[data-agreement=differs]').first().waitFor();
  assert.match(await page.locator('#panel-compare').textContent(), /the first is \w+/);
  await done();
});
