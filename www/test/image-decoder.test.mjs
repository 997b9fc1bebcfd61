// ImageDecoder in the page: the decoders' binary is fetched for models that have it, what it gives is what the suite asks for, and
// a garbled file is an error that the session outlives.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fields } from './support/onnx.mjs';
import { packagePage } from './support/page.mjs';
import { references } from './support/references.mjs';

const suite = process.env.KILIM_CONFORMANCE;
const skip = suite && existsSync(suite) ? false : 'the ONNX suite is not there';
const FORMATS = ['bmp_rgb', 'jpeg2k_rgb', 'jpeg_bgr', 'jpeg_grayscale', 'jpeg_rgb', 'png_rgb', 'pnm_rgb', 'tiff_rgb', 'webp_rgb'];

const fetched = [];
const here = packagePage({
  opened: (page) => page.context().on('request', (request) => fetched.push(new URL(request.url()).pathname)),
});

const folder = (format) => join(suite, 'node', `test_image_decoder_decode_${format}`);

/** The dims and bytes of the tensor in a file's bytes. */
function tensorOf(file) {
  const read = fields(file);
  return { dims: read.filter(([field]) => field === 1).map(([, dim]) => Number(dim)), bytes: [...read.find(([field]) => field === 9)[1]] };
}

/** Decodes files in one session: of each the dims and bytes, or the error's code and operator. */
function decode(model, files, worker) {
  return here.page.evaluate(
    async ({ model, files, worker }) => {
      const session = await kilim.load(new Uint8Array(model), { backends: ['cpu'], worker });
      const input = session.inputs[0].name;
      const results = [];
      for (const file of files) {
        try {
          const [{ dims, data }] = Object.values(await session.run({ [input]: Uint8Array.from(file) }));
          results.push({ dims: [...dims], bytes: [...data] });
        } catch ({ code, op }) {
          results.push({ code, op });
        }
      }
      session.close();
      return results;
    },
    { model: [...model], files, worker },
  );
}

test('without an ImageDecoder the decoders are not fetched', async () => {
  await here.page.evaluate(async () => (await kilim.load('/assets/digits.onnx', { backends: ['cpu'], worker: false })).close());
  assert.ok(fetched.some((path) => path.endsWith('.wasm')));
  assert.ok(!fetched.includes('/kilim/kilim.pictures.wasm'));
});

for (const worker of [true, false]) {
  test(`the suite's pictures are decoded ${worker ? 'in the worker' : 'in the page'}`, { skip }, async () => {
    for (const format of FORMATS) {
      const data = join(folder(format), 'test_data_set_0');
      const { bytes } = tensorOf(readFileSync(join(data, 'input_0.pb')));
      const [decoded] = await decode(readFileSync(join(folder(format), 'model.onnx')), [bytes], worker);
      assert.deepEqual(decoded, tensorOf(readFileSync(join(data, 'output_0.pb'))), format);
    }
    assert.ok(fetched.includes('/kilim/kilim.pictures.wasm'));
  });
}

test('what is no picture is an error, and the next picture is decoded', async () => {
  const cases = references('pictures');
  const data = 'jpeg_420_75_progressive/test_data_set_0';
  const { bytes } = tensorOf(cases.get(`${data}/input_0.pb`));
  const giant = [...Buffer.from('P6\n60000 60000\n255\nabc')];
  // The model of another case takes files of any length, too.
  const results = await decode(cases.get('png/model.onnx'), [[1, 2, 3], bytes.slice(0, 300), giant, bytes], true);
  assert.deepEqual(
    results.map(({ code }) => code),
    ['UNSUPPORTED', 'INVALID_VALUE', 'LIMIT', undefined],
  );
  assert.equal(results[0].op, 'ImageDecoder');
  assert.deepEqual(results[3], tensorOf(cases.get(`${data}/output_0.pb`)));
});
