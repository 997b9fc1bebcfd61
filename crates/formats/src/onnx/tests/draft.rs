//! Graphs that no file has.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::dim::{Dim, Shape};
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{Attribute, Custom, CustomOperator, CustomOperators, If, Loop};
use kilim_core::tensor::{AlignedBytes, Tensor};

use super::names;
use crate::ModelFile;
use crate::onnx::{Draft, DraftNode, raw};

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> DraftNode {
    let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    DraftNode {
        op: op.into(),
        inputs: texts(inputs),
        outputs: texts(outputs),
        ..DraftNode::default()
    }
}

/// A draft with the input `x` of `[n, 3]`.
fn begun() -> Result<Draft> {
    let mut draft = Draft::new("mine");
    let shape = Shape(vec![Dim::Symbol("n".into()), Dim::Known(3)]);
    draft.input("x", DType::F32, shape)?;
    Ok(draft)
}

fn graph(draft: &Draft) -> Result<Graph> {
    let nothing = Arc::new(AlignedBytes::copy_of(&[])?);
    draft.graph(&ModelFile::new(nothing, "a.mine"), &Limits::default())
}

fn refused(result: Result<impl Sized>) -> Error {
    result.err().expect("it cannot be")
}

#[test]
fn operators_are_found_by_the_table_of_onnx() -> Result<()> {
    let chain = |axis: Option<Attribute>| {
        let mut draft = begun()?;
        draft.constant("w", Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0])?)?;
        // In any order, and with numbers in every form that will do.
        let mut concat = node("Concat", &["b", "x"], &["y"]);
        axis.into_iter()
            .for_each(|axis| concat.attributes.set("axis", axis));
        draft.node(concat)?;
        let mut leaky = node("LeakyRelu", &["a"], &["b"]);
        leaky.attributes.set("alpha", Attribute::Int(1));
        draft.node(leaky)?;
        draft.node(node("Mul", &["x", "w"], &["a"]))?;
        draft.output("y")?;
        graph(&draft)
    };
    let error = refused(chain(None));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    assert_eq!((error.node(), error.op()), (Some("y"), Some("Concat")));
    let said = error.message();
    assert!(said.starts_with("the importer `mine`: "), "{said}");

    let graph = chain(Some(Attribute::Ints(vec![1])))?;
    // What is used before it is written is passed through one.
    let operators = graph.nodes.iter().map(|n| n.op.name());
    let operators: Vec<_> = operators.filter(|name| *name != "Identity").collect();
    assert_eq!(operators, ["Mul", "LeakyRelu", "Concat"]);
    assert_eq!(names(&graph, &graph.outputs), ["y"]);
    let y = graph.value(graph.outputs[0]).fact.shape.clone();
    // The size of a value that is used before it is written is known when the session has put the nodes in order.
    assert_eq!(y, Some(Shape(vec![Dim::Symbol("n".into()), Dim::Unknown])));
    Ok(())
}

