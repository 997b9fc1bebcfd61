import type { NodeReport, NodeTime } from 'kilim';
import type { Box } from './boxes.js';

const key = ({ scope, name, op }: NodeReport | NodeTime) => [...scope, name, op].join('\n');

/** What nodes took in a measured run. */
export class Heat {
  readonly total: number;
  #seconds = new Map<string, number>();

  constructor(times: readonly NodeTime[]) {
    for (const time of times) this.#seconds.set(key(time), (this.#seconds.get(key(time)) ?? 0) + time.seconds);
    this.total = times.reduce((sum, { seconds }) => sum + seconds, 0);
  }

  /** Seconds of all nodes in a box. */
  of({ nodes }: Pick<Box, 'nodes'>): number {
    return nodes.reduce((sum, node) => sum + (this.#seconds.get(key(node)) ?? 0), 0);
  }
}
