// A stand-in for the Web Neural Network API (https://www.w3.org/TR/webnn/), for browsers that have none: it checks what the standard checks,
// computes in float64, and is installed in the thread that imports it.
import { BINARY, REDUCE, UNARY, broadcast, clamp, count, flatOf, indices, must, near, reach } from './webnn.functions.mjs';

/** What an operand is and how it is computed from the elements of those that it is made of. */
class Operand {
  constructor(builder, shape, from, compute) {
    must(
      shape.every((d) => Number.isInteger(d) && d > 0),
      `the dimensions [${shape}] cannot be`,
    );
    Object.assign(this, { builder, shape, from, compute, dataType: 'float32' });
  }
}

export class MLGraphBuilder {
  constructor(context) {
    this.context = context;
  }

  #make(shape, from, at) {
    for (const x of from) must(x?.builder === this, 'an operand is none of this builder');
    return new Operand(this, [...shape], from, (datas) => Float64Array.from(indices(shape), (index) => at(datas, index)));
  }

  input(name, { dataType, shape }) {
    must(dataType === 'float32', `no type ${dataType}`);
    const operand = new Operand(this, [...shape], [], null);
    operand.name = name;
    return operand;
  }

  constant({ shape }, data) {
    must(data.length === count(shape), 'the data does not fill the constant');
    const kept = Float64Array.from(data);
    return new Operand(this, [...shape], [], () => kept);
  }

  reshape(x, shape) {
    must(count(shape) === count(x.shape), `[${x.shape}] is no [${shape}]`);
    return new Operand(this, [...shape], [x], ([data]) => data);
  }

  transpose(x, { permutation = x.shape.map((_, i) => i).reverse() } = {}) {
    must(
      [...permutation].sort((a, b) => a - b).every((axis, i) => axis === i),
      'no permutation',
    );
    const shape = permutation.map((axis) => x.shape[axis]);
    const back = (index) => x.shape.map((_, axis) => index[permutation.indexOf(axis)]);
    return this.#make(shape, [x], ([data], index) => data[flatOf(back(index), x.shape)]);
  }

  concat(list, axis) {
    must(axis >= 0 && axis < list[0].shape.length, 'no such axis');
    const shape = list[0].shape.with(
      axis,
      list.reduce((sum, x) => sum + x.shape[axis], 0),
    );
    return this.#make(shape, list, (datas, index) => {
      let at = index[axis];
      for (let i = 0; ; at -= list[i++].shape[axis])
        if (at < list[i].shape[axis]) return datas[i][flatOf(index.with(axis, at), list[i].shape)];
    });
  }

  split(x, sizes, { axis = 0 } = {}) {
    must(sizes.reduce((a, b) => a + b, 0) === x.shape[axis], 'the sizes are not the dimension');
    let start = 0;
    return sizes.map((size) => {
      const starts = x.shape.map((_, i) => (i === axis ? start : 0));
      start += size;
      return this.slice(x, starts, x.shape.with(axis, size));
    });
  }

  slice(x, starts, sizes) {
    must(
      x.shape.every((d, i) => starts[i] >= 0 && sizes[i] > 0 && starts[i] + sizes[i] <= d),
      'the slice leaves the data',
    );
    return this.#make(
      sizes,
      [x],
      ([data], index) =>
        data[
          flatOf(
            index.map((at, i) => at + starts[i]),
            x.shape,
          )
        ],
    );
  }

  expand(x, shape) {
    must(broadcast(x.shape, shape).join() === shape.join(), `[${x.shape}] does not expand to [${shape}]`);
    return this.#make(shape, [x], ([data], index) => reach(data, x.shape, index));
  }

  tile(x, repetitions) {
    const shape = x.shape.map((d, i) => d * repetitions[i]);
    return this.#make(
      shape,
      [x],
      ([data], index) =>
        data[
          flatOf(
            index.map((at, i) => at % x.shape[i]),
            x.shape,
          )
        ],
    );
  }

  pad(x, begin, end, { mode = 'constant', value = 0 } = {}) {
    must(begin.length === x.shape.length && end.length === x.shape.length, 'no padding for each dimension');
    const shape = x.shape.map((d, i) => d + begin[i] + end[i]);
    return this.#make(shape, [x], ([data], index) => {
      const at = index.map((n, i) => n - begin[i]);
      const inside = at.every((n, i) => n >= 0 && n < x.shape[i]);
      if (!inside && mode === 'constant') return near(value);
      const near1 = at.map((n, i) =>
        mode === 'edge' ? clamp(n, 0, x.shape[i] - 1) : n < 0 ? -n : n >= x.shape[i] ? 2 * (x.shape[i] - 1) - n : n,
      );
      return data[flatOf(near1, x.shape)];
    });
  }

  softmax(x, axis) {
    must(axis >= 0 && axis < x.shape.length, 'no such axis');
    const row = (data, index) => Array.from({ length: x.shape[axis] }, (_, i) => data[flatOf(index.with(axis, i), x.shape)]);
    return this.#make(x.shape, [x], ([data], index) => {
      const all = row(data, index);
      const most = Math.max(...all);
      return Math.exp(all[index[axis]] - most) / all.reduce((sum, v) => sum + Math.exp(v - most), 0);
    });
  }

  matmul(a, b) {
    must(a.shape.length >= 2 && b.shape.length >= 2, 'matrices have two dimensions');
    const [m, k] = a.shape.slice(-2);
    const [inner, n] = b.shape.slice(-2);
    must(k === inner, `[${a.shape}] and [${b.shape}] do not multiply`);
    const shape = [...broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2)), m, n];
    return this.#make(shape, [a, b], ([left, right], index) => {
      const [outer, row, column] = [index.slice(0, -2), ...index.slice(-2)];
      let sum = 0;
      for (let i = 0; i < k; i++) sum += reach(left, a.shape, [...outer, row, i]) * reach(right, b.shape, [...outer, i, column]);
      return sum;
    });
  }

  gemm(a, b, { c, alpha = 1, beta = 1, aTranspose = false, bTranspose = false } = {}) {
    must(a.shape.length === 2 && b.shape.length === 2, 'matrices have two dimensions');
    const made = this.matmul(aTranspose ? this.transpose(a) : a, bTranspose ? this.transpose(b) : b);
    if (c) must(broadcast(c.shape, made.shape).join() === made.shape.join(), 'c does not broadcast');
    return this.#make(made.shape, c ? [made, c] : [made], ([sum, added], index) => {
      return near(alpha) * sum[flatOf(index, made.shape)] + (added ? near(beta) * reach(added, c.shape, index) : 0);
    });
  }

  /** The windows of two dimensions: `each` is told of every element of the data in the window of a place. */
  #windows(x, { padding = [0, 0, 0, 0], strides = [1, 1], dilations = [1, 1], outputSizes }, kernel, layout) {
    must(x.shape.length === 4, 'data has four dimensions');
    const [rows, columns, channel] = layout === 'nhwc' ? [1, 2, 3] : [2, 3, 1];
    const sizes = [rows, columns].map((axis, i) => {
      const room = x.shape[axis] + padding[2 * i] + padding[2 * i + 1] - (kernel[i] - 1) * dilations[i] - 1;
      const exact = room / strides[i] + 1;
      const size = outputSizes?.[i] ?? Math.floor(exact);
      must(size === Math.floor(exact) || size === Math.ceil(exact), `the output cannot be ${size} long`);
      return size;
    });
    const each = function* (index) {
      for (let ky = 0; ky < kernel[0]; ky++)
        for (let kx = 0; kx < kernel[1]; kx++) {
          const row = index[rows] * strides[0] + ky * dilations[0] - padding[0];
          const column = index[columns] * strides[1] + kx * dilations[1] - padding[2];
          if (row >= 0 && column >= 0 && row < x.shape[rows] && column < x.shape[columns])
            yield { at: index.with(rows, row).with(columns, column), ky, kx };
        }
    };
    return { shape: x.shape.with(rows, sizes[0]).with(columns, sizes[1]), channel, each };
  }

  conv2d(x, filter, options = {}) {
    const { groups = 1, inputLayout = 'nchw', filterLayout = 'oihw', bias } = options;
    must(filterLayout === 'oihw', 'only filters of oihw');
    const [out, depth, ...kernel] = filter.shape;
    const { shape, channel, each } = this.#windows(x, options, kernel, inputLayout);
    must(x.shape[channel] === depth * groups && out % groups === 0, 'channels and groups do not agree');
    if (bias) must(bias.shape.join() === `${out}`, 'the bias is not one number for each channel');
    return this.#make(shape.with(channel, out), bias ? [x, filter, bias] : [x, filter], ([data, weights, added], index) => {
      const m = index[channel];
      let sum = added ? added[m] : 0;
      for (const { at, ky, kx } of each(index))
        for (let c = 0; c < depth; c++) {
          const from = at.with(channel, Math.floor(m / (out / groups)) * depth + c);
          sum += data[flatOf(from, x.shape)] * weights[flatOf([m, c, ky, kx], filter.shape)];
        }
      return sum;
    });
  }

  convTranspose2d(x, filter, options = {}) {
    const { groups = 1, inputLayout = 'nchw', padding = [0, 0, 0, 0], strides = [1, 1], dilations = [1, 1], outputSizes, bias } = options;
    const [rows, columns, channel] = inputLayout === 'nhwc' ? [1, 2, 3] : [2, 3, 1];
    const [inner, perGroup, kh, kw] = filter.shape;
    must(x.shape[channel] === inner, 'channels do not agree');
    const out = perGroup * groups;
    const shape = x.shape.with(rows, outputSizes[0]).with(columns, outputSizes[1]).with(channel, out);
    return this.#make(shape, bias ? [x, filter, bias] : [x, filter], ([data, weights, added], index) => {
      const m = index[channel];
      const group = Math.floor(m / perGroup);
      let sum = added ? added[m] : 0;
      for (let ky = 0; ky < kh; ky++)
        for (let kx = 0; kx < kw; kx++) {
          const [row, column] = [index[rows] + padding[0] - ky * dilations[0], index[columns] + padding[2] - kx * dilations[1]];
          const [y, z] = [row / strides[0], column / strides[1]];
          if (!Number.isInteger(y) || !Number.isInteger(z) || y < 0 || z < 0 || y >= x.shape[rows] || z >= x.shape[columns]) continue;
          for (let c = (group * inner) / groups; c < ((group + 1) * inner) / groups; c++)
            sum +=
              data[flatOf(index.with(rows, y).with(columns, z).with(channel, c), x.shape)] *
              weights[flatOf([c, m % perGroup, ky, kx], filter.shape)];
        }
      return sum;
    });
  }

  #pool(x, options, made) {
    const { windowDimensions, layout = 'nchw' } = options;
    const { shape, each } = this.#windows(x, options, windowDimensions, layout);
    return this.#make(shape, [x], ([data], index) => made(Array.from(each(index), ({ at }) => data[flatOf(at, x.shape)])));
  }

  averagePool2d(x, options) {
    must(
      (options.dilations ?? []).every((d) => d === 1),
      'averages have no dilations',
    );
    return this.#pool(x, options, (all) => all.reduce((a, b) => a + b, 0) / all.length);
  }

  maxPool2d(x, options) {
    return this.#pool(x, options, (all) => Math.max(...all));
  }

  batchNormalization(x, mean, variance, { scale, bias, axis = 1, epsilon = 1e-5 } = {}) {
    for (const part of [mean, variance, scale, bias]) must(part.shape.join() === `${x.shape[axis]}`, 'not one number for each channel');
    return this.#make(x.shape, [x, mean, variance, scale, bias], ([data, m, v, s, b], index) => {
      const c = index[axis];
      return ((data[flatOf(index, x.shape)] - m[c]) / Math.sqrt(v[c] + near(epsilon))) * s[c] + b[c];
    });
  }

  /** Numbers less their mean, by their deviation, along axes. */
  #normalised(x, axes, epsilon, after) {
    return (data, index) => {
      const along = axes.map((axis) => x.shape[axis]);
      const all = Array.from(indices(along), (inner) => {
        const at = [...index];
        axes.forEach((axis, i) => {
          at[axis] = inner[i];
        });
        return data[flatOf(at, x.shape)];
      });
      const mean = all.reduce((a, b) => a + b, 0) / all.length;
      const variance = all.reduce((sum, v) => sum + (v - mean) ** 2, 0) / all.length;
      return after((data[flatOf(index, x.shape)] - mean) / Math.sqrt(variance + near(epsilon)), index);
    };
  }

  layerNormalization(x, { scale, bias, axes, epsilon = 1e-5 }) {
    const along = axes.map((axis) => x.shape[axis]);
    for (const part of [scale, bias]) if (part) must(part.shape.join() === along.join(), 'scale and bias have the dimensions of the axes');
    const from = [x, ...(scale ? [scale] : []), ...(bias ? [bias] : [])];
    return this.#make(x.shape, from, (datas, index) => {
      const own = flatOf(
        axes.map((axis) => index[axis]),
        along,
      );
      const [factor, added] = [scale ? datas[1][own] : 1, bias ? datas[from.length - 1][own] : 0];
      return this.#normalised(x, axes, epsilon, (v) => v * factor + added)(datas[0], index);
    });
  }

  instanceNormalization(x, { scale, bias, epsilon = 1e-5 }) {
    return this.#make(x.shape, [x, scale, bias], ([data, s, b], index) =>
      this.#normalised(x, [2, 3], epsilon, (v) => v * s[index[1]] + b[index[1]])(data, index),
    );
  }

  resample2d(x, { mode = 'nearest-neighbor', sizes, axes = [2, 3] }) {
    must(axes[1] === axes[0] + 1, 'only neighbouring axes');
    const shape = x.shape.with(axes[0], sizes[0]).with(axes[1], sizes[1]);
    return this.#make(shape, [x], ([data], index) => {
      const places = axes.map((axis) => ((index[axis] + 0.5) * x.shape[axis]) / shape[axis] - 0.5);
      const value = (at) =>
        data[
          flatOf(
            axes.reduce((found, axis, i) => found.with(axis, clamp(at[i], 0, x.shape[axis] - 1)), index),
            x.shape,
          )
        ];
      if (mode === 'nearest-neighbor') return value(places.map((place) => Math.ceil(place - 0.5)));
      const [[y, fy], [z, fz]] = places.map((place) => [Math.floor(place), place - Math.floor(place)]);
      const row = (at) => value([at, z]) * (1 - fz) + value([at, z + 1]) * fz;
      return row(y) * (1 - fy) + row(y + 1) * fy;
    });
  }

  async build(outputs) {
    must(Object.keys(outputs).length > 0, 'a graph has outputs');
    return { outputs, destroy() {} };
  }

  /** What the functions of one and two numbers, and those along axes, are made by. */
  static {
    const make = (builder, ...rest) => builder.#make(...rest);
    for (const [name, functionOf] of Object.entries(UNARY))
      MLGraphBuilder.prototype[name] = function (x, options) {
        const own = functionOf(options);
        return make(this, x.shape, [x], ([data], index) => own(data[flatOf(index, x.shape)]));
      };
    for (const [name, own] of Object.entries(BINARY))
      MLGraphBuilder.prototype[name] = function (a, b) {
        return make(this, broadcast(a.shape, b.shape), [a, b], ([x, y], index) => own(reach(x, a.shape, index), reach(y, b.shape, index)));
      };
    for (const [name, [step, first, last = (x) => x]] of Object.entries(REDUCE))
      MLGraphBuilder.prototype[name] = function (x, { axes = x.shape.map((_, i) => i), keepDimensions = false } = {}) {
        must(
          axes.every((axis) => axis >= 0 && axis < x.shape.length),
          'no such axis',
        );
        const along = axes.map((axis) => x.shape[axis]);
        const kept = x.shape.map((d, i) => (axes.includes(i) ? 1 : d));
        const shape = keepDimensions ? kept : x.shape.filter((_, i) => !axes.includes(i));
        const others = x.shape.map((_, i) => i).filter((i) => !axes.includes(i));
        return make(this, shape, [x], ([data], index) => {
          const at = keepDimensions
            ? [...index]
            : others.reduce(
                (found, axis, i) => found.with(axis, index[i]),
                x.shape.map(() => 0),
              );
          let made = first;
          for (const inner of indices(along))
            made = step(
              made,
              data[
                flatOf(
                  axes.reduce((found, axis, i) => found.with(axis, inner[i]), at),
                  x.shape,
                )
              ],
            );
          return last(made, count(along));
        });
      };
  }
}

const context = {
  opSupportLimits: () => ({ preferredInputLayout: 'nchw', maxTensorByteLength: 2 ** 31 - 1 }),
  createTensor: async ({ shape }) => ({ shape, data: new Float64Array(count(shape)), destroy() {} }),
  writeTensor: (tensor, data) => tensor.data.set(data),
  readTensor: async (tensor) => Float32Array.from(tensor.data).buffer,
  dispatch(graph, inputs, outputs) {
    globalThis.dispatched = (globalThis.dispatched ?? 0) + 1;
    const made = new Map();
    const value = (operand) => {
      if (!made.has(operand)) made.set(operand, operand.compute ? operand.compute(operand.from.map(value)) : inputs[operand.name].data);
      return made.get(operand);
    };
    for (const [name, tensor] of Object.entries(outputs)) tensor.data = Float64Array.from(value(graph.outputs[name]));
  },
};

/** Puts the stand-in in the place of the browser's, in this thread. */
export function install() {
  globalThis.MLGraphBuilder = MLGraphBuilder;
  Object.defineProperty(navigator, 'ml', { value: { createContext: async () => context }, configurable: true });
}
