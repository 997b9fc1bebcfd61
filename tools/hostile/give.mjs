// Gives files to the package, in Node or in a page. A file ends in a result or a KilimError that is no trap, in time.

/** As native.py has them. */
const BYTES = 2 ** 28;
const LIMITS = {
  strict: true,
  loadSeconds: 2,
  runSeconds: 2,
  tensorBytes: BYTES,
  weightBytes: BYTES,
  intermediateBytes: BYTES,
  outputBytes: BYTES,
};

/** After so long a file hangs, and the next is taken. */
const PATIENCE = 15_000;

/** Node has none: there a file that hangs holds up the program, and the last name that it printed is that of a file before. */
const worker = typeof Worker !== 'undefined';

/** Sizes that the model leaves open. */
const OPEN = 2;

function feedsOf(kilim, inputs) {
  const given = inputs.filter(({ optional, kind }) => !optional && kind === 'tensor');
  return Object.fromEntries(
    given.map(({ name, type, dims }) => [
      name,
      new kilim.Tensor(
        type ?? 'float32',
        (dims ?? [OPEN]).map((dim) => (typeof dim === 'number' ? dim : OPEN)),
      ),
    ]),
  );
}

async function give(kilim, bytes) {
  let session;
  try {
    session = await kilim.load(bytes, { backends: ['cpu'], worker, limits: LIMITS });
    await session.run(feedsOf(kilim, session.inputs));
    return 'a result';
  } catch (error) {
    if (!(error instanceof kilim.KilimError)) return `failed: ${error}`;
    return error.code === 'INTERNAL' ? `failed: ${error.message}` : error.code;
  } finally {
    session?.close();
  }
}

/** What became of each file, and the milliseconds that it took. */
export async function giveEach(kilim, names, read) {
  const ended = [];
  for (const name of names) {
    const bytes = await read(name);
    const began = performance.now();
    let timer;
    const patience = new Promise((resolve) => {
      timer = setTimeout(resolve, PATIENCE, 'failed: it hangs');
    });
    const outcome = await Promise.race([give(kilim, bytes), patience]);
    clearTimeout(timer);
    ended.push({ name, outcome, milliseconds: performance.now() - began });
  }
  return ended;
}
