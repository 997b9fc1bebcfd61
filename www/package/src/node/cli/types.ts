import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { moduleOf, typeNameOf } from '../../model-types.js';
import { listOf, openModel, useImporters } from './model.js';

/** Writes the types of each model into a module beside it, or into the folder `out`. */
export async function types(models: readonly string[], out: string | undefined, importer: string | undefined): Promise<string> {
  useImporters(listOf(importer, ''));
  const lines: string[] = [];
  for (const model of models) {
    const { engine, loaded } = await openModel(model);
    const file = join(out ?? join(model, '..'), `${basename(model).replace(/\.[^.]*$/, '')}.types.ts`);
    await writeFile(file, moduleOf(model, loaded.inputs, loaded.outputs));
    engine.close();
    lines.push(`${file}: \`load<${typeNameOf(model)}>\``);
  }
  return lines.join('\n');
}
