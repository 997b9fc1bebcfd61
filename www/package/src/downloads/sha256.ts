/** SHA-256 of bytes that come in pieces (FIPS 180-4). The browser's own takes all of them at once, and a copy. */
export interface Hash {
  add(bytes: Uint8Array): void;
  /** In base 64. */
  end(): string;
}

/** The first 32 bits behind the point of a number. */
const fraction = (x: number): number => ((x - Math.floor(x)) * 2 ** 32) | 0;

const PRIMES = Array.from({ length: 312 }, (_, i) => i).filter(
  (n) => n > 1 && Array.from({ length: n }, (_, d) => d).every((d) => d < 2 || n % d),
);
/** Fractions of the cube roots of the first 64 primes. */
const K = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));

const turned = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

export function sha256(): Hash {
  const state = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
  const block = new Uint8Array(64);
  const view = new DataView(block.buffer);
  const words = new Int32Array(64);
  let [filled, length] = [0, 0];

  function mix(): void {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(4 * i);
    for (let i = 16; i < 64; i++) {
      const [x, y] = [words[i - 15] as number, words[i - 2] as number];
      const low = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const high = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      words[i] = ((words[i - 16] as number) + low + (words[i - 7] as number) + high) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + (K[i] as number) + (words[i] as number)) | 0;
      const two = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] as number) + value;
  }

  function add(bytes: Uint8Array): void {
    length += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const taken = Math.min(64 - filled, bytes.length - at);
      block.set(bytes.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < 64) return;
      mix();
      filled = 0;
    }
  }

  return {
    add,
    end() {
      const bits = new DataView(new ArrayBuffer(8));
      bits.setBigUint64(0, BigInt(length) * 8n);
      add(Uint8Array.of(128, ...new Uint8Array((119 - filled) % 64)));
      add(new Uint8Array(bits.buffer));
      const bytes = new DataView(new ArrayBuffer(32));
      for (const [i, word] of state.entries()) bytes.setInt32(4 * i, word);
      return btoa(String.fromCharCode(...new Uint8Array(bytes.buffer)));
    },
  };
}
