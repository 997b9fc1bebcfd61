import type { Backend } from './protocol.js';

/** How `Session.verify` compares. */
export interface VerifyOptions {
  /** Whose results count; `cpu` by default. */
  reference?: Backend;
  /** Who is compared with it; the session's first backend by default. */
  candidate?: Backend;
  /** The largest difference, relative to the largest magnitude of the reference's tensor; 0.001 by default. */
  tolerance?: number;
}

/** `skipped`: the candidate does not run the node, or its results are random. */
export type Agreement = 'same' | 'differs' | 'skipped';

/** An output of the whole model, run as the session runs it. */
export interface OutputCheck {
  name: string;
  agreement: Agreement;
  /** The largest difference, in the unit of the tolerance. */
  error: number | null;
  message: string | null;
}

/** A node, run by both backends on the same inputs. */
export interface NodeCheck extends OutputCheck {
  op: string;
  /** The control-flow nodes whose bodies hold it, outermost first. */
  scope: string[];
}

/** What `Session.verify` found. */
export interface Verification {
  reference: string;
  candidate: string;
  tolerance: number;
  /** The first node that differs. */
  first: NodeCheck | null;
  /** In the order of execution. */
  nodes: NodeCheck[];
  outputs: OutputCheck[];
}
