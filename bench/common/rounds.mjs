// Engines take turns, so that what changes on the machine meanwhile meets all of them.
import { setTimeout as pause } from 'node:timers/promises';
import { median, short } from './record.mjs';

/** About how long a sample is, in milliseconds, and what runs before it untimed: short runs are repeated. After a pause the first runs on several threads are slower. */
const SAMPLE = 100;
const WARM_UP = 3;
/** How long nobody computes before a turn, in milliseconds, so that threads of the engine before come to rest. */
const PAUSE = 100;

/**
 * Times `engines`, each with a function `time(times)` that gives the milliseconds of so many runs and a list `samples` to add to. One that
 * fails gets an `error` and drops out.
 */
export async function takeTurns(engines, runs) {
  for (const engine of engines) engine.samples = [];
  const warm = new Map(engines.map((engine) => [engine, []]));
  for (let round = 0; round < WARM_UP + runs; round++) {
    for (const engine of engines) {
      if (engine.error) continue;
      try {
        const first = warm.get(engine);
        const times = round < WARM_UP ? 1 : Math.max(1, Math.min(200, Math.round(SAMPLE / Math.max(median(first), 0.01))));
        await pause(PAUSE);
        await engine.time(times);
        const took = (await engine.time(times)) / times;
        (round < WARM_UP ? first : engine.samples).push(took);
      } catch (error) {
        engine.error = short(error);
      }
    }
  }
}
