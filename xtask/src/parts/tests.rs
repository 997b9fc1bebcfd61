use super::needs::KINDS;
use super::{Binary, PARTS, Profile, Split, counting, needs, owners};
use crate::sh;
use std::collections::HashSet;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, ImportSection, Instruction,
    MemorySection, MemoryType, Module, NameMap, NameSection, RefType, TableSection, TableType,
    TypeSection, ValType,
};
use wasmparser::Validator;

const NAMES: [&str; 6] = [
    "host",
    "start",
    "twice",
    "kilim_wgpu::far",
    "kilim_formats::tflite::near",
    "kilim_wgpu::inner",
];

/// `start(x)` calls `far`, `near` and, through the table, `twice` and `far`; `far` calls `inner`, which calls `twice` and the host.
fn binary() -> Vec<u8> {
    with_memory(false)
}

fn with_memory(shared: bool) -> Vec<u8> {
    use Instruction::{Call, CallIndirect, End, GlobalGet, I32Add, I32Const, I32Load8U, LocalGet};
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let mut imports = ImportSection::new();
    imports.import("env", "host", wasm_encoder::EntityType::Function(0));
    let mut functions = FunctionSection::new();
    for _ in 1..NAMES.len() {
        functions.function(0);
    }
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        minimum: 4,
        maximum: Some(4),
        table64: false,
        shared: false,
    });
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: shared.then_some(1),
        memory64: false,
        shared,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    let of = GlobalType {
        val_type: ValType::I32,
        mutable: true,
        shared: false,
    };
    globals.global(of, &ConstExpr::i32_const(100));
    let mut exports = ExportSection::new();
    exports.export("start", ExportKind::Func, 1);
    let mut elements = ElementSection::new();
    let listed = Elements::Functions(vec![2, 3, 5].into());
    elements.active(None, &ConstExpr::i32_const(1), listed);
    let mem = wasm_encoder::MemArg {
        offset: 33,
        align: 0,
        target: wasm_encoder::MemArgTarget::Memory(0),
        ordering: None,
    };
    let through = |slot| {
        [
            LocalGet(0),
            I32Const(slot),
            CallIndirect {
                type_index: 0,
                table_index: 0,
            },
        ]
    };
    let bodies: [Vec<Instruction<'_>>; 5] = [
        [
            vec![LocalGet(0), Call(3), LocalGet(0), Call(4), I32Add],
            through(1).to_vec(),
            vec![I32Add],
            through(2).to_vec(),
            vec![I32Add],
        ]
        .concat(),
        vec![LocalGet(0), LocalGet(0), I32Add, GlobalGet(0), I32Add],
        vec![LocalGet(0), Call(5), I32Const(1000), I32Load8U(mem), I32Add],
        vec![
            LocalGet(0),
            I32Const(7),
            I32Add,
            I32Const(0),
            I32Add,
            I32Const(0),
            I32Add,
            I32Const(0),
            I32Add,
        ],
        vec![LocalGet(0), Call(2), Call(0)],
    ];
    let mut code = CodeSection::new();
    for body in bodies {
        let mut function = Function::new([]);
        for instruction in body.iter().chain([&End]) {
            function.instruction(instruction);
        }
        code.function(&function);
    }
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(1033), *b"*");
    let mut names = NameMap::new();
    NAMES
        .iter()
        .zip(0..)
        .for_each(|(name, i)| names.append(i, name));
    let mut section = NameSection::new();
    section.functions(&names);
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions);
    module.section(&tables).section(&memories).section(&globals);
    module.section(&exports).section(&elements).section(&code);
    module.section(&data).section(&section);
    module.finish()
}

/// Runs JavaScript in Node with the modules as the arrays `m0`, `m1` and so on.
pub(super) fn node(modules: &[Vec<u8>], script: &str) -> String {
    let given: String = modules
        .iter()
        .zip(0..)
        .map(|(bytes, i)| format!("const m{i} = new Uint8Array({bytes:?});\n"))
        .collect();
    sh::capture(sh::cmd("node").args(["-e", &format!("{given}{script}")])).expect("the script runs")
}

/// The number of the section of this kind among a module's.
pub(super) fn section_of(module: &[u8], kind: u8) -> u8 {
    let payloads = wasmparser::Parser::new(0).parse_all(module);
    let kinds = payloads.filter_map(|payload| Some(payload.unwrap().as_section()?.0));
    kinds.take_while(|found| *found != kind).count() as u8
}

const START: &str = "
const loaded = [];
const host = (x) => x * 10;
const whole = (bytes) => new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { host } }).exports.start(5);
const parts = (core, bytes) => {
  let exports;
  const load = (part) => () => { loaded.push(part); new WebAssembly.Instance(new WebAssembly.Module(bytes[part]), { core: exports }); };
  const kilim = Object.fromEntries(Object.keys(bytes).map((part) => [part, load(part)]));
  ({ exports } = new WebAssembly.Instance(new WebAssembly.Module(core), { env: { host }, kilim }));
  return [exports.start(5), exports.start(5)];
};
";

