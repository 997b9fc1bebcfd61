// A build of the runtime that traps when it is told to.

/** `[value, the place after it]` of an unsigned LEB128 number. */
function number(bytes, at) {
  for (let value = 0, shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]);

/** The sections of a module: `[id, contents]`. */
function sections(bytes) {
  const list = [];
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at];
    const [size, start] = number(bytes, at + 1);
    list.push([id, bytes.subarray(start, start + size)]);
    at = start + size;
  }
  return list;
}

/** How many of the functions are imported: those have the first indices. */
const imported = (bytes) => WebAssembly.Module.imports(new WebAssembly.Module(bytes)).filter(({ kind }) => kind === 'function').length;

/** The indices of the exported functions by their names. */
function exported(contents) {
  let [count, at] = number(contents, 0);
  const found = {};
  for (; count > 0; count--) {
    let length, index;
    [length, at] = number(contents, at);
    const name = new TextDecoder().decode(contents.subarray(at, at + length));
    const kind = contents[at + length];
    [index, at] = number(contents, at + length + 1);
    if (kind === 0) found[name] = index;
  }
  return found;
}

/** The names of the exports that functions of wasm-bindgen's script call first, by how their definitions begin. */
const called = (script, begin) =>
  [...script.matchAll(new RegExp(`\\b${begin}\\([^)]*\\) \\{[^}]*?\\bwasm\\.(\\w+)\\(`, 'g'))].map(([, name]) => name);

/** The code section with instructions before the bodies of some functions, by their places in it. */
function prefixed(contents, prefixes) {
  let [count, at] = number(contents, 0);
  const parts = [Uint8Array.from(leb(count))];
  for (let function_ = 0; function_ < count; function_++) {
    let size, groups;
    [size, at] = number(contents, at);
    const end = at + size;
    let code = at;
    [groups, code] = number(contents, code);
    for (; groups > 0; groups--) {
      [, code] = number(contents, code);
      code += 1;
    }
    const prefix = prefixes.get(function_) ?? [];
    parts.push(
      Uint8Array.from(leb(size + prefix.length)),
      contents.subarray(at, code),
      Uint8Array.from(prefix),
      contents.subarray(code, end),
    );
    at = end;
  }
  return Buffer.concat(parts);
}

// A byte that nothing uses: the first kilobyte is the far end of the stack.
const CELL = 16;
const SET = [0x41, 0, 0x41, 1, 0x3a, 0, CELL]; // i32.const 0; i32.const 1; i32.store8
const TRAP_IF_SET = [0x41, 0, 0x2d, 0, CELL, 0x04, 0x40, 0x00, 0x0b]; // i32.load8_u; if; unreachable; end
const UNREACHABLE = [0x00];
const OUT_OF_BOUNDS = [0x41, 0x7f, 0x28, 2, 0, 0x1a]; // i32.const -1; i32.load; drop
const overflow = (index) => [0x20, 0, 0x10, ...leb(index), 0x1a, 0x1a]; // what it gives are two numbers

/**
 * The runtime's binary with its script, changed: after `profile` was called, whatever enters it from a microtask traps; `saveCache` traps at once, as
 * `how` says: `unreachable`, `bounds` or `stack`.
 */
export function trapping(bytes, script, how = 'unreachable') {
  const parts = sections(bytes);
  const functions = exported(parts.find(([id]) => id === 7)[1]);
  const first = imported(bytes);
  const prefixes = new Map();
  const prefix = (begin, code) => {
    const names = called(script, begin);
    if (names.length === 0) throw new Error(`the script has no function ${begin}`);
    for (const name of names) prefixes.set(functions[name] - first, code(functions[name]));
  };
  prefix('function wasm_bindgen__convert__closures\\w*', () => TRAP_IF_SET);
  prefix('profile', () => SET);
  prefix('saveCache', (index) => ({ unreachable: UNREACHABLE, bounds: OUT_OF_BOUNDS, stack: overflow(index) })[how]);
  const changed = parts.map(([id, contents]) => [id, id === 10 ? prefixed(contents, prefixes) : contents]);
  return Buffer.concat([
    bytes.subarray(0, 8),
    ...changed.flatMap(([id, contents]) => [Uint8Array.from([id, ...leb(contents.length)]), contents]),
  ]);
}
