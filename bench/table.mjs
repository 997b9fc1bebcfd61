// Makes a Markdown table of a record, prints it, and with --write puts it between its markers in a document.
//   node bench/table.mjs target/bench/web.json [--write docs/bench.md]
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({ options: { write: { type: 'string' } }, allowPositionals: true });
const record = JSON.parse(readFileSync(positionals[0], 'utf8'));

const digits = (ms) => (ms < 10 ? 2 : ms < 100 ? 1 : 0);
/** The median, and in brackets the smallest and the largest. */
const time = ({ median, least, most }) =>
  `${median.toFixed(digits(median))} (${least.toFixed(digits(median))} to ${most.toFixed(digits(median))})`;
const megabytes = (bytes) => (bytes ? (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 0) : '–');

const ratio = (of) => (row, first) => (row === first ? '1' : (of(row).median / of(first).median).toFixed(2));

const COLUMNS =
  record.kind === 'decode'
    ? [
        ['model, words of the prompt', (row) => row.what],
        ['on', (row) => row.place],
        ['engine', (row) => row.engine],
        ['a word, ms', (row) => time(row.steady)],
        ['ratio', ratio((row) => row.steady)],
        ['prompt, ms', (row) => time(row.prompt)],
        ['ratio', ratio((row) => row.prompt)],
        ['load, ms', (row) => time(row.load)],
        ['ratio', ratio((row) => row.load)],
        ['memory, MB', (row) => megabytes(row.memory)],
      ]
    : [
        ['model', (row) => row.what],
        ['on', (row) => row.place],
        ['engine', (row) => row.engine],
        ['steady, ms', (row) => time(row.steady)],
        ['ratio', ratio((row) => row.steady)],
        ['load and first run, ms', (row) => time(row.loadAndFirst)],
        ['memory, MB', (row) => megabytes(row.memory)],
        ...(record.kind === 'web'
          ? [
              ['download, MB of brotli', (row) => megabytes(row.fetched.brotli)],
              ['difference', (row, first) => (row === first ? '–' : (row.difference?.toExponential(0) ?? 'other shapes or NaN'))],
            ]
          : []),
      ];

const HEAD = {
  web: ["Ratio and difference are to the model's first engine; the difference is the largest, in parts of the output's largest number."],
  decode: [
    'Samples are of ten words or more. Ratios are to the first engine. Memory is of a browser behind the prompt, less what it had before the load.',
  ],
  native: ["A sample is the median of one process; the ratio is to the model's first engine."],
};

function table() {
  const lines = [COLUMNS.map(([title]) => title), COLUMNS.map(() => '---')];
  for (const row of record.rows) {
    const first = record.rows.find(({ model, place, error }) => model === row.model && place === row.place && !error);
    // What an engine cannot run is told in its place.
    const cells = COLUMNS.map(([, cell], i) => (row.error && i > 2 ? (i === 3 ? `cannot: ${row.error}` : '') : cell(row, first)));
    lines.push(cells.map((cell) => cell.replaceAll('|', '\\|')));
  }
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const counted = {
  web: `${record.runs} samples and ${record.loads} loads`,
  decode: `all samples, and of ${record.loads} loads and prompts`,
  native: `${record.loads} processes of ${record.runs} runs or more`,
};
const { processor, cores, memory, system, load } = record.machine;
const versions = Object.entries(record.versions).map(([name, version]) => `${name} ${version}`);
const text = [
  `${record.date}, ${processor}, ${cores} cores, ${(memory / 2 ** 30).toFixed(0)} GiB, ${system}; on average ${load.toFixed(1)} programs wanted a core in the minute before.`,
  `${versions.join(', ')}.`,
  `Engines in turns; medians of ${counted[record.kind]}, in brackets the smallest and the largest.`,
  ...HEAD[record.kind],
  '',
  table(),
].join('\n');
console.log(text);

if (values.write) {
  const [begin, end] = ['begin', 'end'].map((edge) => `<!-- ${edge}: cargo xtask bench ${record.kind} --write -->`);
  const document = readFileSync(values.write, 'utf8');
  const [before, rest] = document.split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`${values.write} has no markers ${begin} and ${end}`);
  writeFileSync(values.write, `${before}${begin}\n${text}\n${end}${after}`);
}
