import { CAN_READ } from './apart.js';
import type { Apart } from './apart.js';
import { toKilimError, KilimError, aborted } from './errors.js';
import type { WireBackend } from './backend/wire.js';
import { callerOf } from './crew.js';
import type { DecoderFiles } from './decoder.js';
import type { Glue, ThreadsGlue, WasmFile, WasmSession } from './glue.js';
import type {
  Backend,
  Binary,
  Brought,
  Engine,
  EngineOptions,
  LoadRequest,
  Loaded,
  Picked,
  Progress,
  Ran,
  RunRequest,
  SpeakRequest,
  Spoken,
  VerifyRequest,
  Window,
  WindowRequest,
} from './protocol.js';
import { onAbort } from './abort.js';
import { readJson } from './json.js';
import { HEAD, kindsIn, kindsOfName, onGpu } from './hints.js';
import type { FilesToImport, WireDraft } from './importer.js';
import { SMALL, isSteady } from './small.js';
import { partsFor } from './parts.js';
import type { EarlyParts, Kind, Needs, Part } from './parts.js';
import type { NodeTime, WireReport } from './report.js';
import { importOwn } from './import-own.js';
import { importOperators } from './operators.js';
import { openDecoders } from './image-decoder.js';
import type { PaintRequest } from './painter.js';
import { importPainter } from './painting.js';
import { pickBackends, requireBackends } from './pick.js';
import type { Runtime } from './runtime.js';
import { checkBytes, nameOf, readSource } from './source.js';
import type { Reading, WireSource } from './source.js';
import type { SpeechFiles } from './speaking.js';
import { stoppedBy } from './stop.js';
import type { WireKept } from './values.js';
import type { Verification } from './verify.js';
import { wired } from './wired.js';

/** Milliseconds within which further words are made for the answer with the first one: a message takes about half of one. */
const TOGETHER = 2;

/** What a load needs beside what its files show. */
const kindsOf = (backends: readonly Backend[], { logMel }: EngineOptions = {}, brought?: Brought): Kind[] => [
  ...(backends.includes('wgpu') ? (['gpu'] as const) : []),
  // What makes the spectrum.
  ...(logMel === undefined ? [] : (['speech'] as const)),
  // What stands between Kilim and a backend of the page.
  ...(brought === undefined ? [] : (['brought'] as const)),
];

/** Imports backends of the page. */
async function importBrought({ by, modules }: Brought): Promise<WireBackend[]> {
  const { importBackends } = await importOwn<{ importBackends(modules: Record<string, string>): Promise<WireBackend[]> }>(by);
  return importBackends(modules);
}

/** What importers of the page make of a file that none of Kilim's own formats knows. */
async function importModel({ by, modules }: Brought, files: FilesToImport): Promise<WireDraft | Uint8Array | undefined> {
  const module = await importOwn<{ importModel(modules: Record<string, string>, files: FilesToImport): ReturnType<typeof importModel> }>(
    by,
  );
  return module.importModel(modules, files);
}

/** A session, and where it is. */
interface Opened {
  runtime: Runtime<Glue>;
  session: WasmSession;
}

/**
 * One runtime with at most one session in it. Calls are made one after another, and read their inputs before they return a promise.
 * `open` gives the runtime of a compiled binary, `needs` its parts for models of each kind; before anything is loaded it gets `parts`, where it cannot wait for them later.
 * `early` fetches parts of the package's own runtime while its core is still to come. `openApart` gives what reads a large file where it lies.
 */
