import type { Share } from './crew.js';
import type { DecoderFiles } from './decoder.js';
import type { PlainError } from './errors.js';
import type { Port } from './feeds.js';
import type { PaintRequest } from './painter.js';
import type { Part } from './parts.js';
import type { NodeTime, WireReport } from './report.js';
import type { WireSource } from './source.js';
import type { Stop } from './stop.js';
import type { SpeechFiles } from './speaking.js';
import type { WireTensor } from './tensor.js';
import type { WireKept, WireValue } from './values.js';
import type { Verification, VerifyOptions } from './verify.js';

/** The backends that the package holds, and those that the page has registered. */
export type Backend = 'wgpu' | 'cpu' | 'webnn' | (string & Record<never, never>);

/** The backends that `load` uses where none are named, and why others are not among them. */
export interface Picked {
  backends: Backend[];
  skipped: { backend: Backend; reason: string }[];
}

/** What `load` is busy with. */
export interface Progress {
  /** `runtime`: the WASM binary is made ready; `download`: the model's bytes come in; `prepare`: the graph is placed, weights packed and pipelines compiled. */
  phase: 'runtime' | 'download' | 'prepare';
  /** Bytes read so far while downloading; otherwise 0, or `total` when the phase is done. */
  loaded: number;
  /** All of them, where that is known. */
  total: number | undefined;
}

/** The runtime's WASM binary, where it is not to be taken from beside this module. */
export type WasmSource = string | URL | Response | ArrayBuffer | Uint8Array | WebAssembly.Module;

/** The core of the runtime's binary. */
export interface Binary {
  module: WebAssembly.Module;
  /** The address of the core, where its parts are to be taken from beside it and not from beside this module. */
  beside?: string | undefined;
}

/** What runs beside what: one step after the other, or the host's work while a device is at its own. */
export type Schedule = 'sync' | 'overlapped';

/** The part of the load options that the runtime itself reads. */
export interface EngineOptions {
  backends?: Backend[];
  strict?: boolean;
  pins?: string[];
  precision?: string[];
  configs?: string[];
  without?: string[];
  mixedPrecision?: { tolerance: number; samples: WireTensor[][] };
  dims?: Record<string, number>;
  outputs?: string[];
  lastOnly?: Record<string, number>;
  /** JSON. */
  logMel?: string;
  schedule?: Schedule;
  calibration?: string;
  memory?: 'normal' | 'limit';
  /** What the model may use, in the form of the command line's `--limits`. */
  limits?: string;
  keepWeights?: boolean;
  tune?: boolean;
  cache?: Uint8Array;
}

/** Backends or importers of the page's, as the runtime's thread imports them. */
export interface Brought {
  /** The address of what imports them: the package's `backend.js` or `importer.js`. */
  by: string;
  /** The addresses of their modules, by their names. */
  modules: Record<string, string>;
}

export interface LoadRequest {
  /** Whether the runtime is the package's own, whose parts can be fetched before its core is there. */
  own: boolean;
  source: WireSource;
  external: Record<string, WireSource>;
  /** The bytes that each file may have. */
  fileBytes: number;
  /** The address of a module with operators. */
  operators?: string;
  brought?: Brought;
  /** What reads a file that none of Kilim's own formats knows. */
  importers?: Brought;
  /** The address of what brings pictures to a GPU. */
  painter: string;
  options: EngineOptions;
}

export interface RunRequest {
  feeds: WireValue[];
  /** Milliseconds. */
  timeout?: number;
  profile: boolean;
  /** Outputs that stay in the runtime: names, with `*` for any letters. */
  keep?: string[];
  /** Outputs that the run gives beside those of `keep`, named as there; all without it. */
  outputs?: string[];
  /** Given to a worker, where the caller may abort. */
  stop?: Stop;
}

export interface VerifyRequest {
  feeds: WireValue[];
  options: VerifyOptions;
  /** Given to a worker, where the caller may abort. */
  stop?: Stop;
}

/** What is known of a session once it is loaded. */
export interface Loaded {
  inputs: Port[];
  outputs: Port[];
  report: WireReport;
  /** The file, where runs of a model like it might as well be made in the page's thread. */
  small?: Uint8Array;
  /** The parts of the runtime that it took. */
  parts: Part[];
}

export interface Ran {
  outputs: WireValue[];
  /** What the run took where the runtime is. */
  milliseconds: number;
  /** Given when the run has made new plans. */
  report?: WireReport;
  /** Given when the run was timed. */
  nodes?: NodeTime[];
  /** Given when the run took more parts of the runtime: all of them. */
  parts?: Part[];
  /** What large inputs came in, from a worker. */
  carriers?: ArrayBuffer[];
}

