//! An importer of files that begin with `control`: of `x` and a condition `c` it makes `y`, which is twice `x` where `c` holds, else `x` and
//! three times `x` more, by a loop in a branch.

use kilim_plugin_abi::importer::guest::{
    Dim, File, Graph, Importer, Metadata, Operation, Result, Tensor, Values,
};

/// Numbers of ONNX.
const FLOAT32: i32 = 1;
const INT64: i32 = 7;
const BOOL: i32 = 9;

struct Control;

impl Importer for Control {
    fn probe(head: &[u8], _name: &str) -> bool {
        head.starts_with(b"control")
    }

    fn load(_file: &File, graph: &mut Graph) -> Result {
        graph.input("x", FLOAT32, &[Dim::Symbol("n")])?;
        graph.input("c", BOOL, &[])?;
        let two = Tensor {
            dtype: FLOAT32,
            shape: vec![1],
            data: 2f32.to_le_bytes().to_vec(),
        };
        let two = Operation::new("Constant", &[], &["two"]).with("value", Values::Tensor(two));
        graph.node(&two)?;
        graph.body("then_branch", |body| {
            body.node(&Operation::new("Mul", &["x", "two"], &["doubled"]))?;
            body.output("doubled")
        })?;
        graph.body("else_branch", |body| {
            body.metadata(&Metadata {
                producer: "control".to_string(),
                entries: vec![("loop".to_string(), "three times".to_string())],
                ..Metadata::default()
            })?;
            body.constant("trips", INT64, &[], &3i64.to_le_bytes())?;
            body.body("body", step)?;
            body.node(&Operation::new("Loop", &["trips", "", "x"], &["sum"]))?;
            body.output("sum")
        })?;
        graph.node(&Operation::new("If", &["c"], &["y"]))?;
        graph.output("y")
    }
}

/// One step of the loop: `x` is that of the model, two graphs further out.
fn step(body: &mut Graph) -> Result {
    for name in ["step", "going", "before"] {
        body.untyped_input(name)?;
    }
    body.node(&Operation::new("Identity", &["going"], &["on"]))?;
    body.node(&Operation::new("Add", &["before", "x"], &["after"]))?;
    body.output("on")?;
    body.output("after")
}

kilim_plugin_abi::export_importer!(Control);
