import { openApart } from './apart.js';
import { carriersOf } from './carriers.js';
import { createEngine } from './engine.js';
import { toPlain } from './errors.js';
import type { CreateGlue, Glue } from './glue.js';
import type { Build } from './parts.js';
import { EarlyParts, placesOf } from './parts.js';
import type { Progress, Ran, Reply, Request, RunRequest } from './protocol.js';
import { Runtime } from './runtime.js';
import { scope } from './scope.js';
import { tensorsOf } from './values.js';

/** What a run's reply takes along: its outputs, and what its inputs came in. */
function handBack(request: RunRequest, ran: Ran): ArrayBuffer[] {
  ran.carriers = carriersOf(request.feeds);
  const outputs = ran.outputs.flatMap(tensorsOf).flatMap(({ bytes }) => (bytes ? [bytes.buffer as ArrayBuffer] : []));
  return [...outputs, ...ran.carriers];
}

/** Answers the page's requests, loads and runs one at a time and in order. */
export function serve(create: CreateGlue<Glue>, { places, needs }: Build): void {
  const early = new EarlyParts(places);
  const engine = createEngine(
    (binary) => {
      const taken = placesOf(binary, places);
      return Runtime.start(create, binary.module, { places: taken, early: taken === places ? early : undefined });
    },
    needs,
    [],
    early,
    openApart,
  );
  const waiting = new Map<number, AbortController>();
  let queue = Promise.resolve();
  const reply = (message: Reply, transfer: Transferable[] = []) => scope.postMessage(message, transfer);

  async function answer(message: Exclude<Request, { kind: 'abort' }>, signal: AbortSignal): Promise<unknown> {
    switch (message.kind) {
      case 'start':
        return engine.start(Promise.resolve(message.binary), message.share);
      case 'load':
        return engine.load(message.request, (progress: Progress) => reply({ kind: 'progress', id: message.id, progress }), signal);
      case 'run':
        return engine.run(message.request, signal);
      case 'verify':
        return engine.verify(message.request, signal);
      case 'openDecoder':
        return engine.openDecoder(message.files);
      case 'startText':
        return engine.startText(message.words, message.sampling);
      case 'nextWords':
        return engine.nextWords(message.request, signal);
      case 'openSpeech':
        return engine.openSpeech(message.files);
      case 'hearWindow':
        return engine.hearWindow(message.request, signal);
      case 'nextWindow':
        return engine.nextWindow(message.samples, message.times);
      case 'metadata':
        return engine.metadata();
      case 'reset':
        return engine.reset();
      case 'saveCache':
        return engine.saveCache();
      case 'paint':
        return engine.paint(message.request);
      case 'readKept':
        return engine.readKept(message.number);
      case 'releaseKept':
        return engine.releaseKept(message.numbers);
      case 'calibrate':
        return engine.calibrate(message.backends);
    }
  }

  async function handle(message: Exclude<Request, { kind: 'abort' }>, signal: AbortSignal): Promise<void> {
    const { id } = message;
    try {
      const value = await answer(message, signal);
      const buffers = message.kind === 'run' ? handBack(message.request, value as Ran) : [];
      reply({ kind: 'done', id, value }, buffers);
    } catch (error) {
      reply({ kind: 'failed', id, error: toPlain(error) });
    }
    waiting.delete(id);
  }

  scope.addEventListener('message', ({ data: message }: { data: Request }) => {
    if (message.kind === 'abort') {
      waiting.get(message.id)?.abort();
      return;
    }
    const controller = new AbortController();
    waiting.set(message.id, controller);
    if (message.kind === 'start') return void handle(message, controller.signal);
    queue = queue.then(() => handle(message, controller.signal));
  });
}
