/** Files that have words and settings beside their weights, by their names or addresses: of llama.cpp, and Whisper models of whisper.cpp. */
export const GGUF_FILE: RegExp = /\.gguf($|[?#])/i;
export const GGML_FILE: RegExp = /(^|\/)ggml-[^/?#]*\.bin($|[?#])/i;

/** Whether a file of this name has all of its model. */
export const isWhole = (name: string): boolean => GGUF_FILE.test(name) || GGML_FILE.test(name);
