import { cannotStart } from './binary.js';
import { KilimError, aborted, toPlain } from './errors.js';
import type { Glue, WasmFile, WasmSession } from './glue.js';
import type { Backend, Engine, EngineOptions, LoadRequest, Loaded, Picked, Progress, Ran, RunRequest, VerifyRequest } from './protocol.js';
import { readJson } from './json.js';
import { SMALL, isSteady } from './small.js';
import type { NodeTime, WireReport } from './report.js';
import { importOperators } from './operators.js';
import { openDecoders } from './pictures.js';
import { pickBackends } from './pick.js';
import { readSource } from './source.js';
import type { WireSource } from './source.js';
import type { Verification } from './verify.js';

/** One runtime with at most one session in it. Calls are made one after another. */
export function createEngine(glue: Glue): Engine {
  let session: WasmSession | undefined;
  let skipped: Picked['skipped'] = [];
  let give!: (binary: Promise<WebAssembly.Module>) => void;
  const started = new Promise<WebAssembly.Module>((resolve) => { give = resolve; }).then((module) => instantiate(glue, module));
  started.catch(() => undefined);
  /** Of the session when it was last reported on. */
  let revision = 0;
  /** Whether a backend was told to time its nodes. */
  let timed = false;
  /** Set once the runtime has trapped: its memory can no longer be trusted. */
  let broken: KilimError | undefined;

  /** Errors of the runtime itself end it; the others are the library's. */
  async function guarded<T>(call: () => Promise<T> | T): Promise<T> {
    if (broken) throw new KilimError('STATE', 'the runtime failed before; load the model again', {}, broken);
    try {
      return await call();
    } catch (error) {
      const known = KilimError.from(toPlain(error), error instanceof Error ? error : undefined);
      if (error instanceof WebAssembly.RuntimeError) broken = known;
      throw known;
    }
  }

  function report(current: WasmSession): WireReport {
    revision = current.revision();
    return { json: current.report(), skipped };
  }

  function open(): WasmSession {
    if (!session) throw new KilimError('STATE', 'the session is closed');
    return session;
  }

  async function pick({ backends }: EngineOptions): Promise<Picked> {
    return backends ? { backends, skipped: [] } : pickBackends();
  }

  /** Reading needs no runtime, so that both come over the network together. Gives the bytes, too, where they are few. */
  async function readFile(source: WireSource, onBytes: (loaded: number, total?: number) => void, signal: AbortSignal): Promise<[WasmFile, Uint8Array | undefined]> {
    const bytes = await readSource(source, onBytes, signal);
    await started;
    const file = new glue.WasmFile(bytes.length);
    file.write(0, bytes);
    return [file, bytes.length <= SMALL ? bytes.slice() : undefined];
  }

  return {
    start(binary) {
      give(binary);
      return started;
    },

    load(request: LoadRequest, onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Loaded> {
      return guarded(async () => {
        const picking = pick(request.options);
        picking.catch(() => undefined);
        const files = [];
        const names = [];
        let small: Uint8Array | undefined;
        for (const [name, source] of [['', request.source] as const, ...Object.entries(request.external)]) {
          const onBytes = (loaded: number, total?: number) => onProgress({ phase: 'download', loaded, total });
          const [file, bytes] = await readFile(source, onBytes, signal);
          files.push(file);
          names.push(name);
          small = bytes;
        }
        if (signal.aborted) throw aborted(signal);
        onProgress({ phase: 'prepare', loaded: 0, total: 1 });
        const picked = await picking;
        skipped = picked.skipped;
        timed = (request.options.configs ?? []).some((setting) => setting.endsWith(':timers=on'));
        const operators = request.operators === undefined ? {} : { operators: await importOperators(request.operators) };
        session = await glue.WasmSession.load(files, names, { ...request.options, ...operators, pictures: openDecoders, backends: picked.backends });
        onProgress({ phase: 'prepare', loaded: 1, total: 1 });
        const loaded: Loaded = { inputs: session.inputs(), outputs: session.outputs(), report: report(session) };
        if (small && isSteady(request, loaded)) loaded.small = small;
        return loaded;
      });
    },

    run(request: RunRequest, signal: AbortSignal): Promise<Ran> {
      return guarded(async () => {
        const current = open();
        if (signal.aborted) throw aborted(signal);
        const stop = () => current.abort();
        signal.addEventListener('abort', stop);
        try {
          const ran: Ran = { outputs: [], milliseconds: 0 };
          const began = performance.now();
          if (request.profile) {
            const [outputs, times] = await current.profile(request.feeds);
            ran.outputs = outputs;
            ran.nodes = readJson<NodeTime[]>(times);
          } else {
            ran.outputs = await current.run(request.feeds, request.timeout);
            if (timed) ran.nodes = readJson<NodeTime[]>(current.times());
          }
          ran.milliseconds = performance.now() - began;
          if (current.revision() !== revision) ran.report = report(current);
          return ran;
        } finally {
          signal.removeEventListener('abort', stop);
        }
      });
    },

    verify(request: VerifyRequest, signal: AbortSignal): Promise<Verification> {
      return guarded(async () => {
        const current = open();
        if (signal.aborted) throw aborted(signal);
        return readJson<Verification>(await current.verify(request.feeds, request.options));
      });
    },

    saveCache(): Promise<Uint8Array> {
      return guarded(() => open().saveCache());
    },

    calibrate(backends: Backend[]): Promise<string> {
      return guarded(async () => {
        await started;
        return glue.calibrate(backends);
      });
    },

    close() {
      if (!broken) session?.free();
      session = undefined;
    },
  };
}

async function instantiate(glue: Glue, module: WebAssembly.Module): Promise<void> {
  try {
    await glue.default({ module_or_path: module });
  } catch (error) {
    throw cannotStart(error);
  }
}
