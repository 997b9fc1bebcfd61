import type { LoadRequest, Loaded } from './protocol.js';
import { readReport } from './report.js';

/** Bytes of a model's file up to which another session of it costs little. */
export const SMALL = 256 << 10;

/**
 * Whether another session of a model is made as fast as this one was, gives the same, and every run takes about as long as the last: all of it is
 * planned, for inputs of fixed shapes, on the CPU alone, and nothing of a run stays for the next.
 */
export function isSteady({ external, operators, importers, options }: LoadRequest, { inputs, report }: Loaded): boolean {
  const { tune, mixedPrecision, memory, configs } = options;
  if (importers !== undefined) return false;
  if (Object.keys(external).length > 0 || operators !== undefined || tune || mixedPrecision || memory === 'limit' || configs) return false;
  const fixed = inputs.every(({ kind, dims }) => kind === 'tensor' && dims?.every((dim) => typeof dim === 'number'));
  const { unplannedStages, nodes, variables } = readReport(report);
  return fixed && unplannedStages === 0 && variables.length === 0 && nodes.every(({ backend }) => backend === 'cpu' || backend === 'plan');
}
