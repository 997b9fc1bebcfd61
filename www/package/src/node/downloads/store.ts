import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { About, Store } from '../../downloads/store.js';

/** The folder that `KILIM_CACHE` names, or `kilim` in the user's own for caches. */
const folder = (): string => process.env['KILIM_CACHE'] || join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'kilim');
const ABOUT = 'about.json';

/** The name of the file in its folder: a model's is told by how it ends. */
const fileOf = (root: string, { name }: About): string => join(root, `file-${name.replaceAll(/[^\w.-]/g, '_').slice(-100)}`);

async function aboutIn(root: string): Promise<(About & { key: string }) | undefined> {
  try {
    const about = JSON.parse(await readFile(join(root, ABOUT), 'utf8'));
    // What is not whole is as good as nothing.
    return (await stat(fileOf(root, about))).size === about.bytes ? about : undefined;
  } catch {
    return undefined;
  }
}

/** A folder for each key. */
export function openStore(): Store | undefined {
  const rootOf = (key: string): string => join(folder(), createHash('sha256').update(key).digest('hex'));
  return {
    async find(key) {
      const root = rootOf(key);
      const about = await aboutIn(root);
      return about && { about, source: { url: pathToFileURL(fileOf(root, about)).href } };
    },
    async put(key, about, bytes) {
      const made = join(folder(), randomUUID());
      try {
        await mkdir(made, { recursive: true });
        await writeFile(fileOf(made, about), bytes instanceof Blob ? bytes.stream() : bytes);
        await writeFile(join(made, ABOUT), JSON.stringify({ ...about, key }));
        await rm(rootOf(key), { recursive: true, force: true });
        await rename(made, rootOf(key));
      } catch (error) {
        await rm(made, { recursive: true, force: true });
        throw error;
      }
    },
    remove: (key) => rm(rootOf(key), { recursive: true, force: true }),
    async entries() {
      const names = await readdir(folder()).catch(() => []);
      const all = await Promise.all(names.map((name) => aboutIn(join(folder(), name))));
      return all.flatMap((about) => (about ? [[about.key, about] as [string, About]] : []));
    },
    persist: async () => true,
  };
}
