/** What the calls of one signal have stopped when it aborts. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Has `stop` called when `signal` aborts; the result takes that back. A signal gets one listener for all calls: Node warns of more than
 * ten.
 */
export function onAbort(signal: AbortSignal | undefined, stop: () => void): () => void {
  if (!signal) return () => undefined;
  const stops = waiting.get(signal) ?? listen(signal);
  stops.add(stop);
  return () => stops.delete(stop);
}

function listen(signal: AbortSignal): Set<() => void> {
  const stops = new Set<() => void>();
  waiting.set(signal, stops);
  signal.addEventListener(
    'abort',
    () => {
      waiting.delete(signal);
      for (const stop of stops) stop();
    },
    { once: true },
  );
  return stops;
}
