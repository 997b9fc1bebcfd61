import type { Glue } from './glue.js';

declare const init: Glue['default'];
export default init;
export declare const WasmFile: Glue['WasmFile'];
export declare const WasmSession: Glue['WasmSession'];
export declare const calibrate: Glue['calibrate'];