#[test]
fn a_split_binary_computes_what_it_did_and_loads_each_part_once() {
    let binary = Binary::read(binary()).unwrap();
    let mut owners = owners(&binary, &Profile::default());
    // Too small for parts by themselves.
    owners[3] = Some(0);
    owners[4] = Some(1);
    owners[5] = Some(0);
    let split = Split::new(&binary, PARTS, &owners, &[], HashSet::new());
    let mut modules = vec![binary.bytes.clone(), split.core().unwrap()];
    modules.extend((0..PARTS.len()).map(|part| split.part(part).unwrap()));
    for module in &modules {
        Validator::new().validate_all(module).unwrap();
    }
    let names: Vec<String> = PARTS
        .iter()
        .zip(2..)
        .map(|(part, i)| format!("{part}: m{i}"))
        .collect();
    let names = names.join(", ");
    let script =
        format!("{START} console.log(JSON.stringify([whole(m0), parts(m1, {{{names}}}), loaded]))");
    // (5 + 5 + 100) * 10 + 42 twice, 5 + 7, 5 + 5 + 100.
    let sum = 2 * 1142 + 12 + 110;
    let told = node(&modules, &script);
    assert_eq!(
        told.trim(),
        format!("[{sum},[{sum},{sum}],[\"gpu\",\"shaders\"]]")
    );
}

#[test]
fn a_binary_tells_whether_threads_share_its_memory() {
    for shared in [false, true] {
        let read = Binary::read(with_memory(shared)).unwrap();
        assert_eq!(read.shared, shared);
    }
}

#[test]
fn parts_of_another_split_do_not_fit() {
    let binary = Binary::read(binary()).unwrap();
    let mut other = vec![None; NAMES.len()];
    let one = Split::new(&binary, PARTS, &other, &[], HashSet::new())
        .core()
        .unwrap();
    other[5] = Some(0);
    let part = Split::new(&binary, PARTS, &other, &[], HashSet::new())
        .part(0)
        .unwrap();
    let script = "
        const kilim = new Proxy({}, { get: () => () => {} });
        const { exports } = new WebAssembly.Instance(new WebAssembly.Module(m0), { env: { host: (x) => x }, kilim });
        try { new WebAssembly.Instance(new WebAssembly.Module(m1), { core: exports }); console.log('it fits'); }
        catch (error) { console.log(error.name); }";
    assert_eq!(node(&[one, part], script).trim(), "LinkError");
}

/// The points of the functions' begins are all there are.
#[test]
fn a_counting_binary_tells_which_points_were_passed() {
    let binary = Binary::read(binary()).unwrap();
    let counting = counting(&binary).unwrap();
    Validator::new().validate_all(&counting).unwrap();
    let script = "
        const { exports } = new WebAssembly.Instance(new WebAssembly.Module(m0), { env: { host: (x) => x } });
        const passed = () => exports['passed 0'].value.toString(2);
        const before = passed();
        exports.start(1);
        console.log([before, passed()].join(';'));";
    assert_eq!(node(&[counting], script).trim(), "0;11111");
}

#[test]
fn what_runs_entered_decides() {
    let mut binary = Binary::read(binary()).unwrap();
    binary.sizes = vec![200; NAMES.len()];
    let owned = |binary: &Binary, runs: &str| {
        let part = |of: Option<usize>| of.map_or("core", |part| PARTS[part]);
        let owners = owners(binary, &Profile::read(runs).unwrap());
        owners.into_iter().map(part).collect::<Vec<_>>()
    };
    // What no run entered is by its module, and in no part what the host calls.
    let none = owned(&binary, "");
    assert_eq!(none[..2], ["core", "core"]);
    assert!(
        none[2].starts_with("rare") && none[4].starts_with("rare"),
        "{none:?}"
    );
    assert_ne!(none[2], none[4]);
    assert_eq!([none[3], none[5]], ["gpu"; 2]);
    assert_eq!(owned(&binary, "core 3\ngpu 3")[3], "core");
    assert_eq!(owned(&binary, "tflite 2\ncircle 2\ncore 3")[2], "tflite");
    assert_eq!(
        owned(&binary, "gpu 2\ngpu_tflite 2 3")[2..4],
        ["gpu", "shaders"]
    );
    let several = owned(&binary, "gpu 2\ntflite 2 3\nmnn 2 3");
    assert_eq!(several[2..4], ["common1", "common1"]);
    binary.sizes[2] = 4;
    assert_eq!(owned(&binary, "gpu 2")[2], "core");
}

#[test]
fn a_profile_is_a_line_for_each_run() {
    let profile = Profile::read("core 1 2\ngpu 2 7\n").unwrap();
    assert_eq!(profile.kinds(), ["core", "gpu"]);
    assert_eq!(
        [1, 2, 7].map(|point| profile.runs(point)),
        [&[0][..], &[0, 1], &[1]]
    );
    assert_eq!(
        [1, 2, 7].map(|point| profile.is_core(point)),
        [true, true, false]
    );
    assert!(Profile::read("core 1 x\n").is_none());
}

#[test]
fn a_kind_needs_what_half_of_its_runs_enter() {
    let profile = Profile::read("tnn 1\ntnn 1 2\ntnn 3\nmnn 2\n").unwrap();
    let told = needs(&profile, &[None, Some(0), Some(1), Some(1)]);
    assert!(told.contains("  tnn: ['gpu', 'shaders'],\n"), "{told}");
    assert!(told.contains("  mnn: ['shaders'],\n"), "{told}");
    assert!(told.contains("  text: [],\n"), "{told}");
}

/// The package names the parts in two places more, and the kinds in one.
#[test]
fn the_package_has_the_same_parts_and_kinds() {
    for (names, file) in [
        (PARTS, "www/package/src/parts.ts"),
        (PARTS, "www/scripts/build.mjs"),
        (KINDS, "www/package/src/parts.ts"),
    ] {
        let list: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let list = list.join(",");
        let text = std::fs::read_to_string(sh::root().join(file)).unwrap();
        // A long list stands on several lines.
        let text: String = text.split_whitespace().collect();
        assert!(
            ["]", ",]"]
                .iter()
                .any(|end| text.contains(&format!("[{list}{end}"))),
            "{file} does not list {list}"
        );
    }
}
