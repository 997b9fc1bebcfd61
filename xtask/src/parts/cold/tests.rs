use crate::parts::tests::node;
use crate::parts::{Binary, Profile, counting, outline};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ElementSection, Elements, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, Instruction, Module, NameMap,
    NameSection, RefType, TableSection, TableType, TypeSection, ValType,
};
use wasmparser::Validator;

/// `f(x)`, whose paths part where `x` is 1 to 12.
fn binary() -> Vec<u8> {
    use Instruction::{
        Block, Br, BrIf, BrTable, End, I32Add, I32Const, I32Eq, I32LtS, I32Mul, I32Ne, I32Sub, If,
        LocalGet, LocalSet, LocalTee, Loop, Nop, Return, Unreachable,
    };
    const X: u32 = 0;
    const SUM: u32 = 1;
    const TURNS: u32 = 2;
    let none = BlockType::Empty;
    let long = vec![Nop; 70];
    let when = |x: i32| vec![LocalGet(X), I32Const(x), I32Eq, If(none)];
    let bodies = [
        vec![
            I32Const(5),
            LocalSet(SUM),
            Block(BlockType::Result(ValType::I32)),
            I32Const(1000),
            Block(none),
        ],
        // Goes on after itself, with another sum.
        when(1),
        long.clone(),
        vec![LocalGet(X), I32Const(7), I32Add, LocalSet(SUM), End],
        // Leaves a block with a value.
        when(2),
        long.clone(),
        vec![LocalGet(SUM), I32Const(30), I32Add, Br(2), End],
        when(3),
        long.clone(),
        vec![LocalGet(SUM), I32Const(11), I32Mul, Return, End],
        // Goes on at one of two places.
        vec![
            LocalGet(X),
            I32Const(3),
            I32Sub,
            I32Const(3),
            I32Eq,
            If(none),
        ],
        long.clone(),
        vec![
            I32Const(50),
            LocalSet(SUM),
            LocalGet(X),
            I32Const(6),
            I32Sub,
            BrTable(vec![1].into(), 0),
            End,
        ],
        vec![LocalGet(X), I32Const(7), I32Eq, If(none)],
        long.clone(),
        vec![
            I32Const(51),
            LocalSet(SUM),
            LocalGet(X),
            I32Const(6),
            I32Sub,
            BrTable(vec![1].into(), 0),
            End,
        ],
        vec![LocalGet(SUM), I32Const(2), I32Mul, LocalSet(SUM), End],
        // Goes on at the begin of a loop or after itself.
        vec![
            Loop(none),
            LocalGet(SUM),
            I32Const(1),
            I32Add,
            LocalSet(SUM),
        ],
        when(9),
        long.clone(),
        vec![
            LocalGet(TURNS),
            I32Const(1),
            I32Add,
            LocalTee(TURNS),
            I32Const(3),
            I32LtS,
            BrIf(1),
            LocalGet(SUM),
            I32Const(100),
            I32Add,
            LocalSet(SUM),
            End,
        ],
        vec![LocalGet(SUM), I32Const(20), I32LtS, BrIf(0), End],
        // Goes nowhere.
        vec![Block(none), LocalGet(X), I32Const(10), I32Ne, BrIf(0)],
        long.clone(),
        vec![Unreachable, End],
        // Takes what is on the stack.
        vec![
            Block(BlockType::Result(ValType::I32)),
            LocalGet(SUM),
            LocalGet(X),
            I32Const(11),
            I32Ne,
            BrIf(0),
        ],
        long.clone(),
        vec![I32Const(3), I32Mul, End, I32Add],
        // Goes on after the loop that it stands in, or at its begin.
        vec![
            Block(none),
            Loop(none),
            LocalGet(X),
            I32Const(12),
            I32Ne,
            BrIf(1),
        ],
        long,
        vec![
            LocalGet(TURNS),
            I32Const(1),
            I32Add,
            LocalTee(TURNS),
            I32Const(4),
            I32LtS,
            BrIf(0),
            LocalGet(SUM),
            I32Const(1000),
            I32Add,
            LocalSet(SUM),
            End,
            End,
        ],
        vec![End, LocalGet(SUM), I32Add, LocalGet(TURNS), I32Add, End],
    ]
    .concat();
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let mut functions = FunctionSection::new();
    functions.function(0);
    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        minimum: 1,
        maximum: Some(1),
        table64: false,
        shared: false,
    });
    let mut globals = GlobalSection::new();
    let of = GlobalType {
        val_type: ValType::I32,
        mutable: true,
        shared: false,
    };
    globals.global(of, &ConstExpr::i32_const(0));
    let mut exports = ExportSection::new();
    exports.export("f", ExportKind::Func, 0);
    let mut elements = ElementSection::new();
    elements.active(
        None,
        &ConstExpr::i32_const(0),
        Elements::Functions(vec![0].into()),
    );
    let mut function = Function::new([(2, ValType::I32)]);
    bodies.iter().for_each(|instruction| {
        function.instruction(instruction);
    });
    let mut code = CodeSection::new();
    code.function(&function);
    let mut names = NameMap::new();
    names.append(0, "f");
    let mut section = NameSection::new();
    section.functions(&names);
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&tables);
    module.section(&globals).section(&exports);
    module.section(&elements).section(&code).section(&section);
    module.finish()
}

