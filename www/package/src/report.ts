import type { DType } from './tensor.js';

/** Where everything runs and why, what crosses between backends, and what the session holds. */
export interface Report {
  backends: BackendReport[];
  nodes: NodeReport[];
  crossings: CrossingReport[];
  /** Nodes of the graph that was loaded, before any pass. */
  nodesLoaded: number;
  /** Stages that have no plan yet, because their shapes depend on data. */
  unplannedStages: number;
  /** Why fewer threads run than the machine has, if so. */
  threads: string | null;
  /** Backends that were not asked for and would have been used, and why they were not. */
  skipped: { backend: string; reason: string }[];
}

export interface BackendReport {
  id: string;
  /** Adapter and driver, or instruction set and threads. */
  device: string;
  /** Whether prices rest on measurements of this device; see `calibrate`. */
  calibrated: boolean;
  /** Bytes of weights, packed forms included. */
  constantBytes: number;
  /** Bytes of arenas and scratch of all plans that are kept. */
  plannedBytes: number;
  /** The sum of all intermediates, had each its own buffer. */
  unsharedBytes: number;
  /** The largest sum of bytes alive at one step of one stage. */
  lowerBoundBytes: number;
  /** Kernel launches of one run: dispatches on a GPU. */
  launches: number;
}

export interface NodeReport {
  name: string;
  op: string;
  /** A backend's id, `builtin`, or `plan` for what was computed while planning and for views. */
  backend: string;
  /** The bodies of control-flow nodes that hold this one, outermost first. */
  scope: string[];
  stage: number;
  inputs: string[];
  outputs: { name: string; dtype: DType; shape: number[] }[];
  /** Why backends preferred to this one do not run the node. */
  refusals: { backend: string; reason: string }[];
  /** Why it is not on the first backend that takes it: `nodes` went together, for `seconds` instead of `insteadOf` by the cost model. */
  moved: { from: string; nodes: number; seconds: number; insteadOf: number } | null;
}

/** A value that goes from one backend to another in every run. */
export interface CrossingReport {
  value: string;
  from: string;
  to: string;
  bytes: number;
}

/** The time one node took. */
export interface NodeTime {
  name: string;
  op: string;
  backend: string;
  scope: string[];
  seconds: number;
}
