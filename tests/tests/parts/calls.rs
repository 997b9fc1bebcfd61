//! What sessions call, in which order, and what ends when something fails.

use crate::*;

#[test]
fn a_session_makes_its_calls_in_order() {
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let log = calls.clone();
    let asked = StandIn::new(cpu(), "asked").on_call(move |call| {
        log.lock().unwrap().push(call);
        Ok(())
    });
    let made = || std::mem::take(&mut *calls.lock().unwrap());
    let mut g = Graph::new("open");
    let x = g.add_input(
        "x",
        Fact::new(DType::F32, Shape(vec![Dim::Symbol("n".into())])),
    );
    let out = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    g.outputs.push(out);
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(asked)];
    let options = kilim::core::SessionOptions::default();
    let session = kilim::core::Session::new(g, backends, cpu(), options);
    let mut session = pollster::block_on(session).unwrap();
    made();
    let mut run = |count: usize| {
        let x = Tensor::from_slice(&[count], &vec![1.0f32; count]).unwrap();
        pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
        made()
    };
    let plan = ["resize_begin", "gen_tensors", "gen_kernels", "resize_end"];
    let once = ["execute_begin", "write", "run", "read", "execute_end"];
    assert_eq!(
        run(3),
        [&plan[..], &once].concat(),
        "new shapes are planned"
    );
    assert_eq!(run(3), once, "the plan is there");
    assert_eq!(run(4), [&plan[..], &once].concat());
    assert_eq!(run(3), once, "the plan was kept");
    pollster::block_on(session.wait_finish()).unwrap();
    assert_eq!(made(), ["wait_finish"]);
}

/// `Neg` runs on one backend and `Exp` on another; the call of one of them that is named in `broken`
/// fails. Gives what was called on both.
fn begun_and_ended(broken: &'static str) -> (kilim::Error, Vec<String>) {
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let opened = Arc::new(AtomicBool::new(false));
    let backend = |id: &'static str, takes: &'static str| -> Arc<dyn Backend> {
        let (log, opened) = (calls.clone(), opened.clone());
        let on_call = move |call: &'static str| {
            log.lock().unwrap().push(format!("{id} {call}"));
            match opened.load(Ordering::Relaxed) && format!("{id} {call}") == broken {
                true => Err(kilim::Error::new(ErrorCode::Device, "broken")),
                false => Ok(()),
            }
        };
        let taking = move |node: &NodeSpec| node.op.name() == takes;
        Arc::new(StandIn::new(cpu(), id).taking(taking).on_call(on_call))
    };
    let mut g = Graph::new("two");
    let shape = Shape(vec![Dim::Symbol("n".into())]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[neg]);
    g.outputs.push(exp);
    let backends = vec![backend("one", "Neg"), backend("two", "Exp")];
    let options = kilim::core::SessionOptions::default();
    let session = kilim::core::Session::new(g, backends, cpu(), options);
    let mut session = pollster::block_on(session).unwrap();
    calls.lock().unwrap().clear();
    opened.store(true, Ordering::Relaxed);
    let x = Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    let run = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()));
    let made = std::mem::take(&mut *calls.lock().unwrap());
    (run.unwrap_err(), made)
}

#[test]
fn what_has_begun_ends_where_a_run_fails() {
    for broken in [
        "one run",
        "two run",
        "two write",
        "two read",
        "two execute_begin",
    ] {
        let (error, made) = begun_and_ended(broken);
        assert_eq!(
            error.message(),
            "broken",
            "the first error is the one that is given"
        );
        let count = |call: &str| made.iter().filter(|c| *c == call).count();
        for id in ["one", "two"] {
            let begun = count(&format!("{id} execute_begin"));
            let failed = usize::from(broken == format!("{id} execute_begin"));
            assert_eq!(begun, 1, "{broken}: {made:?}");
            assert_eq!(
                count(&format!("{id} execute_end")),
                begun - failed,
                "{broken}: {made:?}"
            );
        }
    }
    // The end of one that fails does not keep another from its own.
    let (_, made) = begun_and_ended("one execute_end");
    assert!(made.contains(&"two execute_end".to_string()), "{made:?}");
}

#[test]
fn what_has_begun_ends_where_planning_fails() {
    for broken in [
        "one gen_kernels",
        "two gen_tensors",
        "two resize_begin",
        "one resize_end",
    ] {
        let (error, made) = begun_and_ended(broken);
        assert_eq!(error.message(), "broken");
        let has = |call: &str| made.iter().any(|c| c == call);
        for id in ["one", "two"] {
            let begun = has(&format!("{id} resize_begin"));
            let failed = broken == format!("{id} resize_begin");
            assert!(begun, "{broken}: {made:?}");
            assert_eq!(
                has(&format!("{id} resize_end")),
                !failed,
                "{broken}: {made:?}"
            );
        }
        assert!(!has("one execute_begin"), "{broken}: {made:?}");
    }
}
