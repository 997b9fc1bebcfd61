// Element types without a browser: the package's tensors run anywhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, fromNumbers, toNumbers } from '../dist/modules/index.js';
import { prepareFeeds } from '../dist/modules/feeds.js';
import { fromWireValue, tensorsOf } from '../dist/modules/values.js';

test('float16 goes there and back', () => {
  for (let bits = 0; bits < 0x7c00; bits++) {
    for (const sign of [0, 0x8000]) {
      const [value] = toNumbers({ type: 'float16', dims: [1], data: new Uint16Array([bits | sign]) });
      const back = fromNumbers('float16', [1], [value]);
      const again = new Uint16Array(back.data.buffer)[0];
      assert.equal(again, bits | sign, `${bits | sign} is ${value}`);
    }
  }
});

test('float16 rounds to even, overflows and keeps what is no number', () => {
  const cases = [
    [1 / 3, 0x3555],
    [65504, 0x7bff],
    [65519, 0x7bff],
    [65520, 0x7c00],
    [-Infinity, 0xfc00],
    [2 ** -24, 1],
    [2 ** -25, 0],
    [1.5 * 2 ** -24, 2],
    [2049, 0x6800],
    [2051, 0x6802],
    [NaN, 0x7e00],
  ];
  for (const [value, bits] of cases)
    assert.equal(new Uint16Array(fromNumbers('float16', [1], [value]).data.buffer)[0], bits, String(value));
});

test('bfloat16 rounds to even', () => {
  const cases = [
    [1, 0x3f80],
    [1.00390625, 0x3f80],
    [1.01171875, 0x3f82],
    [-2, 0xc000],
    [Infinity, 0x7f80],
    [NaN, 0x7fc0],
  ];
  for (const [value, bits] of cases) assert.equal(fromNumbers('bfloat16', [1], [value]).data[0], bits, String(value));
  assert.equal(toNumbers({ type: 'bfloat16', dims: [1], data: new Uint16Array([0x4049]) })[0], 3.140625);
});

test('numbers become every element type', () => {
  const kinds = {
    float32: [1.5, -2, 0],
    float64: [1.5, -2, 0],
    int8: [1, -2, 0],
    int16: [1, -2, 0],
    int32: [1, -2, 0],
    int64: [1n, -2n, 0n],
    uint8: [1, 254, 0],
    uint16: [1, 65534, 0],
    uint32: [1, 4294967294, 0],
    uint64: [1n, 18446744073709551614n, 0n],
    bool: [1, 1, 0],
  };
  for (const [type, expected] of Object.entries(kinds)) assert.deepEqual([...fromNumbers(type, [3], [1.5, -2, 0]).data], expected, type);
});

test('a tensor is what it says', () => {
  assert.throws(() => new Tensor('float32', [2], new Float32Array(3)), { name: 'KilimError', code: 'SHAPE' });
  assert.throws(() => new Tensor('float32', [2], new Int32Array(2)), { code: 'DTYPE', expected: 'Float32Array', got: 'Int32Array' });
  assert.throws(() => new Tensor('float80', [2]), { code: 'DTYPE', got: 'float80' });
  assert.throws(() => new Tensor('float32', [-1]), { code: 'SHAPE' });
  assert.equal(new Tensor('int64', []).data.length, 1);
});

const port = (dims, type = 'float32') => [{ name: 'x', type, dims }];

test('bare arrays take the dimensions of the model', () => {
  assert.deepEqual(prepareFeeds(port(['N', 3]), { x: new Float32Array(6) })[0].dims, [2, 3]);
  assert.deepEqual(prepareFeeds(port([2, 3], 'int64'), { x: [1, 2, 3, 4, 5, 6] })[0].dims, [2, 3]);
  assert.deepEqual(prepareFeeds(port([], 'bool'), { x: new Uint8Array(1) })[0], {
    name: 'x',
    type: 'bool',
    dims: [],
    bytes: new Uint8Array(1),
  });
  assert.throws(() => prepareFeeds(port(['N', 'M']), { x: new Float32Array(6) }), { code: 'SHAPE', input: 'x' });
  assert.throws(() => prepareFeeds(port(['N', 3]), { x: new Float32Array(7) }), { code: 'SHAPE', got: '7 elements' });
  assert.throws(() => prepareFeeds(port(null), { x: new Float32Array(7) }), { code: 'SHAPE' });
});

test('a view of a larger buffer gives its own bytes', () => {
  const all = Float32Array.from([1, 2, 3, 4]);
  const [feed] = prepareFeeds(port([2]), { x: all.subarray(1, 3) });
  assert.deepEqual(new Float32Array(feed.bytes.slice().buffer), Float32Array.from([2, 3]));
});

