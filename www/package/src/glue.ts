import type { Apart } from './apart.js';
import type { WireBackend } from './backend/wire.js';
import type { Port } from './feeds.js';
import type { WireDraft } from './importer.js';
import type { WireOperator } from './operators.js';
import type { Decoders } from './image-decoder.js';
import type { Canvas } from './painter.js';
import type { Backend, EngineOptions } from './protocol.js';
import type { WireTensor } from './tensor.js';
import type { WireValue } from './values.js';
import type { VerifyOptions } from './verify.js';

/** What every script of wasm-bindgen gives for an instance of its binary. */
export interface Instance {
  /** Makes the instance. Before that nothing else may be used. */
  init(options: { module_or_path: WebAssembly.Module; memory?: WebAssembly.Memory }): Promise<{ memory: WebAssembly.Memory }>;
}

/**
 * What `cargo xtask build` makes of wasm-bindgen's script; `guard` gives the exports that are called in place of the instance's own,
 * `loaders` load its parts, each by the part's name.
 */
export type CreateGlue<G extends Instance> = (
  guard: (exports: WebAssembly.Exports) => WebAssembly.Exports,
  loaders: Record<string, () => void>,
) => G;

/** What wasm-bindgen makes of `crates/web`, in either build. */
export interface Glue extends Instance {
  WasmFile: { new (length: number): WasmFile; apart(size: number, read: Apart['read']): WasmFile };
  WasmSession: { load(files: WasmFile[], names: string[], options: LoadOptions): Promise<WasmSession> };
  /** Gives JSON to be handed to `load`. */
  calibrate(backends: Backend[]): Promise<string>;
}

/** What the build with threads has beside that. */
export interface ThreadsGlue extends Glue {
  /** `call` is to have so many of the `count` workers call `help`. */
  setWorkers(count: number, call: (wanted: number) => void): void;
  /** Does what the session's thread has to share until there was nothing for so many turns of a loop. Whether there was something. */
  help(turns: number): boolean;
}

/** What `load` takes: the page's options, and what cannot be posted to a worker. */
export interface LoadOptions extends EngineOptions {
  operators?: WireOperator[];
  brought?: WireBackend[];
  /** The model, in the place of the first file, whose bytes it may share. */
  draft?: WireDraft;
  /** Called where the model has an ImageDecoder. */
  pictures(): Promise<Decoders>;
}

/** A file in the runtime's memory, or one that is read where it lies; `load` takes it over. */
export interface WasmFile {
  write(offset: number, bytes: Uint8Array): void;
  /** A copy of `length` bytes, or of those up to the end. */
  read(length: number): Uint8Array;
  /** Whether one of Kilim's own formats knows it under this name. */
  isKnown(name: string): boolean;
  free(): void;
}

/** Calls read their inputs before they return. */
export interface WasmSession {
  inputs(): Port[];
  outputs(): Port[];
  /** The fields, and behind them keys and texts, as `metadata.ts` reads them. */
  metadata(): string[];
  /** JSON in the library's own names. */
  report(): string;
  revision(): number;
  /** `stopped` is asked while kernels compute, too. */
  run(
    feeds: WireValue[],
    timeout: number | undefined,
    stopped: (() => boolean) | undefined,
    keep: string[] | undefined,
    outputs: string[] | undefined,
  ): Promise<WireValue[]>;
  /** A kept tensor on the session's GPU, to be written; nothing where it has none, or that does not hold it. */
  blank(type: string, dims: Uint32Array): (Canvas & { kept: number }) | undefined;
  readKept(number: number): Promise<WireTensor>;
  releaseKept(numbers: Uint32Array): void;
  /** The times of the last run, as JSON. */
  times(): string;
  /** Gives `[outputs, times as JSON]`. */
  profile(
    feeds: WireValue[],
    timeout: number | undefined,
    stopped: (() => boolean) | undefined,
    outputs: string[] | undefined,
  ): Promise<[WireValue[], string]>;
  /** Gives JSON in the library's own names. */
  verify(feeds: WireValue[], options: VerifyOptions, stopped: (() => boolean) | undefined): Promise<string>;
  /** Gives JSON. */
  openDecoder(genai: string | undefined, config: string | undefined, generation: string | undefined, gguf: Uint8Array | undefined): string;
  startText(words: Uint32Array, sampling: string): Promise<number>;
  nextWord(stopped: (() => boolean) | undefined): Promise<number>;
  /** Gives JSON. */
  openSpeech(
    config: string | undefined,
    generation: string | undefined,
    preprocessor: string | undefined,
    ggml: Uint8Array | undefined,
  ): string;
  /** Gives JSON. */
  hearWindow(feeds: WireValue[], samples: number, wanted: string, stopped: (() => boolean) | undefined): Promise<string>;
  nextWindow(samples: Float32Array, times: boolean): number;
  /** Gives variables their first values. */
  reset(): void;
  saveCache(): Uint8Array;
  abort(): void;
  free(): void;
}
