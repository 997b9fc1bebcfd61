// A session's worker in Node, of the build that it is started with.
import { workerData } from 'node:worker_threads';
import type { Variant } from '../detect.js';
import { scriptOf } from '../builds.js';
import { PARTS_OF } from '../places.js';
import { serve } from '../serve.js';

// wgpu asks for WebGPU only where a scope of browsers has its name; a thread of Deno has WebGPU and no such name.
(globalThis as { WorkerGlobalScope?: unknown }).WorkerGlobalScope ??= Object;

const build = workerData as Variant;
const { createGlue } = await scriptOf(build);
serve(createGlue, PARTS_OF[build]);
