use super::{Moved, References, moved};
use crate::parts::tests::{node, section_of};
use crate::parts::{Binary, Layout, PARTS, Profile, Split, follow, hidden, without_relocations};
use std::collections::HashSet;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, CustomSection, DataSection, ElementSection, Elements,
    ExportKind, ExportSection, Function, FunctionSection, ImportSection, Instruction, MemArg,
    MemArgTarget, MemorySection, MemoryType, Module, NameMap, NameSection, RefType, TableSection,
    TableType, TypeSection, ValType,
};
use wasmparser::Validator;

/// Pieces of constants, each by its name, bytes from address 1024 on and words.
const CONSTANTS: [(&str, u8, &[u32]); 9] = [
    ("holds an address", 0, &[0, 1036]),
    ("read by the core", 8, &[5]),
    ("reached by that address", 12, &[37]),
    ("before a piece", 16, &[1]),
    ("spoken of by what is before it", 20, &[2]),
    ("in a constant of eight bytes", 24, &[3]),
    ("a path", 28, &[u32::from_le_bytes(*b"a.rs"), 0]),
    ("where a panic would be", 36, &[1052, 4, 1, 2]),
    ("knows a place in the table", 52, &[2]),
];
/// A variable, which the part alone uses.
const VARIABLE: u32 = 2048;

/// `start(x)` calls `far(x)`, which is to be a part's, and that calls `deep` through the table. `known` is whether `start` has the place of
/// `deep`, too.
fn linked(known: bool) -> Vec<u8> {
    use Instruction::{
        Block, Br, Call, CallIndirect, Drop, End, I32Add, I32Const, I32Load, I32Store, I64Const,
        LocalGet,
    };
    let at = |offset: u32| MemArg {
        offset: offset.into(),
        align: 2,
        target: MemArgTarget::Memory(0),
        ordering: None,
    };
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let mut imports = ImportSection::new();
    imports.import("env", "host", wasm_encoder::EntityType::Function(0));
    let mut functions = FunctionSection::new();
    for _ in 0..6 {
        functions.function(0);
    }
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        minimum: 3,
        maximum: Some(3),
        table64: false,
        shared: false,
    });
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export("start", ExportKind::Func, 1);
    exports.export("memory", ExportKind::Memory, 0);
    let mut elements = ElementSection::new();
    let listed = Elements::Functions(vec![2, 4].into());
    elements.active(None, &ConstExpr::i32_const(1), listed);
    let start = vec![
        I32Const(2),
        Drop,
        LocalGet(0),
        Call(2),
        I32Const(1032),
        I32Load(at(0)),
        I32Add,
        I32Const(1040),
        Drop,
        I64Const(7 << 32 | 1048),
        Drop,
        I32Const(1060),
        Drop,
        End,
    ];
    let far = vec![
        // All of them that nothing else keeps.
        I32Const(1044),
        Drop,
        I32Const(1048),
        Drop,
        I32Const(VARIABLE as i32),
        LocalGet(0),
        I32Store(at(0)),
        I32Const(4),
        I32Load(at(1024)),
        I32Load(at(0)),
        I32Const(VARIABLE as i32),
        I32Load(at(0)),
        I32Add,
        I32Const(1076),
        I32Load(at(0)),
        CallIndirect {
            type_index: 0,
            table_index: 0,
        },
        End,
    ];
    let deep = vec![LocalGet(0), Call(5), I32Const(100), I32Add, End];
    // Each calls the other, were it not that it ends before.
    let circle = |other| {
        vec![
            Block(BlockType::Empty),
            Br(0),
            LocalGet(0),
            Call(other),
            Drop,
            End,
            LocalGet(0),
            End,
        ]
    };
    let tells = vec![LocalGet(0), End];
    let mut code = CodeSection::new();
    for body in [start, far, tells, deep, circle(6), circle(5)] {
        let mut function = Function::new([]);
        body.iter().for_each(|instruction| {
            function.instruction(instruction);
        });
        code.function(&function);
    }
    let mut data = DataSection::new();
    let words = CONSTANTS.iter().flat_map(|(_, _, words)| *words);
    let bytes = words.flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.collect();
    data.active(0, &ConstExpr::i32_const(1024), bytes);
    data.active(0, &ConstExpr::i32_const(VARIABLE as i32), [9, 0, 0, 0]);
    let mut names = NameMap::new();
    names.append(1, "start");
    names.append(2, "kilim_wgpu::far");
    names.append(3, "std[1]::panicking::panic_with_hook");
    names.append(4, "kilim_wgpu::deep");
    names.append(5, "round");
    names.append(6, "and round");
    let mut section = NameSection::new();
    section.functions(&names);
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions);
    module.section(&tables).section(&memories).section(&exports);
    module.section(&elements).section(&code).section(&data);
    // https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md
    let named = |name: &str| [&[name.len() as u8], name.as_bytes()].concat();
    let segments = [".rodata", ".data"].map(|name| [named(name), vec![0, 0]].concat());
    let segments = [vec![2], segments.concat()].concat();
    let mut symbols = vec![CONSTANTS.len() as u8 + 1];
    for (name, offset, words) in CONSTANTS {
        let size = 4 * words.len() as u8;
        symbols.extend([&[1, 2][..], &named(name), &[0, offset, size]].concat());
    }
    symbols.extend([&[1, 2][..], &named("variable"), &[1, 0, 4]].concat());
    let linking = [
        &[2, 5, segments.len() as u8][..],
        &segments,
        &[8, symbols.len() as u8 | 0x80, (symbols.len() >> 7) as u8],
        &symbols,
    ];
    // Seven bytes before the first segment's own; addresses stand four bytes into the first piece, and at the begin of that of a panic.
    // The last piece is a place in the table.
    let data = section_of(&module.clone().finish(), 11);
    let in_data = [data, 3, 5, 7 + 4, 2, 0, 5, 7 + 36, 6, 0, 2, 7 + 52, 0];
    // `start` speaks of what is four bytes before the fifth piece.
    let code = section_of(&module.clone().finish(), 10);
    let mut in_code = vec![code, 1, 4, 23, 4, 0x7c];
    if known {
        in_code = vec![code, 2, 1, 4, 0, 4, 23, 4, 0x7c];
    }
    for (name, data) in [
        ("linking", linking.concat()),
        ("reloc.DATA", in_data.to_vec()),
        ("reloc.CODE", in_code),
    ] {
        module.section(&CustomSection {
            name: name.into(),
            data: data.into(),
        });
    }
    module.section(&section);
    module.finish()
}

