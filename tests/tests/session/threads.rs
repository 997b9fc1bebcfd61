//! The threads of the CPU's kernels.

use crate::*;
use kilim_tests::operators::Cut;

/// A product with fixed weights, its bias, tanh, and the product of the result with itself.
fn network() -> Graph {
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0);
    let mut g = Graph::new("network");
    let x = g.add_input("x", Fact::new(DType::F32, symbolic(&["n", "k"])));
    let weights: Vec<f32> = numbers(96 * 203).collect();
    let w = g.add_constant("w", f32s(&[96, 203], &weights));
    let bias: Vec<f32> = numbers(203).collect();
    let b = g.add_constant("b", f32s(&[203], &bias));
    let product = g.apply("product", MatMul::default(), &[x, w]);
    let sum = g.apply("sum", add(), &[product, b]);
    let tanh = g.apply("tanh", Unary(UnaryKind::Tanh), &[sum]);
    let turned = g.apply("turned", Transpose { perm: vec![1, 0] }, &[tanh]);
    let out = g.apply("squares", MatMul::default(), &[turned, tanh]);
    g.outputs.push(out);
    g
}

fn on_threads(threads: usize) -> Session {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.context.threads = Some(threads);
    pollster::block_on(Runtime::shared().session(network(), options)).unwrap()
}

/// The output for `rows` rows; small work is spread over the threads, too.
fn result(session: &mut Session, rows: usize) -> Vec<f32> {
    let x: Vec<f32> = (0..rows * 96).map(|i| (i % 89) as f32 / 89.0).collect();
    let options = RunOptions {
        abort: Some(Arc::new(Cut(64))),
        ..RunOptions::default()
    };
    let feeds = [("x", f32s(&[rows, 96], &x))];
    let out = pollster::block_on(session.run(&feeds, &options)).unwrap();
    out[0].1.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn results_are_those_of_one_thread_and_the_same_in_every_run() {
    let mut alone = on_threads(1);
    for threads in [2, 3, 8] {
        let mut many = on_threads(threads);
        for rows in [1, 5, 64, 130] {
            let want = result(&mut alone, rows);
            let first = result(&mut many, rows);
            for (got, want) in first.iter().zip(&want) {
                let scale = want.abs().max(1.0);
                assert!(
                    (got - want).abs() <= 1e-5 * scale,
                    "{threads}, {rows}: {got} {want}"
                );
            }
            for _ in 0..20 {
                assert_eq!(
                    result(&mut many, rows),
                    first,
                    "{threads} threads, {rows} rows"
                );
            }
        }
    }
}

#[test]
fn sessions_on_several_threads_share_the_pool() {
    let want = result(&mut on_threads(3), 33);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut own = on_threads(3);
                for _ in 0..150 {
                    assert_eq!(result(&mut own, 33), want);
                }
            });
        }
    });
}

#[test]
fn an_abort_stops_all_threads_and_the_session_goes_on() {
    let mut session = on_threads(4);
    let want = result(&mut session, 40);
    let feeds = [("x", f32s(&[2000, 96], &vec![0.25; 2000 * 96]))];
    let options = RunOptions {
        timeout: Some(0.0),
        ..RunOptions::default()
    };
    let stopped = pollster::block_on(session.run(&feeds, &options));
    assert_eq!(stopped.unwrap_err().code(), ErrorCode::Aborted);
    assert_eq!(result(&mut session, 40), want);
}
