// Firefox and Electron, where this machine has them. They are started as users start them, with a page that tells what it has seen; no driver is needed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { repository, www } from './support/folders.mjs';
import { serve } from './support/server.mjs';

/** Milliseconds until a program has to have told what it has seen. */
const PATIENCE = 90_000;

const ends = process.platform === 'win32' ? ['.exe', '.cmd'] : [''];

/** The program that an environment variable names, or the first of these names that is in PATH. */
function find(variable, ...names) {
  const given = process.env[variable];
  const folders = (process.env.PATH ?? '').split(delimiter);
  const all = given ? [given] : names.flatMap((name) => folders.flatMap((folder) => ends.map((end) => join(folder, name + end))));
  const path = all.find(existsSync);
  const why = given
    ? `there is no ${given}, which ${variable} names`
    : `PATH has no ${names.join(' and no ')}; ${variable} says where one is`;
  return path ? { path } : { why };
}

const dist = join(www, 'dist', 'kilim');
const firefox = find('FIREFOX', 'firefox', 'firefox-esr');
const electron = find('ELECTRON', 'electron');

/** What a program tells of the page and of other places, by the addresses that it asks for. `start` gives its arguments for a page and a folder of its own. */
async function told(path, start, places) {
  const server = await serve([
    ['/kilim/', dist],
    ['/assets/', join(repository, 'assets')],
    ['/', join(www, 'fixtures', 'programs')],
  ]);
  const own = mkdtempSync(join(tmpdir(), 'kilim-program-'));
  const program = spawn(path, start(`${server.url}/`, own), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, MOZ_HEADLESS: '1' },
  });
  const ended = new Promise((resolve) => program.once('close', resolve));
  let said = '';
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (chunk) => (said += chunk));
  program.once('error', (error) => (said += error));
  try {
    const answers = () => places.map((place) => server.asked.find((asked) => asked.startsWith(place))?.slice(place.length));
    for (const until = Date.now() + PATIENCE; answers().includes(undefined); await new Promise((resolve) => setTimeout(resolve, 100))) {
      assert.equal(program.exitCode, null, `the program ended: ${said.slice(-2000)}`);
      assert.ok(Date.now() < until, `nothing was told: ${said.slice(-2000)}`);
    }
    return answers().map((answer) => JSON.parse(answer));
  } finally {
    program.kill();
    await ended;
    rmSync(own, { recursive: true, force: true, maxRetries: 5 });
    await server.close();
  }
}

const PAGE = {
  workers: [
    [1, 10, 1000],
    [1, 10, 1000],
  ],
  picture: 390,
};

test('the package runs in Firefox', { skip: firefox.why ?? false, timeout: 120_000 }, async () => {
  const start = (url, profile) => {
    // A profile that is new opens pages of Firefox's own, and asks its makers for settings.
    const settings = {
      'browser.aboutwelcome.enabled': false,
      'datareporting.policy.dataSubmissionEnabled': false,
      'app.update.enabled': false,
    };
    const lines = Object.entries(settings).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${value});`);
    writeFileSync(join(profile, 'user.js'), lines.join('\n'));
    return ['--headless', '--no-remote', '--profile', profile, url];
  };
  assert.deepEqual(await told(firefox.path, start, ['/said/']), [PAGE]);
});

test('the package runs in Electron, in a window and in the main process', { skip: electron.why ?? false, timeout: 120_000 }, async () => {
  const program = join(www, 'fixtures', 'programs', 'electron.cjs');
  const start = (url, folder) => [
    program,
    '--no-sandbox',
    `--user-data-dir=${folder}`,
    url,
    dist,
    join(repository, 'assets', 'digits.onnx'),
  ];
  assert.deepEqual(await told(electron.path, start, ['/main/', '/said/']), [{ dims: [1, 10] }, PAGE]);
});
