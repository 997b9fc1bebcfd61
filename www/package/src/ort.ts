/**
 * The interface of onnxruntime-web, computed by Kilim. Where code imports `onnxruntime-web`, this module can stand in its place.
 *
 *     import { InferenceSession, Tensor } from 'kilim/ort';
 *
 *     const session = await InferenceSession.create('model.onnx', { executionProviders: ['webgpu'] });
 *     const { scores } = await session.run({ image: new Tensor('float32', pixels, [1, 3, 224, 224]) });
 */
import * as ort from 'onnxruntime-common';
import { BACKENDS, backend } from './ort/backend.js';
import { offerDevice } from './ort/page.js';

// `env.versions.web` stays unset: transformers.js takes it as the version of files to fetch from a server of packages.
for (const [name, priority] of BACKENDS) ort.registerBackend(name, backend, priority);
offerDevice();

export * from 'onnxruntime-common';
export default ort;
