// Kilim, from another package, which `--before` names: an earlier state.
import { opener } from './kilim.mjs';

export const open = opener('../../before/index.js');
