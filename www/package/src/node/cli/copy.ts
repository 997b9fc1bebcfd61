import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the package's files: this one, once it is built. */
export const PACKAGE = fileURLToPath(new URL('.', import.meta.url));

/** What sessions of pages fetch beside the modules. The runtime in one file is for those who name it by `wasm`. */
const FETCHED = /^(worker\.\w+\.js|(backend|webnn|importer|painter)\.js|kilim\..*(?<!\.whole)\.wasm)$/;

/** Copies files of the package, and gives their bytes together. */
export async function copyFiles(names: readonly string[], to: string): Promise<number> {
  await mkdir(to, { recursive: true });
  let bytes = 0;
  for (const name of names) {
    await copyFile(join(PACKAGE, name), join(to, name));
    bytes += (await stat(join(PACKAGE, name))).size;
  }
  return bytes;
}

/** Puts all that sessions may fetch into a folder; a page takes a part of it. */
export async function copy(to: string): Promise<string> {
  const names = (await readdir(PACKAGE)).filter((name) => FETCHED.test(name));
  const bytes = await copyFiles(names, to);
  return `${names.length} files, ${(bytes / 1e6).toFixed(1)} MB, are in ${to}; a page fetches those that its browser and its models need`;
}
