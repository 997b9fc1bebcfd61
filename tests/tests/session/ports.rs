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
