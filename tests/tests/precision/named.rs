//! Precision by name.

use crate::*;

#[test]
fn a_node_computes_in_the_precision_that_its_name_is_given() {
    let cpu = || StandIn::new(cpu(), "any");
    let want = run(&mut session(cpu(), None).unwrap());
    let pins = pinned(&["op:MatMul=float64", "node:second=float16"]);
    let mut s = make(graph(), cpu(), pins).unwrap();
    let names = |name: &str, dtype: &str| (name.to_string(), dtype.to_string());
    assert_eq!(
        dtypes(&s, "MatMul"),
        [names("first", "float64"), names("second", "float16")]
    );
    assert_eq!(dtypes(&s, "Tanh"), [names("tanh", "float32")]);
    let report = s.report();
    let told: Vec<_> = report.precisions.iter().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        (&told[1].node[..], &told[1].dtype[..]),
        ("second", "float16")
    );
    let got = run(&mut s);
    assert_eq!(got.dtype(), DType::F32);
    let (got, want) = (got.to_f64s().unwrap(), want.to_f64s().unwrap());
    let apart = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
    let apart = apart.fold(0.0, f64::max);
    assert!(apart > 0.0 && apart < 0.05, "{apart}");
}

#[test]
fn precision_reaches_into_bodies() {
    let branch = |name: &str, kind| {
        let mut g = Graph::new(name);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
        let out = g.apply(name, Unary(kind), &[x]);
        g.outputs.push(out);
        Arc::new(g)
    };
    let mut g = Graph::new("branches");
    let yes = g.add_input("yes", Fact::fixed(DType::Bool, &[]));
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let op = If {
        then_body: branch("sine", UnaryKind::Sin),
        else_body: branch("cosine", UnaryKind::Cos),
    };
    let out = g.apply("if", op, &[yes, x]);
    g.outputs.push(out);
    let cpu = StandIn::new(cpu(), "any");
    let mut s = make(g, cpu, pinned(&["node:sine=float16"])).unwrap();
    let x = Tensor::from_slice(&[2], &[0.1f32, 0.7]).unwrap();
    let inputs = [
        ("yes", Tensor::from_raw(DType::Bool, &[], &[1]).unwrap()),
        ("x", x),
    ];
    let out = pollster::block_on(s.run(&inputs, &RunOptions::default())).unwrap();
    let got = out[0].1.as_slice::<f32>().unwrap();
    let exact = [0.1f32.sin(), 0.7f32.sin()];
    assert!(got != exact && got.iter().zip(exact).all(|(g, e)| (g - e).abs() < 1e-3));
    assert_eq!(dtypes(&s, "Sin")[0].1, "float16");
}

#[test]
fn a_precision_that_cannot_be_is_an_error() {
    let error = |g: Graph, pin: &str| {
        let made = make(g, StandIn::new(cpu(), "any"), pinned(&[pin]));
        made.err().map(|e| (e.code(), e.node().map(str::to_string)))
    };
    let unknown = error(graph(), "node:third=float16");
    assert_eq!(unknown, Some((ErrorCode::InvalidValue, None)));
    let mut g = Graph::new("cast");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let out = g.apply("wider", Cast::new(DType::F64), &[x]);
    g.outputs.push(out);
    let named = error(g, "node:wider=float16");
    assert_eq!(named, Some((ErrorCode::Unsupported, Some("wider".into()))));
}
