import type { NodeReport } from 'kilim';
import { foldsOf } from './folds.js';
import type { Fold } from './folds.js';

/** What is drawn as one box: a node, or a block of nodes that is folded. */
export interface Box {
  label: string;
  nodes: NodeReport[];
  /** Values that come from outside of the box. */
  inputs: string[];
  outputs: string[];
  /** The id of the fold that the box stands for. */
  fold?: string;
}

/** The nodes of one graph, or of one body of a control-flow node, and the blocks that repeat in it. */
export interface Scope {
  path: string[];
  nodes: NodeReport[];
  folds: Fold[];
}

export function scopesOf(nodes: readonly NodeReport[]): Scope[] {
  const scopes = new Map<string, Scope>();
  for (const node of nodes) {
    const key = node.scope.join('\n');
    const scope = scopes.get(key) ?? { path: node.scope, nodes: [], folds: [] };
    scopes.set(key, scope);
    scope.nodes.push(node);
  }
  const all = [...scopes.values()];
  for (const scope of all) scope.folds = foldsOf(scope.nodes);
  return all;
}

/** The id of a fold in all of the graph. */
export const foldId = ({ path }: Scope, { from }: Fold) => `${path.join('\n')}#${from}`;

/** The boxes of a scope in the order of execution, with the folds in place of their nodes that `isFolded` names. */
export function boxesOf(scope: Scope, isFolded: (id: string) => boolean): Box[] {
  const boxes: Box[] = [];
  let at = 0;
  for (const fold of scope.folds) {
    const id = foldId(scope, fold);
    if (!isFolded(id)) continue;
    boxes.push(...scope.nodes.slice(at, fold.from).map(single));
    boxes.push(folded(scope.nodes.slice(fold.from, fold.to), fold.label, id));
    at = fold.to;
  }
  boxes.push(...scope.nodes.slice(at).map(single));
  return boxes;
}

function single(node: NodeReport): Box {
  return { label: node.op, nodes: [node], inputs: node.inputs, outputs: node.outputs.map(({ name }) => name) };
}

function folded(nodes: NodeReport[], label: string, fold: string): Box {
  const outputs = nodes.flatMap((node) => node.outputs.map(({ name }) => name));
  const own = new Set(outputs);
  const inputs = [...new Set(nodes.flatMap((node) => node.inputs))].filter((value) => !own.has(value));
  return { label, nodes, inputs, outputs, fold };
}

/** The backend of all nodes in a box; `mixed` where they have several. What a plan computes ahead counts as none. */
export function backendOf({ nodes }: Box): string {
  const run = new Set(nodes.map(({ backend }) => backend).filter((backend) => backend !== 'plan'));
  return run.size > 1 ? 'mixed' : ([...run][0] ?? 'plan');
}

/** Whether a value goes from one backend to another between these boxes. */
export function crosses(value: string, from: Box, to: Box): boolean {
  const writer = from.nodes.find(({ outputs }) => outputs.some(({ name }) => name === value));
  return to.nodes.some(({ inputs, backend }) => inputs.includes(value) && backend !== writer?.backend);
}
