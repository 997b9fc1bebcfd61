import type { Part } from './parts.js';
import { GGML_FILE, GGUF_FILE } from './whole-names.js';

/** Bytes where a file begins that tell what kind of model it is: in an ONNX file nodes, with the names that exporters give them. */
export const HEAD = 64 << 10;
const IN_ONNX: [RegExp, Part[]][] = [
  [/quantize|integer|qlinear|nbits/i, ['quantized']],
  // What models of language have in common with quantised ones is in the part of these.
  [/attention|layer_?norm|rms_?norm|rotary/i, ['language', 'quantized']],
];

/** Numbers of element types in TFLite's schema.fbs: uint8 and int8. */
const OF_EIGHT_BITS = [3, 9];

/** Layers of ncnn networks, as a `.param` names them, that are in other parts. */
const IN_NCNN: [RegExp, Part[]][] = [
  [/ 8=[1-9]|quantize/i, ['quantized']],
  [/attention|sdpa|layernorm|rmsnorm|rotary/i, ['language', 'quantized']],
];
/** Layers of TNN networks, as a `.tnnproto` names them, that are in other parts. */
const IN_TNN: [RegExp, Part[]][] = [[/layernorm/i, ['language', 'quantized']]];
/** Operators of PNNX networks, as a `.pnnx.param` names them, that are in other parts. */
const IN_PNNX: [RegExp, Part[]][] = [[/attention|norm\b/i, ['language', 'quantized']]];
/**
 * What PNNX networks begin with: the number of ncnn's, and an operator with a dot in its name. Their weights are a zip archive, which few
 * models are.
 */
const PNNX = /^7767517\s+\d+\s+\d+\s+\w+(\.|::)/;
const OF_PNNX: Part[] = ['pnnx', 'seldom'];
/** What ncnn networks begin with, in digits and in words. */
const NCNN = ['7767517', '\xdd\x85v\0'];
/** The first line of TNN networks, of any version, and the versions that Tengine networks begin with. */
const TNN = /^\s*"1 \d+ 1 42066\d{5}\b/;
const TENGINE = '\x02\0\0\0\0\0';

/** What GGUF files need: they are decoders, most of them with packed weights. */
const OF_GGUF: Part[] = ['gguf', 'language', 'quantized'];

/** What Whisper files of whisper.cpp need, whose matrices are packed as those of GGUF files, and their first letters. */
const OF_GGML: Part[] = [...OF_GGUF, 'seldom'];
const GGML = 'lmgg';

/** What archives begin with: those that are read are packages of onert. */
const ARCHIVE = 'PK\x03\x04';

/** What models of transformers need, whose settings stand for them: decoders with plain weights. */
const OF_SETTINGS: Part[] = ['gguf', 'language'];
const SETTINGS = /^\s*\{[\s\S]*"model_type"/;

/** The parts that a file's address or name shows to be needed. */
export function partsOfName(name: string): Part[] {
  if (/\.pnnx\.param($|[?#])/i.test(name)) return OF_PNNX;
  if (/\.param(\.bin)?($|[?#])/i.test(name)) return ['ncnn'];
  if (/\.mnn($|[?#])/i.test(name)) return ['mnn'];
  if (/\.tnnproto($|[?#])/i.test(name)) return ['tnn'];
  if (/\.tmfile($|[?#])/i.test(name)) return ['tengine'];
  if (GGUF_FILE.test(name)) return OF_GGUF;
  if (GGML_FILE.test(name)) return OF_GGML;
  return /\.(tflite|circle)($|[?#])/i.test(name) ? ['tflite'] : [];
}

/**
 * The parts that a file shows to be needed: a guess from a glance at it. They come while the model is being read; what was not guessed
 * is fetched when the core calls for it.
 */
export function partsIn(bytes: Uint8Array): Part[] {
  const magic = String.fromCharCode(...bytes.subarray(4, 8));
  if (magic === 'TFL3' || magic === 'CIR0') return hasNumbersOfEightBits(bytes) ? ['tflite', 'quantized'] : ['tflite'];
  if (isNet(bytes, magic)) return ['mnn'];
  const nodes = new TextDecoder('latin1').decode(bytes.slice(0, HEAD));
  const found = (of: [RegExp, Part[]][]): Part[] => of.flatMap(([words, parts]) => (words.test(nodes) ? parts : []));
  if (nodes.startsWith('GGUF')) return OF_GGUF;
  if (nodes.startsWith(GGML)) return OF_GGML;
  if (nodes.startsWith(ARCHIVE)) return ['tflite', 'seldom'];
  if (SETTINGS.test(nodes)) return OF_SETTINGS;
  if (PNNX.test(nodes)) return [...new Set<Part>([...OF_PNNX, ...found(IN_PNNX)])];
  if (NCNN.some((begin) => nodes.startsWith(begin))) return [...new Set<Part>(['ncnn', ...found(IN_NCNN)])];
  if (TNN.test(nodes)) return [...new Set<Part>(['tnn', ...found(IN_TNN)])];
  if (nodes.startsWith(TENGINE)) return ['tengine'];
  return [...new Set(found(IN_ONNX))];
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
