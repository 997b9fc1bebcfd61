// The package's program: `npx kilim COMMAND`.
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { KilimError } from '../errors.js';
import { bundle } from './cli/bundle.js';
import { copy } from './cli/copy.js';
import { isolation } from './cli/isolation.js';
import { types } from './cli/types.js';

interface Command {
  /** What stands behind the command's name. */
  usage: string;
  about: string;
  options?: ParseArgsConfig['options'];
  /** Gives what is printed. */
  run(positionals: string[], values: Record<string, string | undefined>): Promise<string>;
}

const text = { type: 'string' } as const;

const COMMANDS: Record<string, Command> = {
  bundle: {
    usage: 'MODEL… --out DIR [--builds relaxed,simd] [--backends cpu] [--dims N=1] [--importer FILE.mjs]',
    about: 'puts only those files there that pages with these models fetch, and says why each is needed',
    options: { out: text, builds: text, backends: text, dims: text, importer: text },
    run: (models, { out, ...how }) => {
      if (models.length === 0 || out === undefined) throw wrongUse('bundle');
      return bundle(models, out, how);
    },
  },
  copy: {
    usage: 'DIR',
    about: "puts the files there that sessions fetch, for the option `assets: '/DIR/'`",
    run: ([to, ...more]) => {
      if (to === undefined || more.length > 0) throw wrongUse('copy');
      return copy(to);
    },
  },
  isolation: {
    usage: 'DIR',
    about: 'puts the service worker there that isolates the pages of DIR and below, for `isolate` of `kilim/isolation`',
    run: ([to, ...more]) => {
      if (to === undefined || more.length > 0) throw wrongUse('isolation');
      return isolation(to);
    },
  },
  types: {
    usage: 'MODEL… [--out DIR] [--importer FILE.mjs]',
    about: 'writes the types of inputs and outputs, for `load<Model>(…)`, into modules beside the models or into DIR',
    options: { out: text, importer: text },
    run: (models, { out, importer }) => {
      if (models.length === 0) throw wrongUse('types');
      return types(models, out, importer);
    },
  },
};

function usageOf(name: string): string {
  return `npx kilim ${name} ${COMMANDS[name]?.usage}`;
}

function wrongUse(name: string): KilimError {
  return new KilimError('INVALID_VALUE', `${name} is not called so`, { expected: usageOf(name) });
}

function help(): string {
  return Object.entries(COMMANDS)
    .map(([name, { about }]) => `${usageOf(name)}\n    ${about}`)
    .join('\n');
}

async function main([name, ...args]: string[]): Promise<string> {
  if (name === undefined || name === 'help' || name === '--help') return help();
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new KilimError('INVALID_VALUE', `there is no command \`${name}\``, { expected: Object.keys(COMMANDS).join(', ') });
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options: command.options ?? {} });
  return command.run(positionals, values as Record<string, string | undefined>);
}

try {
  console.log(await main(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
