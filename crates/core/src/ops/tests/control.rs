use std::sync::Arc;

use super::*;

fn fact_of(text: &str) -> Fact {
    unknown(text).unwrap().fact
}

/// A body whose inputs and outputs have these facts.
fn body(inputs: &[&str], outputs: &[&str]) -> Arc<Graph> {
    let mut graph = Graph::new("body");
    for (i, text) in inputs.iter().enumerate() {
        graph.add_input(format!("in{i}"), fact_of(text));
    }
    for (i, text) in outputs.iter().enumerate() {
        let v = graph.add_value(format!("out{i}"), fact_of(text));
        graph.outputs.push(v);
    }
    Arc::new(graph)
}

#[test]
fn branches() {
    let op = |a: &str, b: &str| If {
        then_body: body(&[], &[a]),
        else_body: body(&[], &[b]),
    };
    let condition = || [unknown("bool")];
    let same = op("float32 n,3", "float32 n,3");
    assert_eq!(infer(same, &condition()), "float32[n,3]");
    let differ = op("float32 n,3", "float32 n,4");
    assert_eq!(infer(differ.clone(), &condition()), "float32[n,?]");
    let ranks = op("float32 n,3", "float32 n");
    assert_eq!(infer(ranks, &condition()), "float32[…]");
    let types = op("float32 n", "int32 n");
    assert_eq!(refuse(types, &condition()), ErrorCode::DType);
    let known_condition = [known(Tensor::from_bools(&[], &[false]).unwrap())];
    assert_eq!(infer(differ.clone(), &known_condition), "float32[n,4]");
    assert_eq!(differ.bodies().unwrap().graphs.len(), 2);
    assert_eq!(refuse(differ, &[unknown("float32")]), ErrorCode::DType);
    let none = If {
        then_body: body(&[], &[]),
        else_body: body(&[], &["float32"]),
    };
    assert_eq!(refuse(none, &condition()), ErrorCode::InvalidGraph);
}

#[test]
fn loops() {
    let inner = ["int64", "bool", "float32 2,n", "float32 ?"];
    let op = Loop {
        body: body(&inner, &["bool", "float32 2,n", "float32 3", "int32 4"]),
        carried: 2,
    };
    let inputs = [int(5), None, unknown("float32 2,n"), unknown("float32 2")];
    let facts = infer_all(op.clone(), 3, &inputs);
    assert_eq!(facts, "float32[2,n] float32[?] int32[?,4]");
    // A condition that is passed on never ends the loop.
    let mut graph = Graph::clone(&op.body);
    graph.outputs[0] = graph.inputs[1];
    let op = Loop {
        body: Arc::new(graph),
        carried: 2,
    };
    let facts = infer_all(op.clone(), 3, &inputs);
    assert_eq!(facts, "float32[2,n] float32[?] int32[5,4]");
    let later = [None, None, inputs[2].clone(), inputs[3].clone()];
    let facts = infer_all(op, 3, &later);
    assert_eq!(facts, "float32[2,n] float32[?] int32[?,4]");
}

#[test]
fn bodies_are_looked_into() {
    let mut graph = Graph::new("transposing");
    let x = graph.add_input("x", Fact::default());
    let y = graph.apply("turn", Transpose { perm: vec![1, 0] }, &[x]);
    graph.outputs.push(y);
    let turn = Arc::new(graph);
    let op = If {
        then_body: turn.clone(),
        else_body: turn.clone(),
    };
    let inputs = [unknown("bool"), unknown("float32 2,n")];
    assert_eq!(infer(op.clone(), &inputs), "float32[n,2]");
    // What does not fit is an error when it runs, not before.
    let inputs = [unknown("bool"), unknown("float32 2")];
    assert_eq!(infer(op.clone(), &inputs), "?[…]");
    assert_eq!(refuse(op, &[unknown("bool")]), ErrorCode::InvalidGraph);
    let scan = Scan {
        body: turn,
        states: 0,
        scan_inputs: 1,
        input_axes: vec![0],
        input_reverse: vec![false],
        output_axes: vec![0],
        output_reverse: vec![false],
    };
    let inputs = [unknown("float32 t,2,3")];
    assert_eq!(infer(scan, &inputs), "float32[t,3,2]");
}

#[test]
fn scans() {
    let op = Scan {
        body: body(
            &["float32 2", "float32 4"],
            &["float32 2", "float32 2", "float32"],
        ),
        states: 1,
        scan_inputs: 1,
        input_axes: vec![1],
        input_reverse: vec![false],
        output_axes: vec![-1, 0],
        output_reverse: vec![false, false],
    };
    let inputs = [unknown("float32 2"), unknown("float32 4,t")];
    let facts = infer_all(op.clone(), 3, &inputs);
    assert_eq!(facts, "float32[2] float32[2,t] float32[t]");
    let scalar = [unknown("float32 2"), unknown("float32")];
    assert_eq!(refuse(op, &scalar), ErrorCode::Shape);
}
