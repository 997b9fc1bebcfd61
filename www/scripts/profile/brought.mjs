// A backend of a page, in the form that the runtime takes (`package/src/backend/wire.ts`): it takes what it is asked about, and what it
// computes are zeros.

/** Elements of the tensors of a stage, by the tensors that hold them. */
class Zeros {
  #slots;
  #bytes = new Map();

  constructor({ tensors }) {
    this.#slots = tensors;
  }

  read(tensor) {
    const { root, name, type, dims } = this.#slots[tensor];
    const held = this.#bytes.get(root);
    return { kind: 'tensor', name, type, dims, bytes: held ?? new Uint8Array(4 * dims.reduce((a, b) => a * b, 1)) };
  }

  write(tensor, { bytes }) {
    this.#bytes.set(this.#slots[tensor].root, bytes);
  }
}

/** The backend `page`. Softmax goes elsewhere, so that a graph is cut in stages. */
export const BROUGHT = {
  id: 'page',
  device: 'zeros',
  types: [['float32', 'fast']],
  layouts: ['NCHW'],
  dynamicShapes: true,
  quantized: 'exact',
  timers: false,
  options: [],
  operators: [],
  speed: {},
  supports: ({ op }) => (op === 'Softmax' ? 'no Softmax' : true),
  prepare: (stage) => new Zeros(stage),
  ready: () => Promise.resolve(),
  write: (stage, tensor, wire) => stage.write(tensor, wire),
  read: (stage, tensor) => stage.read(tensor),
  export: (stage, tensor) => stage.read(tensor),
  import: (stage, tensor, exported) => stage.write(tensor, exported),
  fetch: (exported) => exported,
  copy: (stage, from, to) => stage.write(to, stage.read(from)),
  run: () => undefined,
  letGo: () => new Float64Array(),
  end: () => undefined,
  release: () => undefined,
};
