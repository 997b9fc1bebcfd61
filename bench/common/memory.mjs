// How much memory a program and its children have for themselves. Linux alone tells; elsewhere it is null.
import { readFileSync, readdirSync } from 'node:fs';

const read = (file) => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // The process has ended meanwhile, or the system has no such file.
    return '';
  }
};

/** The process and those that it started, and so on. */
function tree(pid) {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      // The name in brackets may hold anything, brackets too.
      const [, parent] = read(`/proc/${name}/stat`).split(') ').pop().split(' ');
      return [Number(name), Number(parent)];
    });
  const found = [pid];
  for (const one of found) found.push(...parents.filter(([, parent]) => parent === one).map(([child]) => child));
  return found;
}

export function privateBytes(pid) {
  if (process.platform !== 'linux') return null;
  const kilobytes = tree(pid).flatMap((one) => [...read(`/proc/${one}/smaps_rollup`).matchAll(/^Private_(?:Clean|Dirty):\s+(\d+)/gm)]);
  return 1024 * kilobytes.reduce((sum, [, number]) => sum + Number(number), 0);
}
