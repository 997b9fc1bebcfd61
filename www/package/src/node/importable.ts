import { absolute } from '../fetch.js';
import type { Importable } from '../importable.js';

/** Node imports no `blob:` addresses: a blob's text becomes an address. */
export async function importable(module: string | URL | Blob): Promise<Importable> {
  const href = module instanceof Blob ? `data:text/javascript,${encodeURIComponent(await module.text())}` : absolute(module).href;
  return { href, release: () => undefined };
}
