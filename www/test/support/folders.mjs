// Where the repository and its web part lie.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const www = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const repository = dirname(www);