#[test]
fn constants_share_the_bytes_that_they_are_made_of() -> Result<()> {
    let bytes = Arc::new(AlignedBytes::copy_of(&[0u8; 64])?);
    let part = Tensor::view(DType::U8, &[12], bytes.clone(), 4, 12)?;
    let mut draft = begun()?;
    draft.constant("w", raw(DType::F32, &[3], &part)?)?;
    draft.node(node("Mul", &["x", "w"], &["y"]))?;
    draft.output("y")?;
    let graph = graph(&draft)?;
    let found = graph.values.iter().find_map(|v| v.constant.as_ref());
    let found = found.expect("there is a constant").read()?;
    assert!(std::ptr::eq(found, &bytes.as_slice()[4..16]));
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_by_name() -> Result<()> {
    let mut draft = begun()?;
    for again in [
        draft.input("x", DType::F32, Shape(Vec::new())),
        draft.constant("x", Tensor::scalar(1.0f32)?),
        draft.node(node("Neg", &["x"], &["x"])),
    ] {
        let error = refused(again);
        assert_eq!(error.code(), ErrorCode::InvalidModel);
        assert!(
            error.message().contains("two values are called `x`"),
            "{error}"
        );
    }
    for empty in [
        draft.input("", DType::F32, Shape(Vec::new())),
        draft.output(""),
        draft.node(node("", &["x"], &["z"])),
    ] {
        assert_eq!(refused(empty).code(), ErrorCode::InvalidModel);
    }

    draft.output("y")?;
    let error = refused(graph(&draft));
    assert_eq!(error.code(), ErrorCode::InvalidGraph, "{error}");
    let mut unknown = draft.clone();
    unknown.node(node("Twist", &["x"], &["a"]))?;
    unknown.node(node("Bend", &["a"], &["y"]))?;
    let error = refused(graph(&unknown));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    for part in ["the importer `mine`", "ai.onnx::Twist", "`a`", "Bend"] {
        assert!(error.message().contains(part), "{error}");
    }
    let mut cycle = draft.clone();
    cycle.node(node("Neg", &["b"], &["a"]))?;
    cycle.node(node("Neg", &["a"], &["b"]))?;
    cycle.node(node("Add", &["a", "x"], &["y"]))?;
    let error = refused(graph(&cycle));
    assert_eq!(error.code(), ErrorCode::InvalidGraph);
    assert!(error.message().contains("cycle"), "{error}");
    let mut dangling = draft.clone();
    dangling.node(node("Neg", &["nothing"], &["y"]))?;
    let error = refused(graph(&dangling));
    assert_eq!(error.code(), ErrorCode::InvalidGraph);
    assert!(error.message().contains("`nothing`"), "{error}");
    let mut other = draft.clone();
    let mut neg = node("Neg", &["x"], &["y"]);
    neg.attributes.set("speed", Attribute::Float(2.0));
    other.node(neg)?;
    let error = refused(graph(&other));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("`speed`"), "{error}");
    Ok(())
}

/// A draft with the inputs `x` and `c`, and the node of If that these bodies make.
fn branches(bodies: Vec<(String, Draft)>) -> Result<Draft> {
    let mut draft = begun()?;
    draft.input("c", DType::Bool, Shape(Vec::new()))?;
    let mut branch = node("If", &["c"], &["y"]);
    branch.bodies = bodies;
    draft.node(branch)?;
    draft.output("y")?;
    Ok(draft)
}

/// A body with one node, whose output is the body's.
fn body(one: DraftNode) -> Result<Draft> {
    let mut body = Draft::new("mine").body();
    let output = one.outputs[0].clone();
    body.node(one)?;
    body.output(&output)?;
    Ok(body)
}

#[test]
fn bodies_see_what_is_around_them() -> Result<()> {
    // The loop is in the graph of a branch, and reads `x` of the model's.
    let mut step = Draft::new("mine");
    for name in ["i", "going", "s"] {
        step.untyped_input(name)?;
    }
    step.node(node("Identity", &["going"], &["on"]))?;
    step.node(node("Add", &["s", "x"], &["t"]))?;
    ["on", "t"]
        .map(|name| step.output(name))
        .into_iter()
        .collect::<Result<()>>()?;
    let mut repeat = node("Loop", &["trips", "", "x"], &["sum"]);
    repeat.bodies.push(("body".into(), step));
    let mut other = Draft::new("mine");
    other.constant("trips", Tensor::scalar(3i64)?)?;
    other.node(repeat)?;
    other.output("sum")?;
    let then = body(node("Neg", &["x"], &["n"]))?;
    let draft = branches(vec![
        ("then_branch".into(), then),
        ("else_branch".into(), other),
    ])?;
    assert_eq!(draft.node_count(), 5);
    let graph = graph(&draft)?;
    let op = graph.nodes[0].op.downcast_ref::<If>().expect("an If");
    assert_eq!(names(&op.else_body, &op.else_body.inputs), ["x"]);
    let inner = op.else_body.nodes[0].op.downcast_ref::<Loop>();
    let inner = inner.expect("a Loop");
    assert_eq!(
        names(&inner.body, &inner.body.inputs),
        ["i", "going", "s", "x"]
    );
    Ok(())
}