test('types of less than a byte are packed', () => {
  const packed = fromNumbers('int4', [3], [-1, 7, -8]);
  assert.deepEqual([...packed.data], [0x7f, 0x08]);
  assert.deepEqual([...packed.toNumbers()], [-1, 7, -8]);
  assert.deepEqual([...toNumbers({ type: 'uint2', dims: [3], data: new Uint8Array([0b111001]) })], [1, 2, 3]);
  assert.deepEqual([...toNumbers({ type: 'float4e2m1', dims: [2], data: new Uint8Array([0xf1]) })], [0.5, -6]);
  // Four numbers of six bits in three bytes, as onnx.proto has them.
  const six = fromNumbers('float6e3m2', [5], [28, -0.0625, 1, 3, -28]);
  assert.deepEqual([...six.data], [0x5f, 0xc8, 0x48, 0x3f]);
  assert.deepEqual([...six.toNumbers()], [28, -0.0625, 1, 3, -28]);
  assert.deepEqual([...fromNumbers('float6e2m3', [2], [7.5, 0.3]).toNumbers()], [7.5, 0.25]);
  assert.throws(() => new Tensor('int4', [3], new Uint8Array(3)), { code: 'SHAPE', expected: '2 elements' });
  assert.throws(() => prepareFeeds(port([3], 'int4'), { x: new Uint8Array(2) }), { code: 'DTYPE' });
  assert.deepEqual([...prepareFeeds(port([3], 'int4'), { x: [1, 2, 3] })[0].bytes], [0x21, 0x03]);
});

test('every float8 goes there and back, and ties are to even', () => {
  for (const type of ['float8e4m3fn', 'float8e4m3fnuz', 'float8e5m2', 'float8e5m2fnuz', 'float8e8m0']) {
    for (let bits = 0; bits < 256; bits++) {
      const [value] = toNumbers({ type, dims: [1], data: new Uint8Array([bits]) });
      if (Number.isFinite(value)) assert.equal(fromNumbers(type, [1], [value]).data[0], bits, `${type} ${value}`);
    }
  }
  const cases = [
    ['float8e4m3fn', 17, 0x58],
    ['float8e4m3fn', 19, 0x5a],
    ['float8e4m3fn', 1e9, 0x7e],
    ['float8e4m3fn', -Infinity, 0xfe],
    ['float8e4m3fnuz', 1, 0x40],
    ['float8e5m2', 1, 0x3c],
    ['float8e8m0', 4, 129],
    ['float4e2m1', 2.5, 0x04],
    ['float4e2m1', -5, 0x0e],
  ];
  for (const [type, value, bits] of cases) assert.equal(fromNumbers(type, [1], [value]).data[0], bits, `${type} ${value}`);
  assert.ok(Number.isNaN(toNumbers({ type: 'float8e5m2', dims: [1], data: new Uint8Array([0x7f]) })[0]));
});

test('a complex number is two numbers', () => {
  const z = fromNumbers('complex64', [2], [1, -2, 0.5, 0]);
  assert.ok(z.data instanceof Float32Array && z.data.length === 4);
  assert.deepEqual([...z.toNumbers()], [1, -2, 0.5, 0]);
  assert.equal(new Tensor('complex128', [3]).data.length, 6);
  assert.throws(() => new Tensor('complex64', [2], new Float32Array(2)), { code: 'SHAPE', expected: '4 elements' });
});

test('strings are an array', () => {
  const texts = new Tensor('string', [2], ['a', 'ü']);
  assert.deepEqual(prepareFeeds(port([2], 'string'), { x: texts })[0], { name: 'x', type: 'string', dims: [2], texts: ['a', 'ü'] });
  assert.deepEqual(prepareFeeds(port(['N'], 'string'), { x: ['a', 'b', 'c'] })[0].dims, [3]);
  assert.deepEqual(new Tensor('string', [2]).data, ['', '']);
  assert.throws(() => texts.toNumbers(), { code: 'DTYPE' });
  assert.throws(() => new Tensor('string', [1], [1]), { code: 'DTYPE' });
  assert.throws(() => prepareFeeds(port([2]), { x: ['a', 'b'] }), { code: 'DTYPE' });
});

test('sequences and what is absent cross into the runtime and back', () => {
  const ports = [
    { name: 'list', type: 'float32', dims: null, kind: 'sequence', optional: false },
    { name: 'maybe', type: 'int64', dims: [], kind: 'tensor', optional: true },
  ];
  const list = [new Tensor('float32', [2], new Float32Array([1, 2])), new Tensor('float32', [], new Float32Array([3]))];
  const [sequence, absent] = prepareFeeds(ports, { list, maybe: null });
  assert.deepEqual(
    tensorsOf(sequence).map(({ dims }) => dims),
    [[2], []],
  );
  assert.deepEqual(
    fromWireValue(sequence).map((tensor) => [...tensor.data]),
    [[1, 2], [3]],
  );
  assert.equal(fromWireValue(absent), null);
  assert.throws(() => prepareFeeds(ports, { list: list[0] }), { code: 'DTYPE' });
  assert.throws(() => prepareFeeds(ports, { list: null }), { code: 'DTYPE' });
  assert.throws(() => prepareFeeds(ports, { list: [new Tensor('int8', [1])] }), { code: 'DTYPE' });
});

test('maps have the keys of the model', () => {
  const keys = { name: 'y', type: 'string', dims: [2], texts: ['a', 'b'] };
  const values = { name: 'y', type: 'float32', dims: [2], bytes: new Uint8Array(new Float32Array([0.25, 0.75]).buffer) };
  const maps = [
    new Map([
      ['a', 0.25],
      ['b', 0.75],
    ]),
  ];
  assert.deepEqual(fromWireValue({ name: 'y', maps: [[keys, values]], single: false }), maps);
  assert.deepEqual(fromWireValue({ name: 'y', maps: [[keys, values]], single: true }), maps[0]);
});
