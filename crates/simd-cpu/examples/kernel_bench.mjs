// Runs the kernel benchmark in wasm: node kernel_bench.mjs FILE.wasm.. [--chromium PATH] [--filter TEXT]
// Build with RUSTFLAGS="-C target-feature=+simd128[,+relaxed-simd]"
//   cargo build --release -p kilim-simd-cpu --example kernel_bench --target wasm32-unknown-unknown
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const args = process.argv.slice(2);
const option = (name) => {
  const at = args.indexOf(name);
  return at < 0 ? undefined : args.splice(at, 2)[1];
};
const chromium = option('--chromium');
const filter = option('--filter') ?? '';

function bench(bytes, filter) {
  const none = () => 0;
  const anything = new Proxy({}, { get: () => new Proxy({}, { get: () => none }) });
  const w = new WebAssembly.Instance(new WebAssembly.Module(bytes), anything).exports;
  const buffer = w.buffer();
  const lines = [];
  for (let layer = 0; layer < w.layers(); layer++) {
    const length = w.name(layer, buffer);
    const name = new TextDecoder().decode(new Uint8Array(w.memory.buffer, buffer, length));
    if (!name.includes(filter)) continue;
    const b = w.open(layer);
    if (!b) {
      lines.push(`${name}: refused`);
      continue;
    }
    const timed = (times) => {
      const t = performance.now();
      w.run(b, times);
      return performance.now() - t;
    };
    for (const t = performance.now(); performance.now() - t < 300; ) timed(1);
    const times = Math.max(1, Math.ceil(5 / timed(1)));
    let best = Infinity;
    for (const t = performance.now(); performance.now() - t < 400; ) best = Math.min(best, timed(times) / times);
    lines.push(
      `${name.padEnd(36)} ${(best * 1e3).toFixed(1).padStart(9)} us ${((w.flops(b) / best) * 1e-6).toFixed(1).padStart(7)} GFLOP/s`,
    );
    w.close(b);
  }
  return lines.join('\n');
}

for (const file of args) {
  console.log(basename(file));
  const bytes = readFileSync(file);
  if (!chromium) {
    console.log(bench(bytes, filter));
    continue;
  }
  const folder = mkdtempSync(join(tmpdir(), 'kernel-bench-'));
  const page = join(folder, 'page.html');
  writeFileSync(
    page,
    `<body><script>
    ${bench}
    const bytes = Uint8Array.from(atob('${bytes.toString('base64')}'), (c) => c.charCodeAt(0));
    let text;
    try { text = bench(bytes, ${JSON.stringify(filter)}); } catch (e) { text = String(e); }
    document.body.innerText = text;
  </script></body>`,
  );
  const out = execFileSync(chromium, ['--headless', '--no-sandbox', '--disable-gpu', '--dump-dom', `file://${page}`], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  console.log(
    out
      .replace(/<br>/g, '\n')
      .replace(/<[^>]*>/g, '')
      .replace(/&gt;/g, '>')
      .trim(),
  );
  rmSync(folder, { recursive: true });
}
