import { env } from 'onnxruntime-common';

const said = new Set<string>();

/** Says something on the console once, unless `env.logLevel` is above warnings. */
export function warnOnce(message: string): void {
  if (env.logLevel === 'error' || env.logLevel === 'fatal' || said.has(message)) return;
  said.add(message);
  console.warn(`kilim/ort: ${message}`);
}
