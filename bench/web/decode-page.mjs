// One engine with one language model, word by word. The driver calls `bench` from outside.

let decoder;
let prompts = 0;

globalThis.bench = {
  /** The milliseconds from nothing of the engine to a model that is ready. Its files are at hand: the network is left out.
   * `alone` is the name of a model without settings beside it. */
  async load(engine, where, alone) {
    const file = async (name) => new Uint8Array(await (await fetch(`../../folder/${name}`)).arrayBuffer());
    const genai = alone ? undefined : await (await fetch('../../folder/genai_config.json')).text();
    const name = alone ?? JSON.parse(genai).model.decoder.filename;
    const data = await fetch(`../../folder/${name}.data`);
    const files = { model: await file(name), data: data.ok ? { [`${name}.data`]: new Uint8Array(await data.arrayBuffer()) } : {}, genai };
    const begun = performance.now();
    const { openDecoder } = await import(`./engines/${engine}.mjs`);
    decoder = await openDecoder(files, where);
    return performance.now() - begun;
  },

  /** A prompt of so many words, and the word behind it. */
  async prompt(count) {
    // Another first word each time: a prompt that begins as the text before would be known.
    const words = Array.from({ length: count }, (_, i) => 3 + ((i * 7919 + prompts) % 250));
    prompts++;
    const begun = performance.now();
    const word = await decoder.start(words);
    return { took: performance.now() - begun, word };
  },

  /** So many words more, and the milliseconds of each. */
  async go(count) {
    const words = [];
    const begun = performance.now();
    for (let i = 0; i < count; i++) words.push(await decoder.next());
    return { took: (performance.now() - begun) / count, words };
  },
};
globalThis.ready = true;
