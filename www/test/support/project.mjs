// Projects that use the package as it is installed from what `npm pack` makes.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, before } from 'node:test';
import { promisify } from 'node:util';
import { launch, open, repository, www } from './browser.mjs';

const execute = promisify(execFile);
const shell = process.platform === 'win32';

/** Runs a program in a project and gives what it wrote. What goes wrong says how the program ended, before all that it wrote. */
export async function run(project, program, args, env = {}, options = {}) {
  const running = execute(program, args, { cwd: project, env: { ...process.env, ...env }, maxBuffer: 2 ** 24, ...options });
  const { stdout } = await running.catch((error) => {
    error.message = `${program} ended with ${error.signal ?? error.code}: ${error.stderr || error.stdout}`;
    throw error;
  });
  return stdout;
}

/** An application of the folder `examples`. */
export const example = (name) => join(repository, 'examples', name);

const npm = (project, ...args) => execute('npm', [...args, '--no-audit', '--no-fund'], { cwd: project, shell, maxBuffer: 2 ** 24 });

/**
 * A browser, and a folder for the projects of a file of tests. `install` makes a project of fixtures and examples: a copy of the folders,
 * the later over the earlier, with the package installed, and what their lock file names. `pages: false` is for tests without pages.
 */
export function projects({ pages = true } = {}) {
  const here = {};
  before(async () => {
    if (pages) here.browser = await launch();
    here.folder = mkdtempSync(join(tmpdir(), 'kilim-projects-'));
    const { stdout } = await execute('npm', ['pack', '--json', '--pack-destination', here.folder], { cwd: www, shell });
    const [packed] = Object.values(JSON.parse(stdout));
    here.tarball = join(here.folder, packed.filename);
  });
  after(async () => {
    await here.browser?.close();
    if (here.folder) rmSync(here.folder, { recursive: true, force: true });
  });
  here.install = async (...fixtures) => {
    const project = join(here.folder, basename(fixtures.at(-1)));
    const own = (path) => !['node_modules', 'dist', 'out', '.next', '.nuxt', '.output', '.svelte-kit'].includes(basename(path));
    for (const fixture of fixtures) cpSync(resolve(www, 'fixtures', fixture), project, { recursive: true, filter: own });
    const manifest = join(project, 'package.json');
    if (existsSync(join(project, 'package-lock.json'))) await npm(project, 'ci', '--prefer-offline');
    else if (!existsSync(manifest)) writeFileSync(manifest, JSON.stringify({ name: 'fixture', private: true, type: 'module' }));
    await npm(project, 'install', '--offline', '--no-save', here.tarball);
    return project;
  };
  /** What the page at `url` writes into its element `answer`, and what nobody caught in it. */
  here.answerAt = async (url) => {
    const { page, problems } = await open(here.browser, url);
    await page.waitForFunction(() => document.getElementById('answer')?.textContent, null, { timeout: 60_000 });
    const text = await page.locator('#answer').textContent();
    await page.close();
    return { text, problems };
  };
  /** What the page at `url` answers to the repository's picture of a digit. */
  here.digitAt = async (url, digit) => {
    const { page, problems } = await open(here.browser, url);
    await page.setInputFiles('#file', join(repository, 'assets', `digit-${digit}.png`));
    await page.waitForFunction(() => document.getElementById('answer').textContent, null, { timeout: 60_000 });
    const text = await page.locator('#answer').textContent();
    await page.close();
    return [text, ...problems].join('\n');
  };
  return here;
}
