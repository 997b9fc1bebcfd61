import { copyFiles } from './copy.js';

/** The service worker that adds headers. */
const WORKER = 'isolation.worker.js';

/** Puts the service worker that isolates pages into their folder. */
export async function isolation(to: string): Promise<string> {
  await copyFiles([WORKER], to);
  return `${WORKER} is in ${to}; \`isolate\` of \`kilim/isolation\` makes pages isolated that are served from this folder and those below`;
}
