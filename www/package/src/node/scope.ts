import { parentPort } from 'node:worker_threads';
import type { TransferListItem } from 'node:worker_threads';
import { KilimError } from '../errors.js';
import type { Scope } from '../scope.js';

const port = parentPort;
if (!port) throw new KilimError('STATE', 'this script is for workers of the package');

export const scope: Scope = {
  postMessage: (message, transfer) => port.postMessage(message, transfer as unknown as TransferListItem[]),
  addEventListener: (_type, listener) => void port.on('message', (data) => listener({ data })),
};
