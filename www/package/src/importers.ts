import { folderOf } from './assets.js';
import { describe } from './describe.js';
import { KilimError } from './errors.js';
import { importable } from './importable.js';
import type { Importable } from './importable.js';
import type { Brought } from './protocol.js';

/** The modules of importers that were registered, by the ids of their formats. */
const registered = new Map<string, string | URL | Blob>();

/**
 * Has sessions that are loaded from now on read another format, where none of Kilim's own knows a file. `module` is the address of a module whose
 * default export is a `PageImporter`, or a `Blob` of its text. It is imported where the runtime is, in the worker. One that was registered under
 * the id before is replaced.
 *
 *     registerImporter('mine', new URL('./mine.js', import.meta.url));
 *     const session = await load('model.mine');
 *
 * @throws KilimError `INVALID_VALUE` for what is no id, and for what is no address.
 */
export function registerImporter(id: string, module: string | URL | Blob): void {
  if (!/^[a-z][\w-]*$/i.test(id))
    throw new KilimError('INVALID_VALUE', 'a format of the page needs an id', {
      expected: 'letters, digits, `_` and `-`',
      got: describe(id),
    });
  if (typeof module !== 'string' && !(module instanceof URL) && !(module instanceof Blob))
    throw new KilimError('INVALID_VALUE', `the module of the importer \`${id}\` is none`, {
      expected: 'an address or a Blob',
      got: describe(module),
    });
  registered.set(id, module);
}

/** What a thread imports for the importers that are registered, until `release` is called; nothing where none is. */
export async function importersOf(assets: string | URL | undefined): Promise<(Brought & { release(): void }) | undefined> {
  if (registered.size === 0) return undefined;
  const own = new URL('./importer.js', import.meta.url);
  const by = assets === undefined ? own : new URL(/* webpackIgnore: true */ 'importer.js', folderOf(assets));
  const found = await Promise.all(
    [...registered].map(async ([id, module]): Promise<[string, Importable]> => [id, await importable(module)]),
  );
  return {
    by: by.href,
    modules: Object.fromEntries(found.map(([id, { href }]) => [id, href])),
    release: () => {
      for (const [, module] of found) module.release();
    },
  };
}