#[test]
fn bodies_that_cannot_be_are_refused() -> Result<()> {
    let then = || body(node("Neg", &["x"], &["n"])).map(|body| ("then_branch".to_string(), body));
    let other = body(node("Neg", &["n"], &["m"]))?;
    let dangling = branches(vec![then()?, ("else_branch".into(), other)])?;
    let error = refused(graph(&dangling));
    assert_eq!(error.code(), ErrorCode::InvalidGraph, "{error}");
    assert!(error.message().contains("`n`"), "{error}");

    let error = refused(branches(vec![then()?, then()?]));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    let error = refused(graph(&branches(vec![then()?])?));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    assert!(error.message().contains("`else_branch`"), "{error}");

    let mut untyped = begun()?;
    untyped.untyped_input("u")?;
    let error = refused(graph(&untyped));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");

    // More than the limit of a load allow, and more than any draft may have.
    let mut inside = body(node("Neg", &["x"], &["n"]))?;
    let deeper = |inside: Draft| {
        let mut outer = node("If", &["c"], &["y"]);
        outer.bodies = vec![
            ("then_branch".into(), inside.clone()),
            ("else_branch".into(), body(node("Abs", &["x"], &["a"]))?),
        ];
        body(outer)
    };
    for _ in 0..40 {
        inside = deeper(inside)?;
    }
    let deep = branches(vec![then()?, ("else_branch".into(), inside.clone())])?;
    let error = refused(graph(&deep));
    assert_eq!(error.limit(), Some("depth"), "{error}");
    let made = (0..40).try_fold(inside, |inside, _| deeper(inside));
    assert_eq!(refused(made).code(), ErrorCode::Limit);
    Ok(())
}

#[test]
fn bytes_have_to_fit_the_shape() -> Result<()> {
    let bytes = Tensor::from_slice(&[5], &[1u8, 2, 3, 4, 5])?;
    let wrong = [
        (DType::F32, vec![1], ErrorCode::InvalidModel),
        (DType::Bool, vec![5], ErrorCode::InvalidModel),
        (DType::String, vec![5], ErrorCode::Unsupported),
        (DType::F32, vec![usize::MAX, 2], ErrorCode::Limit),
        (DType::I4, vec![usize::MAX, 0, 2], ErrorCode::Limit),
        (DType::U8, vec![1; 99], ErrorCode::Limit),
    ];
    for (dtype, shape, code) in wrong {
        let error = refused(raw(dtype, &shape, &bytes));
        assert_eq!(error.code(), code, "{dtype} {shape:?}: {error}");
    }
    let packed = raw(DType::U4, &[9], &bytes)?;
    assert_eq!(packed.read()?[..3], [1, 0, 2]);
    Ok(())
}

#[test]
fn operators_of_the_session_see_attributes_as_they_were_given() -> Result<()> {
    let mut draft = begun()?;
    let mut own = node("Own", &["x"], &["y"]);
    own.domain = "com.example".into();
    own.attributes.set("axes", Attribute::Ints(vec![1]));
    own.attributes.set("axis", Attribute::Int(1));
    own.attributes.set("scale", Attribute::Float(0.5));
    draft.node(own)?;
    draft.output("y")?;
    let mut operators = CustomOperators::default();
    let like = |_: &_, ctx: &kilim_core::ops::InferContext| Ok(vec![ctx.fact(0)?.clone()]);
    operators.add(CustomOperator::new("com.example", "Own", like));
    let nothing = Arc::new(AlignedBytes::copy_of(&[])?);
    let file = ModelFile::new(nothing, "a.mine").with_operators(&operators);
    let graph = draft.graph(&file, &Limits::default())?;
    let op: &dyn std::any::Any = graph.nodes[0].op.as_ref();
    let told = op.downcast_ref::<Custom>().expect("it is one").attributes();
    assert_eq!(told.get("axes"), Some(&Attribute::Ints(vec![1])));
    assert_eq!(told.get("axis"), Some(&Attribute::Int(1)));
    assert_eq!(told.get("scale"), Some(&Attribute::Float(0.5)));
    Ok(())
}
