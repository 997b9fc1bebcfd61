// Kilim as an engine of a side-by-side bench: kilim-wasm1 (one thread), kilim-wasm2 (two), kilim-webgpu, and kilim-here1, which
// computes in the page's own thread, as the other engines do.
// create(variant) → { load(bytes) → [{name, type, shape}], run({name: {type, dims, data}}) → {name: {dims, data}} }
// It stands in bench/ and finds the package that `cargo xtask build` leaves in www/dist.

export async function create(variant) {
  const manifest = await (await fetch(new URL('../www/package.json', import.meta.url))).json();
  const { load } = await import(new URL(`../www/${manifest.exports['.'].default}`, import.meta.url).href);
  const gpu = variant === 'webgpu';
  const here = variant === 'here1';
  const threads = gpu ? 1 : Number(variant.replace(/wasm|here/, '') || 1);
  let session;
  return {
    async load(bytes) {
      session = await load(bytes, { backends: gpu ? ['wgpu', 'cpu'] : ['cpu'], worker: !here });
      if (threads > 1) throw new Error(`no ${threads} threads: ${session.report.threads}`);
      return session.inputs.map((input) => ({ name: input.name, type: input.type, shape: input.dims }));
    },
    run: (inputs) => session.run(inputs),
  };
}
