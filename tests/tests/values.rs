//! Sequences, optional values and maps: in graphs, in loops, and as inputs and outputs of models.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use kilim::core::ops::{
    Binary, BinaryKind, ConcatFromSequence, DictVectorizer, Loop, MapValues, OptionalGetElement,
    OptionalHasElement, Range, SequenceAt, SequenceConstruct, SequenceErase, SequenceInsert,
    SequenceLength, SplitToSequence, Unary, UnaryKind, ZipMap,
};
use kilim::{
    BackendId, DType, Datum, ErrorCode, Fact, Form, Graph, Kind, LoadOptions, Map, Result,
    RunOptions, Runtime, Session, Tensor,
};

fn session(graph: Graph) -> Result<Session> {
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn run(session: &mut Session, inputs: &[(&str, Datum)]) -> Result<Vec<Datum>> {
    let outputs = pollster::block_on(session.run_data(inputs, &RunOptions::default()))?;
    Ok(outputs.into_iter().map(|(_, datum)| datum).collect())
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn place(position: i64) -> Datum {
    Tensor::scalar(position).unwrap().into()
}

fn sequence_fact(dtype: DType) -> Fact {
    Fact {
        dtype: Some(dtype),
        shape: None,
        kind: Form::Sequence.into(),
    }
}

/// Takes the tensor at `place` of the sequence `all`, doubles it, and puts it at the end.
fn doubling() -> Graph {
    let mut g = Graph::new("doubling");
    let all = g.add_input("all", sequence_fact(DType::F32));
    let place = g.add_input("place", Fact::fixed(DType::I64, &[]));
    let one = g.apply("at", SequenceAt, &[all, place]);
    let twice = g.apply("twice", Binary::new(BinaryKind::Add), &[one, one]);
    let more = g.apply("insert", SequenceInsert, &[all, twice]);
    let less = g.apply("erase", SequenceErase, &[more, place]);
    let length = g.apply("length", SequenceLength, &[less]);
    g.outputs.extend([less, length]);
    g
}

#[test]
fn sequences_come_in_and_go_out() {
    let mut s = session(doubling()).unwrap();
    let all = vec![f32s(&[1.0]), f32s(&[2.0, 3.0])];
    for _ in 0..2 {
        let got = run(
            &mut s,
            &[("all", Datum::Sequence(all.clone())), ("place", place(-1))],
        );
        let want = vec![f32s(&[1.0]), f32s(&[2.0, 3.0])];
        // The last of three goes: the one that came is there, the doubled one is not.
        assert_eq!(got.unwrap(), [Datum::Sequence(want), place(2)]);
    }
    let got = run(
        &mut s,
        &[("all", Datum::Sequence(all)), ("place", place(0))],
    );
    let want = vec![f32s(&[2.0, 3.0]), f32s(&[2.0])];
    assert_eq!(got.unwrap(), [Datum::Sequence(want), place(2)]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let mut s = session(doubling()).unwrap();
    let empty = Datum::Sequence(Vec::new());
    let error = run(&mut s, &[("all", empty.clone()), ("place", place(0))]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert_eq!(error.node(), Some("at"));
    let one = Datum::Sequence(vec![f32s(&[1.0])]);
    let error = run(&mut s, &[("all", one), ("place", place(1))]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    let wrong = Datum::Sequence(vec![Tensor::scalar(1i32).unwrap()]);
    for datum in [Datum::Tensor(f32s(&[1.0])), Datum::Absent, wrong] {
        let error = run(&mut s, &[("all", datum), ("place", place(0))]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DType);
        assert_eq!(error.input(), Some("all"));
    }
    let tensors = [("all", f32s(&[1.0])), ("place", f32s(&[0.0]))];
    let error = pollster::block_on(s.run(&tensors, &RunOptions::default())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DType);
}

#[test]
fn operators_on_tensors_refuse_sequences_when_a_model_is_loaded() {
    let mut g = Graph::new("wrong");
    let all = g.add_input("all", sequence_fact(DType::F32));
    let sum = g.apply("sum", Binary::new(BinaryKind::Add), &[all, all]);
    g.outputs.push(sum);
    let error = session(g).err().unwrap();
    assert_eq!(
        (error.code(), error.node()),
        (ErrorCode::DType, Some("sum"))
    );
}

#[test]
fn a_loop_collects_a_sequence_that_is_then_joined() {
    let mut body = Graph::new("body");
    let turn = body.add_input("turn", Fact::fixed(DType::I64, &[]));
    let going = body.add_input("going", Fact::fixed(DType::Bool, &[]));
    let list = body.add_input("list", sequence_fact(DType::I64));
    let zero = body.add_constant("zero", Tensor::scalar(0i64).unwrap());
    let one = body.add_constant("one", Tensor::scalar(1i64).unwrap());
    // The numbers below the turn's: tensors of different lengths.
    let count = body.apply("count", Range, &[zero, turn, one]);
    let list = body.apply("more", SequenceInsert, &[list, count]);
    body.outputs.extend([going, list]);
    let mut g = Graph::new("collect");
    let trips = g.add_input("trips", Fact::fixed(DType::I64, &[]));
    let empty = g.apply("empty", SequenceConstruct, &[]);
    let all = g.add_value("all", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[Some(trips), None, Some(empty)], &[all]);
    let join = ConcatFromSequence {
        axis: 0,
        new_axis: false,
    };
    let joined = g.apply("join", join, &[all]);
    g.outputs.extend([all, joined]);
    let mut s = session(g).unwrap();
    for n in [4i64, 1] {
        let got = run(&mut s, &[("trips", place(n))]).unwrap();
        let rows: Vec<Vec<i64>> = (0..n).map(|i| (0..i).collect()).collect();
        let vector = |v: &Vec<i64>| Tensor::from_slice(&[v.len()], v).unwrap();
        assert_eq!(got[0], Datum::Sequence(rows.iter().map(vector).collect()));
        assert_eq!(got[1], Datum::Tensor(vector(&rows.concat())));
    }
    let error = run(&mut s, &[("trips", place(0))]).unwrap_err();
    assert_eq!(error.node(), Some("join"));
}

#[test]
fn optional_values_may_be_left_out() {
    let mut g = Graph::new("optional");
    let mut fact = sequence_fact(DType::F32);
    fact.kind.optional = true;
    let x = g.add_input("x", fact);
    let there = g.apply("has", OptionalHasElement, &[x]);
    g.outputs.extend([there, x]);
    let mut s = session(g).unwrap();
    let absent = run(&mut s, &[]).unwrap();
    let no = Tensor::from_bools(&[], &[false]).unwrap();
    assert_eq!(absent, [no.into(), Datum::Absent]);
    let all = Datum::Sequence(vec![f32s(&[1.0])]);
    let yes = Tensor::from_bools(&[], &[true]).unwrap();
    let given = run(&mut s, &[("x", all.clone())]).unwrap();
    assert_eq!(given, [yes.into(), all]);

    let mut g = Graph::new("element");
    let kind = Kind {
        optional: true,
        ..Kind::default()
    };
    let fact = Fact {
        kind,
        ..Fact::fixed(DType::F32, &[1])
    };
    let x = g.add_input("x", fact);
    let element = g.apply("get", OptionalGetElement, &[x]);
    let y = g.apply("neg", Unary(UnaryKind::Neg), &[element]);
    g.outputs.push(y);
    let mut s = session(g).unwrap();
    let given = run(&mut s, &[("x", f32s(&[2.0]).into())]).unwrap();
    assert_eq!(given, [f32s(&[-2.0]).into()]);
    assert_eq!(run(&mut s, &[]).unwrap_err().node(), Some("get"));
}

#[test]
fn splits_at_run_time() {
    let mut g = Graph::new("split");
    let x = g.add_input("x", Fact::new(DType::F32, kilim::Shape::unknown(1)));
    let size = g.add_input("size", Fact::fixed(DType::I64, &[]));
    let op = |keep_dims| SplitToSequence { axis: 0, keep_dims };
    let parts = g.apply("parts", op(true), &[x, size]);
    let scalars = g.apply("scalars", op(false), &[x]);
    g.outputs.extend([parts, scalars]);
    let mut s = session(g).unwrap();
    let x = f32s(&[1.0, 2.0, 3.0]);
    let got = run(&mut s, &[("x", x.clone().into()), ("size", place(2))]).unwrap();
    let parts = vec![f32s(&[1.0, 2.0]), f32s(&[3.0])];
    let scalars = [1.0f32, 2.0, 3.0].map(|v| Tensor::scalar(v).unwrap());
    assert_eq!(got[0], Datum::Sequence(parts));
    assert_eq!(got[1], Datum::Sequence(scalars.to_vec()));
    let error = run(&mut s, &[("x", x.into()), ("size", place(0))]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
}

#[test]
fn half_precision_keeps_its_type_in_sequences() {
    let mut g = Graph::new("half");
    let x = g.add_input("x", Fact::fixed(DType::F16, &[2]));
    let twice = g.apply("twice", Binary::new(BinaryKind::Add), &[x, x]);
    let both = g.apply("both", SequenceConstruct, &[x, twice]);
    g.outputs.push(both);
    let mut s = session(g).unwrap();
    let half = |values: [f32; 2]| {
        let bits: Vec<u8> = values
            .iter()
            .flat_map(|&v| f16_bits(v).to_le_bytes())
            .collect();
        Tensor::from_raw(DType::F16, &[2], &bits).unwrap()
    };
    let got = run(&mut s, &[("x", half([1.0, -0.5]).into())]).unwrap();
    assert_eq!(
        got,
        [Datum::Sequence(vec![half([1.0, -0.5]), half([2.0, -1.0])])]
    );
}

/// The bits of a power of two in half precision.
fn f16_bits(v: f32) -> u16 {
    let bits = v.to_bits();
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    ((bits >> 31) as u16) << 15 | (exponent as u16) << 10
}

#[test]
fn maps_are_taken_and_given() {
    let keys = |names: &[&str]| {
        let names: Vec<Arc<str>> = names.iter().map(|&n| n.into()).collect();
        Tensor::from_texts(&[names.len()], names).unwrap()
    };
    let mut g = Graph::new("maps");
    let fact = Fact {
        dtype: Some(DType::F32),
        shape: None,
        kind: Form::Map.into(),
    };
    let map = g.add_input("map", fact);
    let vector = DictVectorizer {
        keys: keys(&["b", "none", "a"]),
    };
    let row = g.apply("row", vector, &[map]);
    let zip = ZipMap {
        keys: keys(&["x", "y", "z"]),
    };
    let maps = g.apply("zip", zip, &[row]);
    g.outputs.extend([row, maps]);
    let numbered = Fact {
        dtype: Some(DType::String),
        shape: None,
        kind: Form::Map.into(),
    };
    let numbered = g.add_input("numbered", numbered);
    for length in [None, Some(4)] {
        let values = g.apply("values", MapValues { length }, &[numbered]);
        g.outputs.push(values);
    }
    let mut s = session(g).unwrap();
    let named = |at: &[i64]| {
        Datum::Map(Map {
            keys: Tensor::from_slice(&[2], at).unwrap(),
            values: keys(&["3", "1"]),
        })
    };
    let map = Map {
        keys: keys(&["a", "b"]),
        values: f32s(&[1.0, 2.0]),
    };
    let map = Datum::Map(map);
    let got = run(
        &mut s,
        &[("map", map.clone()), ("numbered", named(&[3, 1]))],
    )
    .unwrap();
    let row = |texts: &[&str]| keys(texts).reshaped(&[1, texts.len()]).unwrap();
    assert_eq!(got[2], row(&["1", "3"]).into());
    assert_eq!(got[3], row(&["", "1", "", "3"]).into());
    let beyond = run(&mut s, &[("map", map), ("numbered", named(&[4, 1]))]);
    assert_eq!(beyond.unwrap_err().code(), ErrorCode::InvalidValue);
    assert_eq!(got[0], f32s(&[2.0, 0.0, 1.0]).into());
    let want = Map {
        keys: keys(&["x", "y", "z"]),
        values: f32s(&[2.0, 0.0, 1.0]),
    };
    assert_eq!(got[1], Datum::MapSequence(vec![want]));
}
