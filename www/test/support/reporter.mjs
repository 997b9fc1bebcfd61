// A line for each test, and the count in the form that `cargo xtask test` reads.
import { Transform } from 'node:stream';

const count = { passed: 0, failed: 0, skipped: 0 };

/** The first lines of an error that are of use. */
function explain(error) {
  const cause = error?.cause ?? error;
  return String(cause?.stack ?? cause)
    .split('\n')
    .slice(0, 12)
    .map((line) => `      ${line}`)
    .join('\n');
}

export default new Transform({
  writableObjectMode: true,
  transform({ type, data }, _encoding, done) {
    if (type === 'test:stdout' || type === 'test:stderr') return done(null, data.message);
    const ended = (type === 'test:pass' || type === 'test:fail') && data.details?.type !== 'suite';
    // A file is reported on only where it fails outside of its tests, in a hook for instance.
    const file = ended && data.file?.endsWith(data.name);
    if (!ended || (file && (type === 'test:pass' || data.details.error?.failureType === 'subtestsFailed'))) return done();
    const outcome = data.skip !== undefined ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    count[outcome] += 1;
    if (outcome === 'skipped')
      return done(null, `  skipped: ${data.name}: ${typeof data.skip === 'string' ? data.skip : 'no reason given'}\n`);
    const time = `${Math.round(data.details?.duration_ms ?? 0)} ms`;
    done(null, `  ${outcome.padEnd(8)}${data.name} (${time})\n${outcome === 'failed' ? `${explain(data.details.error)}\n` : ''}`);
  },
  flush(done) {
    done(null, `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  },
});
