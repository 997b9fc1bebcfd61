// One engine with one model. The driver calls `bench` from outside.
import { draw, specsOf } from '../common/inputs.mjs';

/** The most numbers of an output that are compared. */
const COMPARED = 10_000;

let session;
let feeds;

globalThis.bench = {
  /** The milliseconds from nothing of the engine to a model that is ready. The bytes of the model are at hand: the network is left out. */
  async load(engine, options, given) {
    const bytes = new Uint8Array(await (await fetch('../../model')).arrayBuffer());
    const begun = performance.now();
    const { open } = await import(`./engines/${engine}.mjs`);
    session = await open(bytes, options);
    const load = performance.now() - begun;
    feeds = draw(specsOf(session.inputs, given));
    return load;
  },

  /** The first run, and its outputs. */
  async first() {
    const begun = performance.now();
    const outputs = await session.run(feeds);
    const first = performance.now() - begun;
    return {
      first,
      outputs: outputs.map(({ name, dims, data }) => ({ name, dims: [...dims], data: Array.from(data.slice(0, COMPARED), Number) })),
    };
  },

  async time(times) {
    const begun = performance.now();
    for (let i = 0; i < times; i++) await session.run(feeds);
    return performance.now() - begun;
  },
};
globalThis.ready = true;
