//! Inputs and outputs are the user's.

use crate::*;

/// `same = x`, `constant = [7]`, `neg = relu(-x)`, `exp = exp(x)`; Neg and Exp on backends of their
/// own. Gives what the two are asked for as well.
fn four_outputs() -> (kilim::core::Session, Arc<Mutex<Vec<String>>>) {
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let backend = |id: &'static str, refused: &'static str| -> Arc<dyn Backend> {
        let log = calls.clone();
        let on_call = move |call: &'static str| {
            log.lock().unwrap().push(format!("{id} {call}"));
            Ok(())
        };
        let taking = move |node: &NodeSpec| node.op.name() != refused;
        Arc::new(StandIn::new(cpu(), id).taking(taking).on_call(on_call))
    };
    let mut g = Graph::new("ports");
    let x = g.add_input("x", Fact::new(DType::F32, symbolic(&["n"])));
    let seven = g.add_constant("constant", f32s(&[1], &[7.0]));
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    let relu = g.apply("relu", Unary(UnaryKind::Relu), &[neg]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
    g.outputs.extend([x, seven, relu, exp]);
    let backends = vec![backend("one", "Exp"), backend("two", "Neg")];
    let options = kilim::core::SessionOptions::default();
    let session = kilim::core::Session::new(g, backends, cpu(), options);
    (pollster::block_on(session).unwrap(), calls)
}

#[test]
fn tensors_of_the_users_are_builtins() {
    let (mut s, calls) = four_outputs();
    let x = f32s(&[3], &[1.0, -2.0, 3.0]);
    calls.lock().unwrap().clear();
    let options = RunOptions::default();
    let first = pollster::block_on(s.run(&[("x", x.clone())], &options)).unwrap();
    // Both backends are given the input, and neither takes it from the other.
    let made = std::mem::take(&mut *calls.lock().unwrap());
    for call in ["one write", "one read", "two write", "two read"] {
        assert_eq!(made.iter().filter(|c| *c == call).count(), 1, "{made:?}");
    }
    assert!(s.report().crossings.is_empty());
    // What no node makes comes from no backend: the input is handed out as it is.
    assert_eq!(
        first[0].1.read().unwrap().as_ptr(),
        x.read().unwrap().as_ptr()
    );
    assert_eq!(first[1].1.as_slice::<f32>().unwrap(), [7.0]);
    // A result stays what it is when the next run is through, and so does the input.
    let (neg, exp) = (first[2].1.clone(), first[3].1.clone());
    let other = f32s(&[3], &[-5.0; 3]);
    pollster::block_on(s.run(&[("x", other)], &options)).unwrap();
    assert_eq!(neg.as_slice::<f32>().unwrap(), [0.0, 2.0, 0.0]);
    let want = [1f32, -2.0, 3.0].map(f32::exp);
    let exp = exp.as_slice::<f32>().unwrap();
    let close = |(y, want): (&f32, &f32)| (y - want).abs() <= 1e-6 * want;
    assert!(exp.iter().zip(&want).all(close), "{exp:?}");
    assert_eq!(x.as_slice::<f32>().unwrap(), [1.0, -2.0, 3.0]);
}

#[test]
fn outputs_go_into_buffers_of_the_users() {
    let (mut s, _) = four_outputs();
    let x = f32s(&[3], &[1.0, -2.0, 3.0]);
    let inputs = [("x", x.clone().into())];
    let options = RunOptions::default();
    let (mut same, mut relu) = ([0xAA; 12], [0xAA; 16]);
    let mut buffers = [("relu:0", &mut relu[..]), ("x", &mut same[..])];
    let specs = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap();
    assert_eq!(specs, [3, 3].map(|n| TensorSpec::new(DType::F32, &[n])));
    assert_eq!(same, x.read().unwrap());
    assert_eq!(relu[..12], *f32s(&[3], &[0.0, 2.0, 0.0]).read().unwrap());
    assert_eq!(relu[12..], [0xAA; 4], "what is longer stays as it was");

    let (mut whole, mut short) = ([0xAA; 12], [0xAA; 11]);
    let mut buffers = [("x", &mut whole[..]), ("relu:0", &mut short[..])];
    let error = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(error.expected(), Some("12 bytes"));
    let mut buffers = [("x", &mut whole[..]), ("none", &mut short[..])];
    let error = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Input);
    assert_eq!((whole, short), ([0xAA; 12], [0xAA; 11]), "all or nothing");
}

