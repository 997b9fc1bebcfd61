import type { Decoders } from './pictures.js';

declare const init: (options: { module_or_path?: unknown }) => Promise<unknown>;
export default init;
export declare const size: Decoders['size'];
export declare const decode: Decoders['decode'];
