import type { NodeTime } from '../index.js';

/** Writes to the console what nodes took in all of these runs, the longest first. */
export function printTimes(runs: readonly (readonly NodeTime[])[]): void {
  const rows = new Map<string, { node: string; op: string; backend: string; milliseconds: number }>();
  for (const { name, op, backend, seconds } of runs.flat()) {
    const key = `${backend} ${op} ${name}`;
    const row = rows.get(key) ?? { node: name, op, backend, milliseconds: 0 };
    row.milliseconds += seconds * 1000;
    rows.set(key, row);
  }
  console.log(`kilim/ort: nodes, in milliseconds of all ${runs.length} runs`);
  console.table([...rows.values()].sort((a, b) => b.milliseconds - a.milliseconds));
}
