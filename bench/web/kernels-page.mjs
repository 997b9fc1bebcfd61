// The kernels of one build of WebAssembly (`crates/web-kernels`). The driver calls `kernels` from outside.

let glue;
let measured;

globalThis.kernels = {
  /** Measures the peaks of this machine with a build, and gives them with the names of the shapes. */
  async open(build, sample, turns) {
    const { createGlue } = await import(`../pkg/kilim.kernels-${build}.js`);
    glue = createGlue((exports) => exports, {});
    await glue.init({ module_or_path: fetch(`../pkg/kilim.kernels-${build}.wasm`) });
    measured = new glue.Kernels(sample, turns);
    return { peaks: JSON.parse(measured.peaks()), titles: glue.Kernels.titles() };
  },

  /** The figures of the shape of this number. */
  measure: (number) => JSON.parse(measured.measure(number)),
};
globalThis.ready = true;
