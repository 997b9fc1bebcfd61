// Kilim, from the npm package as `cargo xtask build` leaves it.

/** Opens models by the package whose script `index` is, seen from this folder. */
export const opener = (index) =>
  async function open(bytes, { gpu, threads }) {
    const { load } = await import(index);
    const session = await load(bytes, { backends: gpu ? ['wgpu', 'cpu'] : ['cpu'], threads });
    if (session.report.oneThread) throw new Error(`no ${threads} threads: ${session.report.oneThread}`);
    return {
      inputs: session.inputs,
      async run(feeds) {
        const outputs = await session.run(Object.fromEntries(feeds.map(({ name, ...tensor }) => [name, tensor])));
        return Object.entries(outputs).map(([name, { dims, data }]) => ({ name, dims, data }));
      },
    };
  };

export const open = opener('../../kilim/index.js');

export async function openDecoder({ model, data, genai }, { gpu, threads }) {
  const { load } = await import('../../kilim/index.js');
  const session = await load(model, { backends: gpu ? ['wgpu', 'cpu'] : ['cpu'], threads, externalData: data, worker: false });
  if (session.report.oneThread) throw new Error(`no ${threads} threads: ${session.report.oneThread}`);
  const decoder = await session.decoder(genai ? { genai } : {});
  return {
    async start(words) {
      await decoder.start(words, { temperature: 0 });
      return decoder.next();
    },
    next: () => decoder.next(),
  };
}
