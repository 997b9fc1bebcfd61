// Kilim as an engine of a side-by-side bench: kilim-wasm1 (one thread, as a page gets it), kilim-wasm2 (two), kilim-webgpu,
// kilim-worker1, which always computes in a worker, and kilim-here1, in the page's own thread, as the other engines do.
// create(variant) → { load(bytes) → [{name, type, shape}], run({name: {type, dims, data}}) → {name: {dims, data}} }
// It stands in bench/ and finds the package that `cargo xtask build` leaves in www/dist.

export async function create(variant) {
  const manifest = await (await fetch(new URL('../www/package.json', import.meta.url))).json();
  const { load } = await import(new URL(`../www/${manifest.exports['.'].default}`, import.meta.url).href);
  const gpu = variant === 'webgpu';
  const worker = { here1: { worker: false }, worker1: { worker: true } }[variant];
  const threads = gpu ? 1 : Number(variant.replace(/wasm|here|worker/, '') || 1);
  let session;
  return {
    async load(bytes) {
      session = await load(bytes, { backends: gpu ? ['wgpu', 'cpu'] : ['cpu'], ...worker });
      if (threads > 1) throw new Error(`no ${threads} threads: ${session.report.threads}`);
      return session.inputs.map((input) => ({ name: input.name, type: input.type, shape: input.dims }));
    },
    run: (inputs) => session.run(inputs),
  };
}
