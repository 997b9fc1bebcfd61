import type { WireSource } from './source.js';

/** What was read, as a source. */
export const wired = (read: Uint8Array | Blob, name = ''): WireSource =>
  read instanceof Blob ? { blob: read, name } : { bytes: read, name };
