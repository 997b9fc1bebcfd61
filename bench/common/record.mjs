// What a bench has measured, and where.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { dirname } from 'node:path';

/** Hardware and system, and how many programs want a core. */
export function machine() {
  const all = cpus();
  let system = `${process.platform} ${process.arch}`;
  try {
    const release = readFileSync('/etc/os-release', 'utf8');
    system = `${/^PRETTY_NAME="?([^"\n]*)/m.exec(release)?.[1] ?? process.platform}, ${process.arch}`;
  } catch {
    // Only Linux has that file.
  }
  return { processor: all[0]?.model.trim() ?? 'unknown', cores: all.length, memory: totalmem(), system, load: loadavg()[0] };
}

/** The commit of this repository. */
export function commit() {
  try {
    const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') ? ', changed' : '');
  } catch {
    return 'unknown';
  }
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, smallest and largest. */
export const spread = (numbers) =>
  numbers.length ? { median: median(numbers), least: Math.min(...numbers), most: Math.max(...numbers) } : null;

export function save(file, record) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(record, null, 1)}\n`);
}

/** The first line of an error. */
export const short = (error) =>
  String(error?.message ?? error)
    .split('\n')[0]
    .slice(0, 200);