#[test]
fn data_leaves_the_core_where_parts_alone_refer_to_it() {
    let linked = linked(false);
    let layout = Layout::read(&linked).unwrap();
    let binary = Binary::read(without_relocations(&linked).unwrap()).unwrap();
    let owners = [None, None, Some(0), Some(5), Some(0), Some(0), Some(0)];
    let moved = moved(
        &References::read(&binary, &layout).unwrap(),
        &layout,
        &owners,
    );
    let of = |place, part: usize| Moved {
        place,
        parts: [part].into(),
    };
    let others = [of(1052..1060, 5), of(1060..1076, 5), of(1076..1080, 0)];
    assert_eq!(moved[..2], [of(1024..1032, 0), of(1036..1040, 0)]);
    assert_eq!(moved[2..], others);

    let hidden = hidden(&binary, &layout, &owners, &moved);
    assert_eq!(hidden, HashSet::from([4]));
    let split = Split::new(&binary, PARTS, &owners, &moved, hidden);
    let modules = [
        binary.bytes.clone(),
        split.core().unwrap(),
        split.part(0).unwrap(),
    ];
    for module in &modules {
        Validator::new().validate_all(module).unwrap();
    }
    let script = "
        const run = (bytes, kilim) => new WebAssembly.Instance(new WebAssembly.Module(bytes), { kilim, env: { host: (x) => x } }).exports;
        const words = ({ memory }) => new Uint32Array(memory.buffer, 1024, 7).join(' ');
        let core, before;
        const gpu = () => { before = words(core); new WebAssembly.Instance(new WebAssembly.Module(m2), { core }); };
        core = run(m1, new Proxy({}, { get: () => gpu }));
        const whole = run(m0, {});
        console.log([whole.start(1), core.start(1), before, words(core) === words(whole)].join('; '));";
    assert_eq!(
        node(&modules, script).trim(),
        "143; 143; 0 0 5 0 1 2 3; true"
    );
}

/// Where others than a part's data have a function's place in the table, they may call it before the part is there.
#[test]
fn what_others_may_call_is_not_hidden() {
    let of = |known, shared, owners: [Option<usize>; 5]| {
        let owners = [&owners[..], &[Some(0); 2]].concat();
        let linked = linked(known);
        let layout = Layout::read(&linked).unwrap();
        let mut binary = Binary::read(without_relocations(&linked).unwrap()).unwrap();
        binary.shared = shared;
        let moved = moved(
            &References::read(&binary, &layout).unwrap(),
            &layout,
            &owners,
        );
        hidden(&binary, &layout, &owners, &moved)
    };
    let own = [None, None, Some(0), None, Some(0)];
    assert_eq!(of(false, false, own).len(), 1);
    let none = HashSet::new();
    // Code of the core knows the place.
    assert_eq!(of(true, false, own), none);
    // Data of the core, and of another part.
    assert_eq!(of(false, false, [None, None, None, None, Some(0)]), none);
    assert_eq!(of(false, false, [None, None, Some(1), None, Some(0)]), none);
    // Another thread, whose table has not the part.
    assert_eq!(of(false, true, own), none);
}

#[test]
fn a_small_function_goes_where_alone_it_may_be_called() {
    let of = |known| {
        let linked = linked(known);
        let layout = Layout::read(&linked).unwrap();
        let binary = Binary::read(without_relocations(&linked).unwrap()).unwrap();
        let mut owners = [None, None, Some(2), None, None, None, None];
        let moved = follow(&binary, &layout, &Profile::default(), &mut owners).unwrap();
        assert_eq!(
            moved,
            super::moved(
                &References::read(&binary, &layout).unwrap(),
                &layout,
                &owners
            )
        );
        owners
    };
    // Those that call each other go with it.
    let part = Some(2);
    assert_eq!(of(false), [None, None, part, None, part, part, part]);
    assert_eq!(of(true), [None, None, part, None, None, None, None]);
}

#[test]
fn a_linker_that_tells_nothing_is_refused() {
    let plain = without_relocations(&linked(false)).unwrap();
    assert!(Layout::read(&plain).is_err());
}
