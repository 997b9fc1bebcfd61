import { readJson } from './json.js';
import type { DType } from './tensor.js';

/** Where everything runs and why, what crosses between backends, and what the session holds. */
export interface Report {
  backends: BackendReport[];
  nodes: NodeReport[];
  crossings: CrossingReport[];
  /** Where every intermediate is, for each backend of each planned stage. */
  memory: MemoryPlan[];
  /** Bytes on the host of the constants that stay so that inputs of other shapes can be planned. */
  graphBytes: number;
  /** Nodes of the graph that was loaded, before any pass. */
  nodesLoaded: number;
  /** Stages that have no plan yet, because their shapes depend on data. */
  unplannedStages: number;
  /** The names of what the session keeps from run to run; `session.reset` gives them their first values. */
  variables: string[];
  /** How stages got plans for the shapes of their inputs since the model was loaded: made anew, or a plan changed. */
  plans: { made: number; adapted: number };
  /** Why fewer threads run than the machine has, if so. */
  threads: string | null;
  /** What `mixedPrecision` chose; `null` without it. */
  precision: PrecisionReport | null;
  /** Nodes that compute in the type that the option `precision` names. */
  precisions: { node: string; op: string; dtype: DType }[];
  /** The classes of nodes for which a kernel was chosen by measuring, with the option `tune`. */
  tuning: TuningReport[];
  /** Why the bytes of the option `cache` are not used, if so: they are damaged, or of another version or device. */
  cache: string | null;
  /** Backends that were not asked for and would have been used, and why they were not. */
  skipped: { backend: string; reason: string }[];
  /** Why the session computes in the calling thread, where it should have a worker and none may be started. */
  worker: string | null;
  /** Why there is one thread, where `threads` asked for more. */
  oneThread: string | null;
}

/** A report as the library writes it, which takes a while to read. */
export interface WireReport {
  json: string;
  skipped: Report['skipped'];
  worker?: string;
}

export function readReport(report: WireReport | Report, oneThread?: string): Report {
  if (!('json' in report)) return report;
  const { json, skipped, worker = null } = report;
  return { ...readJson<Omit<Report, 'skipped' | 'worker' | 'oneThread'>>(json), skipped, worker, oneThread: oneThread ?? null };
}

/** Nodes that compute in half precision. */
export interface PrecisionReport {
  tolerance: number;
  /** The largest difference of an output that was measured with these nodes, relative to the output's largest magnitude. */
  error: number;
  nodes: string[];
  /** How many a backend would have preferred in half precision. */
  considered: number;
  /** Why the others stay in single precision. */
  single: { node: string; reason: string }[];
}

/** The kernel that nodes of one class get on a device that has several for them. */
export interface TuningReport {
  backend: string;
  class: string;
  algorithm: string;
  /** What was measured for this session; empty where it was known before. */
  times: { algorithm: string; seconds: number }[];
}

export interface BackendReport {
  id: string;
  /** Adapter and driver, or instruction set and threads. */
  device: string;
  /** Whether prices rest on measurements of this device; see `calibrate`. */
  calibrated: boolean;
  /** Bytes of weights, packed forms included. */
  constantBytes: number;
  /** Bytes of the arena, which all plans share, and of what each plan has for itself. */
  plannedBytes: number;
  /** Bytes of the arena: intermediates and scratch. */
  arenaBytes: number;
  /** Whose arena it is; `thread` where sessions of one thread share it. */
  arenaOwner: 'own' | 'thread' | 'external';
  /** Bytes of the arena that hold intermediates, in the plan that needs the most: without sharing, they would be `unsharedBytes`. */
  intermediateBytes: number;
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
  /**
   * A backend's id, or one of two names that are none: `plan`, where nothing is left to run, since the node's outputs were computed when
   * the stage was planned (arithmetic on shapes, for instance) or are views of its inputs (`view`); and `builtin`, for what
   * Kilim runs itself between the backends (control flow, and values that are no tensors).
   */
  backend: string;
  /**
   * Whether the output is the bytes of the first input under another shape, at the shapes of the latest run: Reshape, Squeeze, and others that
   * move no element, such as a Transpose of axes of length 1. Nothing computes it.
   */
  view: boolean;
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

/** The intermediates of one stage in the arena of one backend. */
export interface MemoryPlan {
  backend: string;
  /** The bodies of control-flow nodes that hold the stage, outermost first. */
  scope: string[];
  stage: number;
  /** The bytes that the tensors take together. */
  bytes: number;
  /** The largest sum of bytes alive at one step: no plan can be smaller. */
  lowerBoundBytes: number;
  /** The sum of all tensors, had each its own buffer. */
  unsharedBytes: number;
  /** Steps of the stage; each runs one kernel. */
  steps: number;
  tensors: PlannedTensor[];
}

/** A tensor in an arena, from step `first` to step `last`, both included. */
export interface PlannedTensor {
  name: string;
  offset: number;
  bytes: number;
  first: number;
  last: number;
  role: 'input' | 'output' | 'intermediate';
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
