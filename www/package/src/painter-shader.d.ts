/** `shaders/page/picture.wgsl` without its comments. */
export declare const SHADER: string;
