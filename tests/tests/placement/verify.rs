//! Two backends side by side, node by node.

use kilim::VerifyOptions;
use kilim::verify::{Agreement, NodeCheck};

use crate::*;

#[test]
fn verify_names_the_first_node_that_differs() {
    let cpu = backend("cpu").unwrap();
    let wrong = StandIn::new(cpu.clone(), "wrong").rewriting(|stage| {
        for node in &mut stage.nodes {
            if node.name == "size" {
                node.op = Arc::new(Unary(UnaryKind::Exp));
            }
        }
    });
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    let mut s = pollster::block_on(Runtime::shared().session(controlled(), options)).unwrap();
    let inputs = [("x", f32s(&[3.0]).into()), ("limit", f32s(&[10.0]).into())];
    let verified = |s: &mut kilim::Session| {
        pollster::block_on(kilim::verify(s, &inputs, &VerifyOptions::default())).unwrap()
    };
    let same = verified(&mut s);
    assert!(same.passed() && same.first.is_none(), "{same:?}");
    assert!(same.nodes.iter().any(|n| n.scope == ["loop"]), "{same:?}");

    let session = pollster::block_on(Session::new(
        controlled(),
        vec![Arc::new(wrong)],
        cpu,
        kilim::core::SessionOptions::default(),
    ));
    let mut s = session.unwrap();
    let found = verified(&mut s);
    let first = found.first.clone().unwrap();
    assert_eq!(
        (first.name.as_str(), first.scope.as_slice()),
        ("size", &["loop".to_string()][..])
    );
    assert!(!found.passed());
    // The whole model as the session runs it: its loop runs on with the wrong sizes.
    assert_eq!(found.outputs[0].agreement, Agreement::Differs, "{found:?}");
    let differing = found
        .nodes
        .iter()
        .filter(|n| n.agreement == Agreement::Differs);
    assert_eq!(differing.count(), 1, "{found:?}");
}

/// How the nodes and the outputs of a model compare.
type Compared = (Vec<Agreement>, Vec<Agreement>);

fn compared(s: &mut kilim::Session, how: &VerifyOptions) -> Compared {
    let inputs = [("x", f32s(&[0.0, 1.0]).into())];
    let found = pollster::block_on(kilim::verify(s, &inputs, how)).unwrap();
    let nodes = found.nodes.iter().map(|n| n.agreement);
    let outputs = found.outputs.iter().map(|o| o.agreement);
    (nodes.collect(), outputs.collect())
}

fn session(graph: Graph, first: StandIn, settings: &[&str]) -> kilim::Session {
    let cpu = backend("cpu").unwrap();
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(first), cpu.clone()];
    let mut options = kilim::core::SessionOptions {
        placement: Placement::Fixed,
        keep_weights: true,
        optimise: false,
        ..kilim::core::SessionOptions::default()
    };
    for setting in settings {
        options.configs.set(&setting.parse().unwrap());
    }
    let session = pollster::block_on(Session::new(graph, backends, cpu, options));
    session.unwrap()
}

/// The options name both backends, the tolerance, and what is asked of single backends.
#[test]
fn verify_compares_as_it_is_told() {
    use Agreement::{Differs, Same};
    let sine = StandIn::new(backend("cpu").unwrap(), "sine").rewriting(|stage| {
        for node in stage.nodes.iter_mut().filter(|n| n.name == "exp") {
            node.op = Arc::new(Unary(UnaryKind::Sin));
        }
    });
    let mut g = Graph::new("one");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
    g.outputs.push(exp);
    let mut s = session(g, sine, &["sine:timers=on", "cpu:dynamic=off"]);
    for (reference, candidate, tolerance, node, output) in [
        ("cpu", None, 1e-3, Differs, Differs),
        // The session runs on `sine` first, whoever is compared.
        ("cpu", Some("cpu"), 1e-3, Same, Differs),
        ("sine", Some("cpu"), 1e-3, Differs, Same),
        ("sine", None, 0.0, Same, Same),
        ("cpu", None, 10.0, Same, Same),
    ] {
        let how = VerifyOptions {
            reference: reference.into(),
            candidate: candidate.map(BackendId::from),
            tolerance,
            ..VerifyOptions::default()
        };
        let found = compared(&mut s, &how);
        assert_eq!(found, (vec![node], vec![output]), "{:?}", how.candidate);
    }
}

/// A backend may run a node only where it knows the weights; what it does not run, and what is random,
/// is skipped.
#[test]
fn verify_asks_about_nodes_as_they_are() {
    use Agreement::{Same, Skipped};
    let picky = StandIn::new(backend("cpu").unwrap(), "picky").taking(|n| match n.op.name() {
        "Add" => n.inputs[1].as_ref().is_some_and(|w| w.value.is_some()),
        op => op != "Exp",
    });
    let mut g = Graph::new("three");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let w = g.add_constant("w", f32s(&[1.0, 2.0]));
    let sum = g.apply("sum", Binary::new(BinaryKind::Add), &[x, w]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[sum]);
    let noise = Random {
        distribution: Distribution::Normal {
            mean: 0.0,
            deviation: 1.0,
        },
        dtype: None,
        shape: None,
        seed: None,
    };
    let noise = g.apply("noise", noise, &[x]);
    g.outputs.extend([exp, noise]);
    let mut s = session(g, picky, &[]);
    let (nodes, outputs) = compared(&mut s, &VerifyOptions::default());
    assert_eq!(nodes, [Same, Skipped, Skipped]);
    assert_eq!(outputs[0], Same);
}

#[test]
fn verify_compares_the_gpu() {
    if gpu().is_none() {
        return;
    }
    let options = on(&["wgpu", "cpu"]);
    let mut s = pollster::block_on(Runtime::shared().session(controlled(), options)).unwrap();
    let inputs = [("x", f32s(&[3.0]).into()), ("limit", f32s(&[10.0]).into())];
    let found =
        pollster::block_on(kilim::verify(&mut s, &inputs, &VerifyOptions::default())).unwrap();
    assert!(found.passed(), "{found:?}");
    assert_eq!(found.candidate, "wgpu");
    let same = |n: &&NodeCheck| n.agreement == Agreement::Same;
    assert!(found.nodes.iter().filter(same).count() >= 4, "{found:?}");
}
