// Finds blocks that repeat: by the structure of the nodes' names, or by sequences of operators.
import type { NodeReport } from 'kilim';

/** Nodes that stand together, from `from` up to before `to` in the order of execution. Such a part of the order has no way out and in again. */
export interface Fold {
  from: number;
  to: number;
  label: string;
}

/** Graphs of fewer nodes are small as they are. */
const SMALL = 30;
/** Nodes of the longest sequence that is looked for. */
const LONGEST = 256;
/** The share of nodes that names must put into blocks. */
const ENOUGH = 0.4;

export function foldsOf(nodes: readonly NodeReport[]): Fold[] {
  if (nodes.length < SMALL) return [];
  const named = byNames(nodes);
  const covered = named.reduce((sum, { from, to }) => sum + to - from, 0);
  return covered >= ENOUGH * nodes.length ? named : byOperators(nodes);
}

/** The outermost part of a name that ends with a number: `/encoder/layers.3` of `/encoder/layers.3/norm/Add`. */
function blockOf(name: string): string | undefined {
  return /^(.*?(?:^|[./])[^./]*[._]?\d+)[./]/.exec(name)?.[1];
}

function byNames(nodes: readonly NodeReport[]): Fold[] {
  const runs: Fold[] = [];
  for (const [i, { name }] of nodes.entries()) {
    const block = blockOf(name);
    const last = runs.at(-1);
    if (block !== undefined && last?.label === block && last.to === i) last.to = i + 1;
    else if (block !== undefined) runs.push({ from: i, to: i + 1, label: block });
  }
  const long = runs.filter(({ from, to }) => to - from >= 3);
  const family = (label: string) => label.replace(/\d+$/, '');
  const count = new Map<string, number>();
  for (const { label } of long) count.set(family(label), (count.get(family(label)) ?? 0) + 1);
  return long
    .filter(({ label }) => (count.get(family(label)) ?? 0) > 1)
    .map((fold) => ({ ...fold, label: fold.label.split('/').pop() || fold.label }));
}

/** At each place, how many nodes in a row have the operator of the node `period` further on. */
function matches(ops: readonly string[], period: number): Uint32Array {
  const lengths = new Uint32Array(ops.length + 1);
  for (let i = ops.length - period - 1; i >= 0; i--) lengths[i] = ops[i] === ops[i + period] ? (lengths[i + 1] as number) + 1 : 0;
  return lengths;
}

function byOperators(nodes: readonly NodeReport[]): Fold[] {
  const ops = nodes.map(({ op }) => op);
  const longest = Math.min(LONGEST, ops.length >> 1);
  const periods = Array.from({ length: Math.max(0, longest - 1) }, (_, i) => i + 2);
  const lengths = periods.map((period) => matches(ops, period));
  const folds: Fold[] = [];
  for (let at = 0; at < ops.length; ) {
    let [best, times] = [0, 0];
    for (const [i, period] of periods.entries()) {
      const repeats = Math.floor((lengths[i]?.[at] ?? 0) / period) + 1;
      if (repeats > 1 && period * repeats > Math.max(5, best * times)) [best, times] = [period, repeats];
    }
    if (times === 0) {
      at++;
      continue;
    }
    for (let i = 0; i < times; i++, at += best) folds.push({ from: at, to: at + best, label: `Block ${i + 1} of ${times}` });
  }
  return folds;
}
