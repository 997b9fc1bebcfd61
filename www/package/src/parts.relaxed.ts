import type { Places } from './parts.js';

// Bundlers find the parts by exactly this form.
export const places: Places = {
  gpu: () => new URL('./kilim.relaxed.gpu.wasm', import.meta.url),
  shaders: () => new URL('./kilim.relaxed.shaders.wasm', import.meta.url),
  tflite: () => new URL('./kilim.relaxed.tflite.wasm', import.meta.url),
  ncnn: () => new URL('./kilim.relaxed.ncnn.wasm', import.meta.url),
  mnn: () => new URL('./kilim.relaxed.mnn.wasm', import.meta.url),
  tengine: () => new URL('./kilim.relaxed.tengine.wasm', import.meta.url),
  tnn: () => new URL('./kilim.relaxed.tnn.wasm', import.meta.url),
  pnnx: () => new URL('./kilim.relaxed.pnnx.wasm', import.meta.url),
  gguf: () => new URL('./kilim.relaxed.gguf.wasm', import.meta.url),
  language: () => new URL('./kilim.relaxed.language.wasm', import.meta.url),
  text: () => new URL('./kilim.relaxed.text.wasm', import.meta.url),
  speech: () => new URL('./kilim.relaxed.speech.wasm', import.meta.url),
  quantized: () => new URL('./kilim.relaxed.quantized.wasm', import.meta.url),
  more: () => new URL('./kilim.relaxed.more.wasm', import.meta.url),
  rest: () => new URL('./kilim.relaxed.rest.wasm', import.meta.url),
  seldom: () => new URL('./kilim.relaxed.seldom.wasm', import.meta.url),
  several: () => new URL('./kilim.relaxed.several.wasm', import.meta.url),
};