export interface SpeakRequest {
  /** Given to a worker, where the caller may abort. */
  stop?: Stop;
}

/** A window of sound: what an encoder made of it, and how many samples it has. */
export interface WindowRequest {
  source: WireTensor;
  samples: number;
  /** JSON. */
  wanted: string;
  /** Given to a worker, where the caller may abort. */
  stop?: Stop;
}

/** What was said in a window. */
export interface Window {
  json: string;
  /** Given when a step has made new plans. */
  report?: WireReport;
}

/** The next words of a decoder, one at least. */
export interface Spoken {
  words: number[];
  /** Given when the step has made new plans. */
  report?: WireReport;
}

/** A session's runtime, in a worker or in this thread. What inputs hold is read before a call returns its promise. */
export interface Engine {
  /** Called once. Other calls need not wait for it. With `share`, workers of the page help on the memory that it gives. */
  start(binary: Promise<Binary>, share?: Share): Promise<WebAssembly.Memory | undefined>;
  load(request: LoadRequest, onProgress: (progress: Progress) => void, signal?: AbortSignal): Promise<Loaded>;
  run(request: RunRequest, signal?: AbortSignal): Promise<Ran>;
  verify(request: VerifyRequest, signal?: AbortSignal): Promise<Verification>;
  /** Makes a decoder of the session, in place of the one that it has. Gives what the files say, as JSON. */
  openDecoder(files: DecoderFiles): Promise<string>;
  /** Begins a text of the decoder, chosen on by `sampling`, which is JSON. Gives how many of the words its caches know. */
  startText(words: Uint32Array, sampling: string): Promise<number>;
  nextWords(request: SpeakRequest, signal?: AbortSignal): Promise<Spoken>;
  /** Makes a speech decoder of the session, in place of the one that it has. Gives what the files say, as JSON. */
  openSpeech(files: SpeechFiles): Promise<string>;
  hearWindow(request: WindowRequest, signal?: AbortSignal): Promise<Window>;
  /** How many of the samples that are left of a recording are heard next. */
  nextWindow(samples: Float32Array, times: boolean): Promise<number>;
  /** What the model says of itself, as `metadata.ts` reads it. */
  metadata(): Promise<string[]>;
  /** Gives the variables of the session their first values. */
  reset(): Promise<void>;
  saveCache(): Promise<Uint8Array>;
  /** Has pictures be a tensor on the session's GPU; nothing where it has none, or cannot take them. What is given is used up. */
  paint(request: PaintRequest): Promise<WireKept | undefined>;
  /** The elements of a kept tensor, by its number. */
  readKept(number: number): Promise<WireTensor>;
  /** Gives back the memory of kept tensors, when the calls before it are done. */
  releaseKept(numbers: number[]): Promise<void>;
  /** Measures these backends' devices; needs no session. */
  calibrate(backends: Backend[]): Promise<string>;
  close(): void;
}

/** What the page sends to the worker. Every request but `abort` is answered by one `done` or `failed`. */
export type Request =
  | { kind: 'start'; id: number; binary: Binary; share?: Share }
  | { kind: 'load'; id: number; request: LoadRequest }
  | { kind: 'run'; id: number; request: RunRequest }
  | { kind: 'verify'; id: number; request: VerifyRequest }
  | { kind: 'openDecoder'; id: number; files: DecoderFiles }
  | { kind: 'startText'; id: number; words: Uint32Array; sampling: string }
  | { kind: 'nextWords'; id: number; request: SpeakRequest }
  | { kind: 'openSpeech'; id: number; files: SpeechFiles }
  | { kind: 'hearWindow'; id: number; request: WindowRequest }
  | { kind: 'nextWindow'; id: number; samples: Float32Array; times: boolean }
  | { kind: 'metadata'; id: number }
  | { kind: 'reset'; id: number }
  | { kind: 'saveCache'; id: number }
  | { kind: 'paint'; id: number; request: PaintRequest }
  | { kind: 'readKept'; id: number; number: number }
  | { kind: 'releaseKept'; id: number; numbers: number[] }
  | { kind: 'calibrate'; id: number; backends: Backend[] }
  | { kind: 'abort'; id: number };

/** What the worker sends to the page. */
export type Reply =
  | { kind: 'progress'; id: number; progress: Progress }
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; error: PlainError };
