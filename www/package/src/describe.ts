const LONG = 40;

/** What a value is, in a few words. Whatever the value does when it is looked at stays in here. */
export function describe(value: unknown): string {
  try {
    if (typeof value === 'string') return value.length > LONG ? `'${value.slice(0, LONG)}…'` : `'${value}'`;
    if (typeof value === 'bigint') return `${value}n`;
    if (Array.isArray(value)) return `an array of length ${value.length}`;
    if (typeof value === 'function') return 'a function';
    return typeof value === 'object' && value !== null ? kindOf(value) : String(value);
  } catch {
    return `a ${typeof value} that cannot be read`;
  }
}

/** `ImageData`, `Float32Array`, `Object` … */
function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** What an error says, whatever was thrown. */
export function reasonOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return describe(thrown);
  }
}

/** The candidate that a word was probably meant to be: one that a few changes of letters lead to. */
export function closest<T extends string>(word: string, candidates: readonly T[]): T | undefined {
  if (word.length > LONG) return undefined;
  const ranked = candidates.map((candidate) => ({ candidate, changes: changesBetween(word.toLowerCase(), candidate.toLowerCase()) }));
  const best = ranked.reduce((a, b) => (b.changes < a.changes ? b : a), {
    candidate: undefined as T | undefined,
    changes: 1 + Math.ceil(word.length / 4),
  });
  return best.candidate;
}

/** The fewest letters to put in, take away or replace that make one word of another. */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of Array.from(from).entries()) {
    const next = [i + 1];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + Number(letter !== to[j - 1]);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
