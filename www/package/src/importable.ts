import { absolute } from './fetch.js';

/** The address of a module that another thread can import, until `release` is called. */
export interface Importable {
  href: string;
  release(): void;
}

/** A blob's address is of this page's origin, so that a worker may import it. */
export async function importable(module: string | URL | Blob): Promise<Importable> {
  if (!(module instanceof Blob)) return { href: absolute(module).href, release: () => undefined };
  const href = URL.createObjectURL(new Blob([module], { type: 'text/javascript' }));
  return { href, release: () => URL.revokeObjectURL(href) };
}