export function createEngine(
  open: (binary: Binary) => Promise<Runtime<Glue>>,
  needs: Needs,
  parts: readonly Part[] = [],
  early?: EarlyParts,
  openApart?: (source: WireSource) => Apart | undefined,
): Engine {
  let opened: Opened | undefined;
  let closed = false;
  let skipped: Picked['skipped'] = [];
  /** The address of the runtime's binary, where its other files are to be taken from beside it. */
  let beside: string | undefined;
  let give!: (binary: Promise<Binary>) => void;
  const started = new Promise<Binary>((resolve) => {
    give = resolve;
  }).then(async (binary) => {
    ({ beside } = binary);
    const runtime = await open(binary);
    await runtime.require(parts);
    return runtime;
  });
  started.catch(() => undefined);
  /** The session's revision when it was last reported on. */
  let revision = 0;
  /** Whether a backend was told to time its nodes. */
  let timed = false;
  /** The address of what brings pictures to a GPU. */
  let painter = '';
  /** How many parts the page was told of. */
  let told = 0;
  /** Words that end a text of the decoder. */
  let end: readonly number[] = [];

  /** Has the runtime take what models of these kinds need. */
  async function require(kinds: readonly Kind[]): Promise<void> {
    await (await started).require(partsFor(needs, kinds));
  }

  async function typed<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw toKilimError(error);
    }
  }

  /** A call of the session, which `signal` stops. */
  function calling<T>(signal: AbortSignal | undefined, call: (session: WasmSession) => Promise<T> | T): Promise<T> {
    return typed(async () => {
      if (!opened) throw new KilimError('STATE', 'the session is closed');
      if (signal?.aborted) throw aborted(signal);
      const { runtime, session } = opened;
      const stopListening = onAbort(signal, () => session.abort());
      try {
        return await runtime.call(() => call(session));
      } finally {
        stopListening();
      }
    });
  }

  function report(current: WasmSession): WireReport {
    revision = current.revision();
    return { json: current.report(), skipped };
  }

  async function pick({ backends }: EngineOptions): Promise<Picked> {
    if (!backends) return pickBackends();
    requireBackends(backends);
    return { backends, skipped: [] };
  }

  /** Reading needs no runtime, so that both come over the network together. Gives the bytes, too, where they are few. */
  async function readFile(
    source: WireSource,
    reading: Reading,
    onKinds: (kinds: readonly Kind[]) => void,
  ): Promise<[WasmFile, Uint8Array | undefined]> {
    let apart = openApart?.(source);
    const onHead = (head: Uint8Array) => onKinds(kindsIn(head));
    const read = apart ?? (await readSource(source, { ...reading, onHead, blobs: openApart !== undefined && CAN_READ }));
    if (read instanceof Blob) apart = openApart?.(wired(read));
    if (apart) {
      checkBytes(apart.size, reading.most);
      reading.onBytes(apart.size, apart.size);
    }
    const bytes = apart ? apart.read(0, Math.min(HEAD, apart.size)) : (read as Uint8Array);
    const kinds = kindsIn(bytes);
    onKinds(kinds);
    const runtime = await started;
    await require(kinds);
    const { WasmFile } = runtime.glue;
    if (apart) return [await runtime.call(() => WasmFile.apart(apart.size, apart.read)), undefined];
    const file = await hold(runtime, bytes);
    // The runtime has them: kept by the request as well, they would be there twice until the model is loaded.
    if ('bytes' in source) source.bytes = new Uint8Array();
    return [file, bytes.length <= SMALL ? bytes.slice() : undefined];
  }

  /** The bytes in the runtime's memory. */
  const hold = (runtime: Runtime<Glue>, bytes: Uint8Array): Promise<WasmFile> =>
    runtime.call(() => {
      const file = new runtime.glue.WasmFile(bytes.length);
      file.write(0, bytes);
      return file;
    });

  /** Has importers of the page read a model that Kilim does not know: gives it, or puts a file that Kilim knows in the place of the first. */
  async function imported(importers: Brought, files: WasmFile[], names: readonly string[]): Promise<WireDraft | undefined> {
    const runtime = await started;
    const [file, name] = [files[0] as WasmFile, names[0] ?? ''];
    if (await runtime.call(() => file.isKnown(name))) return undefined;
    const beside = files.slice(1).map((other, i): [string, () => Uint8Array] => [names[i + 1] ?? '', () => other.read(Infinity)]);
    const made = await importModel(importers, { name, head: file.read(HEAD), bytes: () => file.read(Infinity), beside });
    if (!(made instanceof Uint8Array)) return made;
    await require(kindsIn(made));
    files[0] = await hold(runtime, made);
    file.free();
    return undefined;
  }

  return {
    async start(binary, share) {
      give(binary);
      const { glue, memory } = await started;
      if (!share || !('setWorkers' in glue)) return undefined;
      (glue as ThreadsGlue).setWorkers(share.workers, callerOf(share));
      return memory;
    },

    load(request: LoadRequest, onProgress: (progress: Progress) => void, signal?: AbortSignal): Promise<Loaded> {
      return typed(async () => {
        const ahead = request.own ? early : undefined;
        const found = new Set<Kind>();
        const onKinds = (kinds: readonly Kind[]): void => {
          for (const kind of kinds) found.add(kind);
          ahead?.fetch(partsFor(needs, kinds));
        };
        onKinds(kindsOfName(nameOf(request.source)));
        const picking = pick(request.options).then(async (picked) => {
          const kinds = kindsOf(picked.backends, request.options, request.brought);
          onKinds(kinds);
          await require(kinds);
          return picked;
        });
        picking.catch(() => undefined);
        const files: WasmFile[] = [];
        const names: string[] = [];
        let small: Uint8Array | undefined;
        for (const [name, source] of [[nameOf(request.source), request.source] as const, ...Object.entries(request.external)]) {
          const onBytes = (loaded: number, total?: number) => onProgress({ phase: 'download', loaded, total });
          const [file, bytes] = await readFile(source, { onBytes, most: request.fileBytes, signal }, onKinds);
          files.push(file);
          names.push(name);
          small = bytes;
        }
        if (signal?.aborted) throw aborted(signal);
        onProgress({ phase: 'prepare', loaded: 0, total: 1 });
        const picked = await picking;
        if (picked.backends.includes('wgpu')) await require(onGpu([...found]));
        ({ skipped } = picked);
        ({ painter } = request);
        timed = (request.options.configs ?? []).some((setting) => setting.endsWith(':timers=on'));
        const operators = request.operators === undefined ? {} : { operators: await importOperators(request.operators) };
        const brought = request.brought === undefined ? {} : { brought: await importBrought(request.brought) };
        const draft = request.importers === undefined ? undefined : await imported(request.importers, files, names);
        const options = {
          ...request.options,
          ...operators,
          ...brought,
          ...(draft && { draft }),
          pictures: () => openDecoders(beside),
          backends: picked.backends,
        };
        const runtime = await started;
        const session = await runtime.call(() => runtime.glue.WasmSession.load(files, names, options));
        opened = { runtime, session };
        if (closed) throw letGo();
        onProgress({ phase: 'prepare', loaded: 1, total: 1 });
        const loaded: Loaded = await runtime.call(() => ({
          inputs: session.inputs(),
          outputs: session.outputs(),
          report: report(session),
          parts: [...runtime.parts],
        }));
        told = loaded.parts.length;
        if (small && isSteady(request, loaded)) loaded.small = small;
        return loaded;
      });
    },

    run(request: RunRequest, signal?: AbortSignal): Promise<Ran> {
      return calling(signal, async (session) => {
        const ran: Ran = { outputs: [], milliseconds: 0 };
        const began = performance.now();
        const stopped = stoppedBy(request.stop);
        if (request.profile) {
          const [outputs, times] = await session.profile(request.feeds, request.timeout, stopped, request.outputs);
          ran.outputs = outputs;
          ran.nodes = readJson<NodeTime[]>(times);
        } else {
          ran.outputs = await session.run(request.feeds, request.timeout, stopped, request.keep, request.outputs);
          if (timed) ran.nodes = readJson<NodeTime[]>(session.times());
        }
        ran.milliseconds = performance.now() - began;
        if (session.revision() !== revision) ran.report = report(session);
        const taken = opened?.runtime.parts;
        if (taken && taken.size !== told) {
          told = taken.size;
          ran.parts = [...taken];
        }
        return ran;
      });
    },

    verify(request: VerifyRequest, signal?: AbortSignal): Promise<Verification> {
      return calling(signal, async (session) => {
        return readJson<Verification>(await session.verify(request.feeds, request.options, stoppedBy(request.stop)));
      });
    },

    openDecoder({ genai, config, generation, gguf }: DecoderFiles): Promise<string> {
      return calling(undefined, async (session) => {
        await require(['text']);
        const said = session.openDecoder(genai, config, generation, gguf);
        ({ end } = readJson<{ end: number[] }>(said));
        return said;
      });
    },

    startText: (words, sampling) => calling(undefined, (session) => session.startText(words, sampling)),

    nextWords(request: SpeakRequest, signal?: AbortSignal): Promise<Spoken> {
      return calling(signal, async (session) => {
        const stopped = stoppedBy(request.stop);
        const began = performance.now();
        let word = await session.nextWord(stopped);
        const words = [word];
        while (performance.now() - began < TOGETHER && !end.includes(word)) {
          try {
            word = await session.nextWord(stopped);
            words.push(word);
          } catch {
            // Who asks for this word is told.
            break;
          }
        }
        const spoken: Spoken = { words };
        if (session.revision() !== revision) spoken.report = report(session);
        return spoken;
      });
    },

    openSpeech({ config, generation, preprocessor, ggml }: SpeechFiles): Promise<string> {
      return calling(undefined, async (session) => {
        await require(['speech']);
        return session.openSpeech(config, generation, preprocessor, ggml);
      });
    },

    hearWindow({ source, samples, wanted, stop }: WindowRequest, signal?: AbortSignal): Promise<Window> {
      return calling(signal, async (session) => {
        const window: Window = { json: await session.hearWindow([source], samples, wanted, stoppedBy(stop)) };
        if (session.revision() !== revision) window.report = report(session);
        return window;
      });
    },

    nextWindow: (samples, times) => calling(undefined, (session) => session.nextWindow(samples, times)),

    metadata: () => calling(undefined, (session) => session.metadata()),

    reset: () => calling(undefined, (session) => session.reset()),

    saveCache(): Promise<Uint8Array> {
      return calling(undefined, (session) => session.saveCache());
    },

    readKept: (number) => calling(undefined, (session) => session.readKept(number)),

    releaseKept: (numbers) => calling(undefined, (session) => session.releaseKept(Uint32Array.from(numbers))),

    paint(request: PaintRequest): Promise<WireKept | undefined> {
      return calling(undefined, async (session) => {
        if (painter === '') return undefined;
        const { fits, paint } = await importPainter(painter);
        const { type, dims } = request;
        const blank = session.blank(type, Uint32Array.from(dims));
        if (blank === undefined) return undefined;
        const { kept } = blank;
        try {
          if (fits(blank.device, request)) {
            paint(blank, request);
            return { name: '', kept, type: type as WireKept['type'], dims };
          }
        } catch (error) {
          session.releaseKept(Uint32Array.of(kept));
          throw error;
        }
        session.releaseKept(Uint32Array.of(kept));
        return undefined;
      });
    },

    calibrate(backends: Backend[]): Promise<string> {
      return typed(async () => {
        requireBackends(backends);
        const runtime = await started;
        await require(kindsOf(backends));
        return runtime.call(() => runtime.glue.calibrate(backends));
      });
    },

    close() {
      closed = true;
      letGo();
    },
  };

  /** Frees the session; a run that is under way stops at its next step. */
  function letGo(): KilimError {
    if (opened && !opened.runtime.fault) {
      opened.session.abort();
      opened.session.free();
    }
    opened = undefined;
    return new KilimError('STATE', 'the session is closed');
  }
}
