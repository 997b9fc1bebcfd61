import { createHash } from 'node:crypto';
import type { Hash } from '../../downloads/sha256.js';

/** SHA-256 of bytes that come in pieces. */
export function sha256(): Hash {
  const hash = createHash('sha256');
  return { add: (bytes) => void hash.update(bytes), end: () => hash.digest('base64') };
}
