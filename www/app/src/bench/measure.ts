import { load } from 'kilim';
import type { LoadOptions, Tensor } from 'kilim';
import type { Model } from '../model.js';
import { spreadOf } from './results.js';
import type { Result } from './results.js';
import type { Plan, Setting } from './settings.js';

/** How far outputs may move in half precision, relative to their largest magnitude. */
const HALF_TOLERANCE = 0.01;
/** Milliseconds after which the page may draw. */
const FRAME = 50;

function optionsOf({ backend, threads, precision }: Setting, feeds: Record<string, Tensor>): LoadOptions {
  return {
    backends: backend === 'cpu' ? ['cpu'] : [backend, 'cpu'],
    threads,
    ...(precision === 'half' && { mixedPrecision: { tolerance: HALF_TOLERANCE, samples: [feeds] } }),
  };
}

/** Lets the page draw, and stops where the visitor wants it. */
async function breathe(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  signal.throwIfAborted();
}

/**
 * Loads a model in one setting and times its runs. `onRun` hears of every run. A setting that fails is a result with the reason.
 * @throws what `signal` was aborted with.
 */
export async function measure(
  model: Model,
  feeds: Record<string, Tensor>,
  setting: Setting,
  { warmup, runs }: Plan,
  signal: AbortSignal,
  onRun: (done: number) => void,
): Promise<Result> {
  const seconds = async (work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    return (performance.now() - start) / 1000;
  };
  const result: Result = { setting };
  let session: Awaited<ReturnType<typeof load>> | undefined;
  try {
    result.load = await seconds(async () => {
      session = await load(model.source, { ...optionsOf(setting, feeds), externalData: model.externalData, signal });
    });
    const ready = session;
    if (!ready) return result;
    const run = () => seconds(() => ready.run(feeds, { signal }));
    result.first = await run();
    let drawn = performance.now();
    const times: number[] = [];
    for (let i = 0; i < warmup + runs; i++) {
      const time = await run();
      if (i >= warmup) times.push(time);
      if (performance.now() - drawn < FRAME) continue;
      onRun(i + 1);
      await breathe(signal);
      drawn = performance.now();
    }
    result.spread = spreadOf(times);
    const { backends, precision, oneThread } = ready.report;
    const device = backends.find(({ id }) => id === setting.backend)?.device;
    if (device) result.device = oneThread ? `${device}, one thread: ${oneThread}` : device;
    if (precision) result.half = precision.nodes.length;
  } catch (error) {
    if (signal.aborted) throw error;
    result.failure = error instanceof Error ? error.message : String(error);
  } finally {
    session?.close();
  }
  return result;
}
