import type { Places } from './parts.js';

// Bundlers find the parts by exactly this form.
export const places: Places = {
  gpu: () => new URL('./kilim.threads.gpu.wasm', import.meta.url),
  shaders: () => new URL('./kilim.threads.shaders.wasm', import.meta.url),
  tflite: () => new URL('./kilim.threads.tflite.wasm', import.meta.url),
  ncnn: () => new URL('./kilim.threads.ncnn.wasm', import.meta.url),
  mnn: () => new URL('./kilim.threads.mnn.wasm', import.meta.url),
  tengine: () => new URL('./kilim.threads.tengine.wasm', import.meta.url),
  tnn: () => new URL('./kilim.threads.tnn.wasm', import.meta.url),
  pnnx: () => new URL('./kilim.threads.pnnx.wasm', import.meta.url),
  gguf: () => new URL('./kilim.threads.gguf.wasm', import.meta.url),
  language: () => new URL('./kilim.threads.language.wasm', import.meta.url),
  text: () => new URL('./kilim.threads.text.wasm', import.meta.url),
  speech: () => new URL('./kilim.threads.speech.wasm', import.meta.url),
  quantized: () => new URL('./kilim.threads.quantized.wasm', import.meta.url),
  more: () => new URL('./kilim.threads.more.wasm', import.meta.url),
  rest: () => new URL('./kilim.threads.rest.wasm', import.meta.url),
  seldom: () => new URL('./kilim.threads.seldom.wasm', import.meta.url),
  several: () => new URL('./kilim.threads.several.wasm', import.meta.url),
};
