//! Tensors in host memory of the user's, which `cpu` reads and writes where they are.

use std::ptr::NonNull;

use kilim::core::ops::CustomOperator;
use kilim::{Datum, DeviceTensor, Keep, MemoryHandle, UserMemory};
use kilim_tests::machine::gpu_beside_others;
use kilim_tests::onnx::{Node, model};

use crate::*;

/// Words of the user's, from which tensors are imported.
struct Words(Vec<f32>);

impl Words {
    fn new(words: &[f32]) -> Words {
        Words(words.to_vec())
    }

    fn start(&mut self) -> NonNull<u8> {
        NonNull::new(self.0.as_mut_ptr().cast()).unwrap()
    }

    /// `shape` elements from a word on.
    fn import(
        &mut self,
        session: &mut Session,
        from: usize,
        shape: &[usize],
    ) -> Result<DeviceTensor> {
        let bytes = 4 * (self.0.len() - from);
        // SAFETY: tests keep the words longer than their tensors, and use them between runs.
        let memory = unsafe { UserMemory::new(MemoryHandle::Host(self.start()), 4 * from, bytes) };
        session.import(&"cpu".into(), DType::F32, shape, &memory)
    }
}

fn into(output: &str, memory: &DeviceTensor) -> RunOptions {
    RunOptions {
        keep: Keep::default().with_memory(output, memory.clone()),
        ..RunOptions::default()
    }
}

fn data(
    session: &mut Session,
    x: impl Into<Datum>,
    options: &RunOptions,
) -> Result<Vec<(String, Datum)>> {
    pollster::block_on(session.run_data(&[("x", x.into())], options))
}

/// `y = look(x)`: twice the input, and where input and output were.
fn looking() -> (Session, Arc<Mutex<[usize; 2]>>) {
    let places = Arc::new(Mutex::new([0; 2]));
    let seen = places.clone();
    let look = CustomOperator::new("com.example", "Look", |_, ctx| {
        Ok(vec![ctx.fact(0)?.clone()])
    });
    let look = look.host(move |_, inputs, outputs| {
        let x = inputs[0].as_ref().unwrap();
        *seen.lock().unwrap() = [x.bytes.as_ptr().addr(), outputs[0].bytes.as_ptr().addr()];
        let words = x
            .bytes
            .as_chunks::<4>()
            .0
            .iter()
            .zip(outputs[0].bytes.as_chunks_mut::<4>().0);
        for (x, y) in words {
            *y = (2.0 * f32::from_ne_bytes(*x)).to_ne_bytes();
        }
        Ok(())
    });
    let node = Node {
        domain: "com.example",
        op: "Look",
        inputs: &["x"],
        outputs: &["y"],
        attributes: &[],
    };
    let model = model(&[node], &[("x", &["n"])], &[("y", &["n"])]);
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.operators.add(look);
    let session = pollster::block_on(Runtime::shared().load(model, options)).unwrap();
    (session, places)
}

