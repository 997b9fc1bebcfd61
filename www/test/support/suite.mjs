// Runs cases in the page with one build of the package: those of a folder that is laid out like the ONNX suite, and random graphs.
import { differs, differsFrom, integersOf, nameOf, readTensor, readValue } from './values.mjs';

const JUDGED = new Set(['float64', 'float32', 'float16', 'bfloat16']);

async function read(path) {
  const response = await fetch(path);
  return response.ok ? new Uint8Array(await response.arrayBuffer()) : undefined;
}

/** The form of an output's file, of its type in the index: `float32`, `seq(float32)`, `optional(seq(float32))`. */
const formOf = (type) => ({ kind: type.includes('seq(') ? 'sequence' : 'tensor', optional: type.startsWith('optional(') });

async function runCase(kilim, root, entry, bfloat16, options, integers) {
  const folder = `${root}/${entry.path}`;
  const externalData = {};
  for (const name of entry.beside ?? []) externalData[name] = await read(`${folder}/${name}`);
  const session = await kilim.load(await read(`${folder}/${entry.model ?? 'model.onnx'}`), { ...options, externalData });
  try {
    for (let set = 0; set < entry.data_sets; set++) {
      const data = `${folder}/test_data_set_${set}`;
      const feeds = {};
      for (const [i, port] of session.inputs.entries()) {
        const bytes = await read(`${data}/input_${i}.pb`);
        if (bytes) feeds[port.name] = readValue(kilim.Tensor, bytes, port);
      }
      const given = await session.run(feeds);
      if (entry.nondeterministic) continue;
      integers.push(integersOf(Object.values(given)));
      for (const [i, port] of session.outputs.entries()) {
        const form = entry.outputs ? formOf(entry.outputs[i].type) : port;
        const want = readValue(kilim.Tensor, await read(`${data}/output_${i}.pb`), form);
        const rtol = want?.type === 'bfloat16' ? Math.max(bfloat16, entry.rtol) : entry.rtol;
        const wrong = differs(given[port.name], want, { rtol, atol: entry.atol });
        if (wrong) return `\`${port.name}\`: ${wrong}`;
      }
    }
  } finally {
    session.close();
  }
  return undefined;
}

/** How many cases of each kind in `root`'s index passed, what is wrong with the others, and the integers that all gave. */
export async function runSuite(kilim, root, options) {
  const index = await (await fetch(`${root}/index.json`)).json();
  const [wrong, kinds, integers] = [[], {}, {}];
  for (const entry of index.cases) {
    const given = (integers[entry.name] = []);
    const why = await runCase(kilim, root, entry, index.bfloat16_rtol, options, given).catch((error) => `${error.code}: ${error.message}`);
    if (why) wrong.push({ name: entry.name, why });
    else kinds[entry.kind] = (kinds[entry.kind] ?? 0) + 1;
  }
  return { kinds, wrong, integers };
}

/** The parts of a file of tools/fuzz, each after its length. */
function parts(file) {
  const [view, list] = [new DataView(file.buffer), []];
  for (let at = 0; at < file.length; ) {
    const length = view.getUint32(at, true);
    list.push(file.slice(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return list;
}

async function runGraph(kilim, { inputs, model, wants }, options) {
  const session = await kilim.load(model, options);
  try {
    const feeds = Object.fromEntries(session.inputs.map(({ name }) => [name, inputs.get(name)]));
    for (let run = 0; run < 2; run++) {
      const given = Object.values(await session.run(feeds));
      const wrong = wants.map(({ type, tensor, slack }, i) => differsFrom(given[i], type, tensor, slack)).find(Boolean);
      if (wrong) return wrong;
    }
  } finally {
    session.close();
  }
  return undefined;
}

/** Runs the random graphs in a file, as `runSuite` runs cases. */
export async function runGraphs(kilim, path, options) {
  const [list, wrong] = [parts(await read(path)), []];
  const text = new TextDecoder();
  let passed = 0;
  while (list.length > 0) {
    const header = JSON.parse(text.decode(list.shift()));
    const model = list.shift();
    const inputs = new Map(
      Array.from({ length: header.inputs }, () => {
        const bytes = list.shift();
        return [nameOf(bytes), readTensor(kilim.Tensor, bytes)];
      }),
    );
    const wants = header.outputs.map((type) => {
      const tensor = readTensor(kilim.Tensor, list.shift());
      return { type, tensor, slack: JUDGED.has(type) ? new Float64Array(list.shift().buffer) : undefined };
    });
    const why = await runGraph(kilim, { inputs, model, wants }, options).catch((error) => `${error.code}: ${error.message}`);
    if (why && !/^(UNSUPPORTED|NO_BACKEND)/.test(why)) wrong.push({ name: header.name, why });
    else passed += Number(!why);
  }
  return { passed, wrong };
}
