import { openHub } from '../index.js';
import type { HubOptions, LoadOptions } from '../index.js';
import type { Folder } from '../text/folder.js';
import { isWhole } from '../whole-names.js';

/** A repository of a hub, or a folder in it. Of the address of a file that is a whole model it is the folder that the file is in. */
export async function hubFolder(address: string, { revision, token, hub, cache, signal, onProgress }: LoadOptions): Promise<Folder> {
  const [owner, name = '', ...path] = address.replace(/\/+$/, '').split('/');
  const hubbed = await openHub(`${owner}/${name}`, { revision, token, hub, cache, signal } as HubOptions);
  if (isWhole(path.at(-1) ?? '')) path.pop();
  const folder = path.map((part) => `${part}/`).join('');
  const paths = hubbed.paths.filter((file) => file.startsWith(folder)).map((file) => file.slice(folder.length));
  const read = (file: string) =>
    hubbed.read(folder + file, (loaded, total) => isWhole(file) && onProgress?.({ phase: 'download', loaded, total }));
  return {
    paths,
    read,
    async find(file) {
      if (!paths.includes(file)) return undefined;
      // Words are in such a file itself, which is looked into before it is loaded.
      return isWhole(file) ? read(file) : `hf:${hubbed.name}/${folder}${file}`;
    },
  };
}
