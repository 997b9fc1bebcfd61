import type { Places } from './parts.js';

// Bundlers find the parts by exactly this form.
export const places: Places = {
  gpu: () => new URL('./kilim.simd.gpu.wasm', import.meta.url),
  shaders: () => new URL('./kilim.simd.shaders.wasm', import.meta.url),
  tflite: () => new URL('./kilim.simd.tflite.wasm', import.meta.url),
  ncnn: () => new URL('./kilim.simd.ncnn.wasm', import.meta.url),
  mnn: () => new URL('./kilim.simd.mnn.wasm', import.meta.url),
  tengine: () => new URL('./kilim.simd.tengine.wasm', import.meta.url),
  tnn: () => new URL('./kilim.simd.tnn.wasm', import.meta.url),
  pnnx: () => new URL('./kilim.simd.pnnx.wasm', import.meta.url),
  gguf: () => new URL('./kilim.simd.gguf.wasm', import.meta.url),
  language: () => new URL('./kilim.simd.language.wasm', import.meta.url),
  text: () => new URL('./kilim.simd.text.wasm', import.meta.url),
  speech: () => new URL('./kilim.simd.speech.wasm', import.meta.url),
  quantized: () => new URL('./kilim.simd.quantized.wasm', import.meta.url),
  more: () => new URL('./kilim.simd.more.wasm', import.meta.url),
  rest: () => new URL('./kilim.simd.rest.wasm', import.meta.url),
  seldom: () => new URL('./kilim.simd.seldom.wasm', import.meta.url),
  several: () => new URL('./kilim.simd.several.wasm', import.meta.url),
};
