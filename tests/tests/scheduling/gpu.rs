//! The GPU beside the CPU, where there is a GPU.

use crate::*;

const WIDE: usize = 256;

/// Products one after the other, those of each backend named after it: long enough to be seen.
fn products(g: &mut Graph, backend: &str, mut x: kilim::core::ValueId) -> kilim::core::ValueId {
    let turn: Vec<f32> = (0..WIDE * WIDE)
        .map(|i| f32::from(u8::from(i % (WIDE + 1) == 1)))
        .collect();
    for i in 0..3 {
        let w = Tensor::from_slice(&[WIDE, WIDE], &turn).unwrap();
        let w = g.add_constant(format!("{backend} w{i}"), w);
        x = g.apply(format!("{backend} {i}"), MatMul::default(), &[x, w]);
    }
    x
}

fn on_gpu_and_cpu(graph: Graph, scheduler: Arc<dyn Scheduler>) -> Option<Session> {
    let backends = vec![gpu()?, cpu()];
    let node = |name: &str| match name.split_once(' ') {
        Some((id, _)) => format!("node:{name}={id}").parse().unwrap(),
        None => format!("node:{name}=cpu").parse().unwrap(),
    };
    let options = SessionOptions {
        pins: graph.nodes.iter().map(|n| node(&n.name)).collect(),
        optimise: false,
        scheduler,
        ..SessionOptions::default()
    };
    let session = Session::new(graph, backends, cpu(), options);
    Some(pollster::block_on(session).unwrap())
}

fn square() -> Tensor {
    let data: Vec<f32> = (0..WIDE * WIDE).map(|i| (i % 17) as f32).collect();
    Tensor::from_slice(&[WIDE, WIDE], &data).unwrap()
}

fn wide_input(g: &mut Graph) -> kilim::core::ValueId {
    g.add_input("x", Fact::fixed(DType::F32, &[WIDE, WIDE]))
}

fn traced() -> (Arc<Trace>, RunOptions) {
    let trace = Arc::new(Trace::new());
    let options = RunOptions {
        trace: Some(trace.clone()),
        ..RunOptions::default()
    };
    (trace, options)
}

#[test]
fn the_gpu_works_beside_the_cpu() {
    let graph = || {
        let mut g = Graph::new("beside");
        let x = wide_input(&mut g);
        let (a, b) = (products(&mut g, "wgpu", x), products(&mut g, "cpu", x));
        let sum = g.apply("sum", Binary::new(BinaryKind::Add), &[a, b]);
        g.outputs.push(sum);
        g
    };
    let run = |scheduler: Arc<dyn Scheduler>| {
        let mut s = on_gpu_and_cpu(graph(), scheduler)?;
        let (trace, options) = traced();
        let out = pollster::block_on(s.run(&[("x", square())], &options)).unwrap();
        let events = trace.events();
        let parts = |id: &'static str| {
            let on = move |e: &&TraceEvent| e.backend == id && !e.name.contains('→');
            events.iter().filter(on)
        };
        let both = parts("wgpu").any(|g| parts("cpu").any(|c| overlap(g, c)));
        Some((out[0].1.clone(), both, events.clone()))
    };
    let Some((want, beside, _)) = run(Arc::new(SyncScheduler)) else {
        return;
    };
    assert!(!beside, "one after the other is not beside each other");
    // On a busy machine a thread may come to its turn when the other is done.
    let mut seen = Vec::new();
    let together = (0..8).any(|_| {
        let (got, beside, events) = run(Arc::new(OverlappedScheduler::default())).unwrap();
        assert_eq!(got, want);
        seen.push(events);
        beside
    });
    assert!(together, "{seen:?}");
}

#[test]
fn the_next_run_is_on_the_gpu_while_the_last_is_on_the_cpu() {
    let mut g = Graph::new("pipeline");
    let x = wide_input(&mut g);
    let half = products(&mut g, "wgpu", x);
    let out = products(&mut g, "cpu", half);
    g.outputs.push(out);
    let scheduler = Arc::new(OverlappedScheduler::with_runs(2));
    let Some(mut s) = on_gpu_and_cpu(g, scheduler) else {
        return;
    };
    let one = pollster::block_on(s.run(&[("x", square())], &RunOptions::default())).unwrap();
    let beside = |a: &TraceEvent, b: &TraceEvent| {
        a.run != b.run && a.backend == "wgpu" && b.backend == "cpu" && overlap(a, b)
    };
    // On a busy machine all runs may have their turn on the GPU before one of them has its on the CPU.
    let mut seen = Vec::new();
    let together = (0..8).any(|_| {
        let (trace, options) = traced();
        let handles: Vec<_> = (0..4)
            .map(|_| s.run_async(&[("x", square().into())], &options).unwrap())
            .collect();
        for handle in handles {
            assert_eq!(handle.wait().unwrap()[0].1, one[0].1.clone().into());
        }
        let events = trace.events();
        let any = events.iter().any(|a| events.iter().any(|b| beside(a, b)));
        seen.push(events);
        any
    });
    assert!(together, "{seen:?}");
}