/// `x + 1` of `[rows, 2]` and `[2, 3]`, with the last place alone of outputs that are named.
fn last(wanted: &[(&str, i64)]) -> kilim::core::Result<kilim::core::Session> {
    let mut g = Graph::new("last");
    let x = g.add_input(
        "x",
        Fact::new(
            DType::F32,
            Shape(vec![Dim::Symbol("rows".into()), Dim::Known(2)]),
        ),
    );
    let one = g.add_constant("one", f32s(&[1], &[1.0]));
    let y = g.apply("y", Binary::new(BinaryKind::Add), &[x, one]);
    g.value_mut(y).name = "y".to_string();
    let fixed = g.add_constant("fixed", f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    g.outputs.extend([y, x, fixed]);
    let options = kilim::core::SessionOptions {
        last_only: wanted
            .iter()
            .map(|(n, axis)| (n.to_string(), *axis))
            .collect(),
        ..kilim::core::SessionOptions::default()
    };
    pollster::block_on(kilim::core::Session::new(g, vec![cpu()], cpu(), options))
}

#[test]
fn the_last_place_alone_may_be_wanted() {
    let wanted = [("y", 0), ("x", -1), ("fixed", 1)];
    let mut session = last(&wanted).unwrap();
    let names: Vec<_> = session
        .outputs()
        .iter()
        .map(|port| port.name.clone())
        .collect();
    assert_eq!(names, ["y", "x", "fixed"]);
    let dims: Vec<_> = session
        .outputs()
        .iter()
        .map(|port| port.fact.shape.clone())
        .collect();
    let rows = Dim::Symbol("rows".into());
    let one = Dim::Known(1);
    let expected = [
        vec![one.clone(), Dim::Known(2)],
        vec![rows, one.clone()],
        vec![Dim::Known(2), one],
    ];
    assert_eq!(dims, expected.map(|dims| Some(Shape(dims))));
    for rows in [1, 3, 2] {
        let x: Vec<f32> = (0..2 * rows).map(|i| i as f32).collect();
        let x = f32s(&[rows, 2], &x);
        let outputs = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()));
        let outputs = outputs.unwrap();
        let numbers = |i: usize| outputs[i].1.as_slice::<f32>().unwrap().to_vec();
        let end = 2 * rows as i64;
        assert_eq!(numbers(0), [end - 1, end].map(|x| x as f32));
        let last: Vec<f32> = (0..rows).map(|i| (2 * i + 1) as f32).collect();
        assert_eq!(numbers(1), last);
        assert_eq!(numbers(2), [3.0, 6.0]);
    }
    // There is no last row of none.
    let none = f32s(&[0, 2], &[]);
    let failed = pollster::block_on(session.run(&[("x", none)], &RunOptions::default()));
    assert!(failed.is_err(), "{failed:?}");
}

#[test]
fn the_last_place_of_what_is_not_there_is_an_error() {
    let error = |wanted: &[(&str, i64)]| last(wanted).err().expect("an error");
    let e = error(&[("z", 0)]);
    assert_eq!(e.code(), kilim::ErrorCode::Input);
    assert!(e.to_string().contains("y, x, fixed"), "{e}");
    let e = error(&[("y", 2)]);
    assert_eq!(e.code(), kilim::ErrorCode::Shape);
    assert!(e.to_string().contains("`y/last`"), "{e}");
}

/// A graph of two halves: `b` of `a`, `d` of `c`, and `e` of both.
fn halves() -> Graph {
    let mut g = Graph::new("halves");
    let [a, c] = ["a", "c"].map(|name| g.add_input(name, Fact::fixed(DType::F32, &[2])));
    let one = g.add_constant("one", f32s(&[1], &[1.0]));
    for (name, left, right) in [("b", a, one), ("d", c, one), ("e", a, c)] {
        let made = g.apply(name, Binary::new(BinaryKind::Add), &[left, right]);
        g.value_mut(made).name = name.to_string();
        g.outputs.push(made);
    }
    g
}

#[test]
fn a_session_may_have_some_of_the_outputs_alone() {
    let open = |wanted: &[&str]| {
        let options = kilim::core::SessionOptions {
            outputs: Some(kilim::Keep::new(wanted.iter().copied())),
            ..kilim::core::SessionOptions::default()
        };
        pollster::block_on(kilim::core::Session::new(
            halves(),
            vec![cpu()],
            cpu(),
            options,
        ))
    };
    let x = || f32s(&[2], &[1.0, 2.0]);
    for (wanted, inputs, outputs) in [
        (&["b"][..], &["a"][..], &["b"][..]),
        (&["d"], &["c"], &["d"]),
        (&["e", "d"], &["a", "c"], &["d", "e"]),
        (&["*"], &["a", "c"], &["b", "d", "e"]),
    ] {
        let mut session = open(wanted).unwrap();
        let names =
            |ports: &[kilim::Port]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(session.inputs()), inputs);
        assert_eq!(names(session.outputs()), outputs);
        let feeds: Vec<_> = inputs.iter().map(|&name| (name, x())).collect();
        let made = pollster::block_on(session.run(&feeds, &RunOptions::default())).unwrap();
        let (name, first) = &made[0];
        let expected = if *name == "e" { [2.0, 4.0] } else { [2.0, 3.0] };
        assert_eq!(first.as_slice::<f32>().unwrap(), expected);
    }
    let error = open(&["f", "b"]).err().expect("an error");
    assert_eq!(error.code(), kilim::ErrorCode::Input);
    assert!(error.to_string().contains("b, d, e"), "{error}");
}
