import type { Report } from '../index.js';

/** The share of nodes from which on it is worth a word. */
const SHARE = 0.1;

/** How many nodes compute in each run for outputs that are not among `wanted` alone, where that is a good part of all. */
export function idleNodes({ nodes }: Report, wanted: readonly string[]): { idle: number; all: number } | undefined {
  // Bodies belong to the node that holds them.
  const outer = nodes.filter(({ scope }) => scope.length === 0);
  const makers = new Map(outer.flatMap((node) => node.outputs.map(({ name }) => [name, node] as const)));
  const needed = new Set<Report['nodes'][number]>();
  const values = [...wanted];
  for (let name = values.pop(); name !== undefined; name = values.pop()) {
    const node = makers.get(name);
    if (node === undefined || needed.has(node)) continue;
    needed.add(node);
    values.push(...node.inputs);
  }
  const computing = outer.filter(({ backend, view }) => backend !== 'plan' && !view);
  const idle = computing.filter((node) => !needed.has(node)).length;
  return idle >= SHARE * computing.length && idle > 0 ? { idle, all: computing.length } : undefined;
}