const F: &str = "const f = (bytes, x) => { try { return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.f(x); } catch (error) { return error.message; } };";

/// The binary without what a run with 0 does not pass.
fn outlined() -> (Binary, Profile) {
    let binary = Binary::read(binary()).unwrap();
    let script = "
        const { exports } = new WebAssembly.Instance(new WebAssembly.Module(m0));
        exports.f(0);
        const bits = [...exports['passed 0'].value.toString(2)].reverse();
        console.log(bits.flatMap((bit, point) => (bit === '1' ? [point] : [])).join());";
    Validator::new().validate_all(&binary.bytes).unwrap();
    let passed = node(&[counting(&binary).unwrap()], script);
    let passed = format!("core {}", passed.trim().replace(',', " "));
    outline(&binary, &Profile::read(&passed).unwrap()).unwrap()
}

#[test]
fn what_was_not_passed_computes_the_same_in_functions_of_its_own() {
    let (outlined, _) = outlined();
    Validator::new().validate_all(&outlined.bytes).unwrap();
    assert_eq!(outlined.types.len(), 10, "{:?}", outlined.names);
    let script = format!(
        "{F} const all = (bytes) => Array.from({{ length: 15 }}, (_, x) => f(bytes, x)); console.log(JSON.stringify([all(m0), all(m1)]));"
    );
    let told = node(&[binary(), outlined.bytes.clone()], &script);
    let (before, after) = told
        .trim()
        .strip_prefix("[[")
        .and_then(|told| told.split_once("],["))
        .unwrap();
    assert_eq!(format!("{before}]]"), after);
}

#[test]
fn what_is_exported_and_was_not_entered_leaves_its_function() {
    let binary = Binary::read(binary()).unwrap();
    let (outlined, _) = outline(&binary, &Profile::default()).unwrap();
    Validator::new().validate_all(&outlined.bytes).unwrap();
    assert_eq!(outlined.names[0], "f");
    let piece = outlined.calls[0][0] as usize;
    assert_eq!(outlined.names[piece], "f::{piece}");
    assert!(outlined.sizes[0] < 32 && outlined.sizes[piece] > outlined.sizes[0]);
    let script = format!(
        "{F} const all = (bytes) => Array.from({{ length: 15 }}, (_, x) => f(bytes, x)).join(); console.log(all(m0) === all(m1), all(m0));"
    );
    let told = node(&[binary.bytes, outlined.bytes], &script);
    assert!(told.starts_with("true "), "{told}");
}

#[test]
fn a_run_enters_the_functions_whose_begin_it_passed() {
    let (outlined, profile) = outlined();
    let entered = outlined.functions().filter(|f| profile.is_core(*f));
    assert_eq!(entered.collect::<Vec<_>>(), [0]);
    assert!(outlined.sizes[0] < 300, "{}", outlined.sizes[0]);
}
