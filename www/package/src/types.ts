/**
 * The types of a model's inputs and outputs, as `npx kilim types` writes them.
 *
 *     const session = await load('digits.onnx');
 *     console.log(typeName('digits.onnx'), typesOf('digits.onnx', session));
 */
import { made } from './given.js';
import type { Port } from './index.js';
import { moduleOf, typeNameOf } from './model-types.js';

/**
 * The text of a TypeScript module that exports the interface for `load<Model>`.
 *
 *     const text = typesOf('digits.onnx', session);
 *
 * @throws KilimError `INVALID_VALUE` for what is no file's name or has no inputs and outputs.
 */
export function typesOf(model: string, { inputs, outputs }: { inputs: readonly Port[]; outputs: readonly Port[] }): string {
  return made('a model', () => moduleOf(model, inputs, outputs));
}

/**
 * The interface's name for a model file: `Digits` for `digits.onnx`.
 *
 *     const name = typeName('digits.onnx');
 *
 * @throws KilimError `INVALID_VALUE` for what is no text.
 */
export function typeName(model: string): string {
  return made('a name', () => typeNameOf(model));
}