#[test]
fn host_memory_of_the_user_is_read_and_written_in_place() {
    let (mut session, places) = looking();
    let (mut a, mut b) = (Words::new(&[9.0, 1.0, 2.0]), Words::new(&[9.0; 4]));
    let x = a.import(&mut session, 1, &[2]).unwrap();
    let y = b.import(&mut session, 1, &[2]).unwrap();
    for values in [[1.0, 2.0], [-3.0, 4.0]] {
        a.0[1..].copy_from_slice(&values);
        let out = data(&mut session, x.clone(), &into("y", &y)).unwrap();
        assert_eq!(out[0].1, Datum::Device(y.clone()));
        assert_eq!(b.0, [9.0, 2.0 * values[0], 2.0 * values[1], 9.0]);
        let here = [a.start(), b.start()].map(|start| start.addr().get() + 4);
        assert_eq!(*places.lock().unwrap(), here, "nothing is copied");
    }
    // Without memory of the user's all is as before, and other memory may come.
    let out = data(
        &mut session,
        f32s(&[2], &[5.0, 6.0]),
        &RunOptions::default(),
    )
    .unwrap();
    assert_eq!(*out[0].1.tensor().unwrap(), f32s(&[2], &[10.0, 12.0]));
    let mut c = Words::new(&[0.0; 3]);
    let other = c.import(&mut session, 0, &[3]).unwrap();
    data(&mut session, f32s(&[3], &[1.0; 3]), &into("y", &other)).unwrap();
    assert_eq!((c.0, b.0), (vec![2.0; 3], vec![9.0, -6.0, 8.0, 9.0]));
    let kept = RunOptions {
        keep: Keep::new(["*"]),
        ..RunOptions::default()
    };
    let out = data(&mut session, x, &kept).unwrap();
    let Datum::Device(kept) = &out[0].1 else {
        panic!("{out:?} was not kept")
    };
    assert_eq!(
        pollster::block_on(kept.read()).unwrap(),
        f32s(&[2], &[-6.0, 8.0])
    );
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let (mut session, _) = looking();
    let mut words = Words::new(&[9.0; 4]);
    let mut at = |offset, bytes, dtype, shape: &[usize]| {
        // SAFETY: nothing runs on it.
        let memory = unsafe { UserMemory::new(MemoryHandle::Host(words.start()), offset, bytes) };
        session
            .import(&"cpu".into(), dtype, shape, &memory)
            .map(drop)
            .map_err(|e| e.code())
    };
    assert_eq!(at(4, 12, DType::F32, &[3]), Ok(()));
    assert_eq!(at(4, 11, DType::F32, &[3]), Err(ErrorCode::InvalidValue));
    assert_eq!(
        at(2, 12, DType::F32, &[3]),
        Err(ErrorCode::InvalidValue),
        "an address of no float"
    );
    assert_eq!(at(0, 16, DType::String, &[1]), Err(ErrorCode::DType));
    assert_eq!(
        at(0, 16, DType::F32, &[usize::MAX, 2]),
        Err(ErrorCode::Limit)
    );
    let y = words.import(&mut session, 0, &[2]).unwrap();
    let error = data(&mut session, f32s(&[3], &[1.0; 3]), &into("y", &y)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Shape, "{error}");
    let error = data(&mut session, y.clone(), &into("y", &y)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
    drop(y);
    assert_eq!(words.0, [9.0; 4]);
}

/// `last` is what `x` was in the run before: it must not be the user's memory, which has become another.
#[test]
fn a_variable_does_not_stay_in_memory_of_the_user() {
    let mut g = Graph::new("last");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let last = g.add_variable("last", f32s(&[2], &[0.0, 0.0]));
    let sum = g.apply("sum", add(), &[x, last]);
    g.outputs.push(sum);
    g.set_variables(&[x]);
    let mut s = session(g).unwrap();
    let mut words = Words::new(&[1.0, 2.0]);
    let memory = words.import(&mut s, 0, &[2]).unwrap();
    data(&mut s, memory.clone(), &RunOptions::default()).unwrap();
    words.0.copy_from_slice(&[10.0, 20.0]);
    let out = data(&mut s, memory, &RunOptions::default()).unwrap();
    assert_eq!(*out[0].1.tensor().unwrap(), f32s(&[2], &[11.0, 22.0]));
}

/// A shape that is read while a run is planned is not kept with the plan.
#[test]
fn a_shape_in_memory_of_the_user_is_read_anew() {
    let mut g = Graph::new("reshape");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let shape = g.add_input("shape", Fact::fixed(DType::I64, &[2]));
    let out = g.apply("reshape", Reshape { allow_zero: false }, &[x, shape]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let mut words = [2i64, 2];
    let start = NonNull::from(&mut words);
    // SAFETY: the words are there until the end, and used between runs.
    let memory = unsafe { UserMemory::new(MemoryHandle::Host(start.cast()), 0, 16) };
    let shape = s.import(&"cpu".into(), DType::I64, &[2], &memory).unwrap();
    for want in [[2, 2], [4, 1], [1, 4]] {
        // SAFETY: no run uses the words now.
        unsafe { start.write(want.map(|n| i64::try_from(n).unwrap())) };
        let inputs = [
            ("x", Datum::from(f32s(&[4], &[1.0; 4]))),
            ("shape", shape.clone().into()),
        ];
        let out = pollster::block_on(s.run_data(&inputs, &RunOptions::default())).unwrap();
        assert_eq!(out[0].1.tensor().unwrap().shape(), want);
    }
}

/// A body has values of its own; what it gives is brought where the user wants it.
#[test]
fn outputs_of_control_flow_go_into_memory_of_the_user() {
    let mut body = Graph::new("body");
    let inner = body.add_input("inner", Fact::fixed(DType::F32, &[2]));
    let double = body.apply("double", add(), &[inner, inner]);
    body.outputs.push(double);
    let body = Arc::new(body);
    let mut g = Graph::new("if");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let yes = g.add_input("yes", Fact::fixed(DType::Bool, &[]));
    let both = If {
        then_body: body.clone(),
        else_body: body,
    };
    let y = g.apply("y", both, &[yes, x]);
    g.outputs.push(y);
    let mut s = session(g).unwrap();
    let mut words = Words::new(&[0.0; 2]);
    let y = words.import(&mut s, 0, &[2]).unwrap();
    let name = s.outputs()[0].name.clone();
    let inputs = [
        ("x", f32s(&[2], &[1.0, 2.0]).into()),
        ("yes", Tensor::from_bools(&[], &[true]).unwrap().into()),
    ];
    pollster::block_on(s.run_data(&inputs, &into(&name, &y))).unwrap();
    assert_eq!(words.0, [2.0, 4.0]);
}

/// The GPU takes no memory of the user's and no queue; what `cpu` has imported passes over the host.
#[test]
fn wgpu_takes_no_memory_and_no_queue_of_the_user() {
    if gpu_beside_others().is_none() {
        return;
    }
    let mut g = Graph::new("double");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let y = g.apply("y", add(), &[x, x]);
    g.outputs.push(y);
    let mut options = LoadOptions {
        backends: ["wgpu", "cpu"].map(BackendId::from).to_vec(),
        ..LoadOptions::default()
    };
    options.placement = kilim::Placement::Fixed;
    let mut s = pollster::block_on(Runtime::shared().session(g.clone(), options.clone())).unwrap();
    let mut words = Words::new(&[1.0, 2.0, 0.0, 0.0]);
    // SAFETY: nothing is imported.
    let memory = unsafe { UserMemory::new(MemoryHandle::Host(words.start()), 0, 8) };
    let error = s
        .import(&"wgpu".into(), DType::F32, &[2], &memory)
        .unwrap_err();
    assert_eq!(
        (error.code(), error.hint()),
        (ErrorCode::Unsupported, Some("taken by `cpu`"))
    );
    assert_eq!(
        s.queue(&"wgpu".into()).unwrap_err().code(),
        ErrorCode::Unsupported
    );
    let (x, y) = (
        words.import(&mut s, 0, &[2]).unwrap(),
        words.import(&mut s, 2, &[2]).unwrap(),
    );
    let name = s.outputs()[0].name.clone();
    data(&mut s, x, &into(&name, &y)).unwrap();
    drop(y);
    assert_eq!(words.0, [1.0, 2.0, 2.0, 4.0]);
    // SAFETY: the session is refused.
    options.configs.entry("wgpu").queue = Some(unsafe { kilim::CommandQueue::new(1) });
    let error = pollster::block_on(Runtime::shared().session(g, options))
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported);
}
