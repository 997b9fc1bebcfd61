//! A sample of an importer for Kilim in Rust: `docs/importers.md` goes through it. It reads texts that begin with `chain 1` and have an
//! operator in each line, `relu` or `scale FACTOR`.

use kilim_plugin_abi::importer::guest::{Dim, Failure, File, Graph, Importer, Operation, Result};

/// float32, by its number in ONNX.
const FLOAT32: i32 = 1;

const FIRST: &[u8] = b"chain 1\n";

struct Chain;

impl Importer for Chain {
    fn probe(head: &[u8], _name: &str) -> bool {
        head.starts_with(FIRST)
    }

    fn load(file: &File, graph: &mut Graph) -> Result {
        let text = std::str::from_utf8(&file.bytes[FIRST.len()..]);
        let text = text.map_err(|_| Failure::invalid("the file is no text"))?;
        graph.input("x", FLOAT32, &[Dim::Symbol("n")])?;
        let mut from = "x".to_string();
        for (line, words) in (2..).zip(text.lines()) {
            let to = format!("value {line}");
            let mut node = match words.split_once(' ') {
                None if words == "relu" => Operation::new("Relu", &[&from], &[&to]),
                Some(("scale", factor)) => {
                    let by = format!("factor {line}");
                    let factor = factor.parse::<f32>();
                    let factor =
                        factor.map_err(|_| wrong(line, "has a factor that is no number"))?;
                    graph.constant(&by, FLOAT32, &[], &factor.to_le_bytes())?;
                    Operation::new("Mul", &[&from, &by], &[&to])
                }
                _ => {
                    let what = format!("line {line} has an operator that nobody knows");
                    return Err(Failure::unsupported(what));
                }
            };
            node.name = format!("line {line}");
            graph.node(&node)?;
            from = to;
        }
        graph.node(&Operation::new("Identity", &[&from], &["y"]))?;
        graph.output("y")
    }
}

fn wrong(line: usize, what: &str) -> Failure {
    Failure::invalid(format!("line {line} {what}"))
}

kilim_plugin_abi::export_importer!(Chain);
