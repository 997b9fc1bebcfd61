import { absolute } from './fetch.js';

/** What helps where a file of the package was not found. */
export const MISPLACED =
  "the package looks for its files (worker.*.js, kilim.*.wasm) beside its modules. Where a bundler moves these, run `npx kilim copy public/kilim` and load with `assets: '/kilim/'`";

/**
 * The address of a folder with the package's files, with a slash at its end.
 * @throws KilimError `IO` where it is none.
 */
export function folderOf(assets: string | URL): string {
  const url = absolute(assets);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url.href;
}

/** The address of a file of the package: in the folder of the option `assets`, without it `beside` the module. */
export const addressOf = (name: string, beside: () => URL, assets: string | URL | undefined): string =>
  (assets === undefined ? beside() : new URL(/* webpackIgnore: true */ name, folderOf(assets))).href;
