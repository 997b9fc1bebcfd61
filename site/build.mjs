// Writes the documentation site into the folder that is given, and looks whether its links lead somewhere.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application, LogLevel } from 'typedoc';
import { broken } from './links.mjs';
import { SECTIONS, misplaced } from './pages.mjs';
import { addressOf, page, render } from './render.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const www = join(root, 'www');
const out = resolve(process.argv[2] ?? join(root, 'target', 'site'));
const API = 'api/index.html';

function put(address, text) {
  const file = join(out, address);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The package's types, with what stands above each export. */
async function api(version) {
  const entries = ['index', 'text', 'speech', 'sound', 'pictures', 'cache', 'isolation', 'ort'];
  const app = await Application.bootstrapWithPlugins({
    entryPoints: entries.map((name) => join(www, 'package', 'src', `${name}.ts`)),
    tsconfig: join(www, 'package', 'tsconfig.json'),
    name: `Kilim ${version}`,
    readme: 'none',
    disableSources: true,
    excludeInternal: true,
    excludePrivate: true,
    githubPages: false,
    navigationLinks: { Documents: '../index.html' },
    // The test of the package's types is a test of its own, with the compiler that builds it.
    skipErrorChecking: true,
    logLevel: LogLevel.Error,
  });
  const project = await app.convert();
  if (!project) throw new Error('typedoc made nothing of the package');
  for (const module of project.children ?? []) module.name = module.name === 'index' ? 'kilim' : `kilim/${module.name}`;
  await app.generateDocs(project, join(out, 'api'));
}

const { version, repository } = JSON.parse(readFileSync(join(www, 'package.json'), 'utf8'));
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n');
const lost = misplaced(files);
if (lost.length > 0) throw new Error(lost.join('\n'));

rmSync(out, { recursive: true, force: true });
const site = { repository: repository.url.replace(/^git\+/, '').replace(/\.git$/, ''), files, assets: new Set() };
const documents = SECTIONS.flatMap(({ pages }) => pages);
const rendered = new Map(documents.map((document) => [document, render(document, readFileSync(join(root, document), 'utf8'), site)]));
const places = SECTIONS.map(({ title, pages }) => ({
  title,
  pages: pages.map((document) => ({ address: addressOf(document), title: rendered.get(document).title })),
}));
places[0].pages.push({ address: API, title: 'Types of the package' });
for (const [document, made] of rendered) put(addressOf(document), page(addressOf(document), made, places));
const search = [...rendered].flatMap(([document, { title, found }]) =>
  found.map(({ id, text }, i) => ({ address: i === 0 ? addressOf(document) : `${addressOf(document)}#${id}`, page: title, text })),
);
put('search.json', JSON.stringify(search));
for (const name of ['style.css', 'search.js']) put(name, readFileSync(new URL(name, import.meta.url)));
for (const asset of site.assets) {
  mkdirSync(dirname(join(out, asset)), { recursive: true });
  copyFileSync(join(root, asset), join(out, asset));
}
await api(version);

const { looked, wrong } = broken(out);
if (wrong.length > 0) throw new Error(`${wrong.length} of ${looked} links lead nowhere:\n${wrong.join('\n')}`);
console.log(`${documents.length} documents and the types of the package; ${looked} links lead somewhere`);
