import type { Kind } from './parts.js';
import { GGML_FILE, GGUF_FILE } from './whole-names.js';

/** Bytes where a file begins that tell what kind of model it is: in an ONNX file nodes, with the names that exporters give them. */
export const HEAD = 64 << 10;
const IN_ONNX: [RegExp, Kind][] = [
  [/quantize|integer|qlinear|nbits/i, 'quantized'],
  [/attention|layer_?norm|rms_?norm|rotary/i, 'language'],
];

/** Numbers of element types in TFLite's schema.fbs: uint8 and int8. */
const OF_EIGHT_BITS = [3, 9];

/**
 * What PNNX networks begin with: the number of ncnn's, and an operator with a dot in its name. Their weights are a zip archive, which few
 * models are.
 */
const PNNX = /^7767517\s+\d+\s+\d+\s+\w+(\.|::)/;
/** What ncnn networks begin with, in digits and in words. */
const NCNN = ['7767517', '\xdd\x85v\0'];
/** The first line of TNN networks, of any version, and the versions that Tengine networks begin with. */
const TNN = /^\s*"1 \d+ 1 42066\d{5}\b/;
const TENGINE = '\x02\0\0\0\0\0';

/** What Whisper files of whisper.cpp begin with. */
const GGML = 'lmgg';

/** What archives begin with: those that are read are packages of onert. */
const ARCHIVE = 'PK\x03\x04';

/** The settings of a model of transformers, which stand for it. */
const SETTINGS = /^\s*\{[\s\S]*"model_type"/;

/** What models of a kind need beside on WebGPU. */
const ON_GPU: Partial<Record<Kind, Kind>> = {
  tflite: 'gpu_tflite',
  tflite_quantized: 'gpu_quantized',
  quantized: 'gpu_quantized',
  language: 'gpu_language',
  gguf: 'gpu_language',
  safetensors: 'gpu_language',
};

/** The kinds that models of these kinds are of, too, on WebGPU. */
export const onGpu = (kinds: readonly Kind[]): Kind[] => kinds.flatMap((kind) => ON_GPU[kind] ?? []);

/** The kinds that a file's address or name shows a model to be of. */
export function kindsOfName(name: string): Kind[] {
  if (/\.pnnx\.param($|[?#])/i.test(name)) return ['pnnx'];
  if (/\.param(\.bin)?($|[?#])/i.test(name)) return ['ncnn'];
  if (/\.mnn($|[?#])/i.test(name)) return ['mnn'];
  if (/\.tnnproto($|[?#])/i.test(name)) return ['tnn'];
  if (/\.tmfile($|[?#])/i.test(name)) return ['tengine'];
  if (GGUF_FILE.test(name)) return ['gguf'];
  if (GGML_FILE.test(name)) return ['ggml'];
  return /\.(tflite|circle)($|[?#])/i.test(name) ? ['tflite'] : [];
}

/**
 * The kinds that a file shows a model to be of: a guess from a glance at it. What they need comes while the model is being read; what was not
 * guessed is fetched when the core calls for it.
 */
export function kindsIn(bytes: Uint8Array): Kind[] {
  const magic = String.fromCharCode(...bytes.subarray(4, 8));
  if (magic === 'TFL3' || magic === 'CIR0') return hasNumbersOfEightBits(bytes) ? ['tflite_quantized'] : ['tflite'];
  if (isNet(bytes, magic)) return ['mnn'];
  const nodes = new TextDecoder('latin1').decode(bytes.slice(0, HEAD));
  if (nodes.startsWith('GGUF')) return ['gguf'];
  if (nodes.startsWith(GGML)) return ['ggml'];
  if (nodes.startsWith(ARCHIVE)) return ['nnpackage'];
  if (SETTINGS.test(nodes)) return ['safetensors'];
  if (PNNX.test(nodes)) return ['pnnx'];
  if (NCNN.some((begin) => nodes.startsWith(begin))) return ['ncnn'];
  if (TNN.test(nodes)) return ['tnn'];
  if (nodes.startsWith(TENGINE)) return ['tengine'];
  return IN_ONNX.flatMap(([words, kind]) => (words.test(nodes) ? kind : []));
}

/** Whether bytes begin as an MNN file does: a FlatBuffer without an identifier, whose first table is near. */
function isNet(bytes: Uint8Array, magic: string): boolean {
  if (bytes.length < 8 || /^\w{4}$/.test(magic)) return false;
  const root = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return root >= 8 && root < 256;
}

/** Whether a tensor of a TFLite file's main graph has numbers of eight bits. */
function hasNumbersOfEightBits(bytes: Uint8Array): boolean {
  const file = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const there = (at: number): number => at + file.getUint32(at, true);
  /** The place of a table's field; 0 where it is left out. */
  const field = (table: number, number: number): number => {
    const list = table - file.getInt32(table, true);
    const at = 4 + 2 * number;
    const offset = at < file.getUint16(list, true) ? file.getUint16(list + at, true) : 0;
    return offset && table + offset;
  };
  try {
    const graphs = there(field(there(0), 2));
    const tensors = there(field(there(graphs + 4), 0));
    const count = file.getUint32(tensors, true);
    for (let i = 0; i < count; i++) {
      const type = field(there(tensors + 4 + 4 * i), 1);
      if (type && OF_EIGHT_BITS.includes(file.getUint8(type))) return true;
    }
  } catch {
    // The runtime says what is wrong with the file.
  }
  return false;
}
