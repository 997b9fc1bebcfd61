//! Tensors in memory of the user's of a library in Rust: the gate of `tests/plugins/gate`, whose kernels run in calls, on a thread of
//! the library's, or in memory of the session's.

use std::ptr::NonNull;

use kilim::{CommandQueue, DType, Datum, ErrorCode, Keep, MemoryHandle};

use crate::user_memory::{
    Words, bring, get, import, in_file, into, memory_file, part, put, run_on,
};
use crate::*;

const FEATURES: [&str; 3] = ["", "queued", "host,queued"];

/// The folder with the gate of these features.
fn gate(features: &str) -> PathBuf {
    let target = format!("plugin-gate-{}", features.replace(',', "-"));
    built("backend_gate", &target, features)
}

fn gate_session(features: &str, model: &[u8]) -> Session {
    load(model, options(&["gate"], &gate(features))).unwrap()
}

/// `y = x + x` of three elements.
fn plus() -> Vec<u8> {
    let nodes = [node("com.example", "Plus", &["x", "x"], &["y"])];
    model(&nodes, &[("x", &["3"])], &[("y", &["3"])])
}

#[test]
fn kernels_in_rust_compute_in_files_of_the_user() {
    for features in FEATURES {
        let mut session = gate_session(features, &plus());
        let (from, to) = (memory_file(32), memory_file(32));
        let x = import(&mut session, "gate", &in_file(&from, 8, 12)).unwrap();
        let y = import(&mut session, "gate", &in_file(&to, 16, 16)).unwrap();
        for values in [[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]] {
            put(&from, 8, &values);
            let out = run_on(&mut session, x.clone(), &into("y", &y)).unwrap();
            pollster::block_on(session.wait_finish()).unwrap();
            assert_eq!(out[0].1, Datum::Device(y.clone()));
            assert_eq!(get(&to, 16, 3), values.map(|v: f32| 2.0 * v), "{features}");
            assert_eq!((get(&to, 0, 4), get(&to, 28, 1)), (vec![0.0; 4], vec![0.0]));
        }
        // An output is an input of the next run, and all is as before without memory of the user's.
        let out = run_on(&mut session, y.clone(), &RunOptions::default()).unwrap();
        assert_eq!(
            out[0].1.tensor().unwrap().as_slice::<f32>().unwrap(),
            [-16.0, 20.0, 24.0]
        );
        assert_eq!(bring(&y), [-8.0, 10.0, 12.0]);
        for (offset, bytes) in [(24, 12), (4, 12), (0, 11)] {
            let error = import(&mut session, "gate", &in_file(&from, offset, bytes)).unwrap_err();
            assert_eq!(
                error.code(),
                ErrorCode::InvalidValue,
                "{offset} {bytes}: {error}"
            );
        }
    }
}

/// `Place` tells where its input and its output are.
#[test]
fn kernels_in_rust_compute_in_host_memory_of_the_user() {
    let nodes = [node("com.example", "Place", &["x"], &["y"])];
    let model = model(&nodes, &[("x", &["3"])], &[("y", &["2"])]);
    for features in FEATURES {
        let mut session = gate_session(features, &model);
        let (mut from, mut to) = (Words([0.0; 6]), [0i64; 3]);
        let (a, b) = (NonNull::from(&mut from), NonNull::from(&mut to));
        let x = part(MemoryHandle::Host(a.cast()), 8, 12);
        let x = import(&mut session, "gate", &x).unwrap();
        let y = part(MemoryHandle::Host(b.cast()), 8, 16);
        let y = session
            .import(&"gate".into(), DType::I64, &[2], &y)
            .unwrap();
        run_on(&mut session, x, &into("y", &y)).unwrap();
        pollster::block_on(session.wait_finish()).unwrap();
        drop(y);
        let places = [a.addr().get() + 8, b.addr().get() + 8].map(|place| place as i64);
        assert_eq!(to, [0, places[0], places[1]], "{features}");
    }
}

/// A run whose only output goes into memory of the user's fails with its kernel, wherever that runs.
#[test]
fn what_fails_in_memory_of_the_user_fails_its_run() {
    let nodes = [node("com.example", "Wait", &["x"], &["y"])];
    let model = model(&nodes, &[("x", &["3"])], &[("y", &["3"])]);
    for features in FEATURES {
        let mut options = options(&["gate"], &gate(features));
        for setting in ["gate:file=/nowhere/at/all", "gate:seconds=0.01"] {
            options.configs.set(&setting.parse().unwrap());
        }
        let mut session = load(&model, options).unwrap();
        let file = memory_file(12);
        let y = import(&mut session, "gate", &in_file(&file, 0, 12)).unwrap();
        let x = Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap();
        let error = run_on(&mut session, x, &into("y", &y)).unwrap_err();
        assert_eq!(
            (error.code(), error.node()),
            (ErrorCode::Device, Some("y")),
            "{features}"
        );
    }
}

#[test]
fn a_library_in_rust_takes_a_queue_and_tells_it() {
    let id = BackendId::from("gate");
    let mut options = options(&["gate"], &gate(""));
    let session = load(&plus(), options.clone()).unwrap();
    assert_eq!(session.queue(&id).unwrap().handle(), 7);
    // SAFETY: the library only tells the number.
    options.configs.entry("gate").queue = Some(unsafe { CommandQueue::new(9) });
    let session = load(&plus(), options).unwrap();
    assert_eq!(session.queue(&id).unwrap().handle(), 9);
    // The sample has none.
    let mut options = crate::options(&["cube", "cpu"], &sample_in_rust());
    let nodes = [node("", "Neg", &["x"], &["y"])];
    let negated = model(&nodes, &[("x", &["3"])], &[("y", &["3"])]);
    assert!(load(&negated, options.clone()).is_ok());
    // SAFETY: the library is refused, and uses nothing.
    options.configs.entry("cube").queue = Some(unsafe { CommandQueue::new(9) });
    let error = load(&negated, options).err().unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported);
}

/// Both outputs are one tensor of the library's, which lies in one memory only: the other is brought there.
#[test]
fn one_tensor_goes_into_two_memories() {
    for features in FEATURES {
        let nodes = [
            node("com.example", "Plus", &["x", "x"], &["y"]),
            node("", "Identity", &["y"], &["z"]),
        ];
        let model = model(&nodes, &[("x", &["3"])], &[("y", &["3"]), ("z", &["3"])]);
        let mut session = gate_session(features, &model);
        let files = [(); 2].map(|()| memory_file(12));
        let [y, z] = files
            .each_ref()
            .map(|file| import(&mut session, "gate", &in_file(file, 0, 12)).unwrap());
        let options = RunOptions {
            keep: Keep::default().with_memory("y", y).with_memory("z", z),
            ..RunOptions::default()
        };
        let x = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
        run_on(&mut session, x, &options).unwrap();
        let both = files.each_ref().map(|file| get(file, 0, 3));
        assert_eq!(both, [[2.0, 4.0, 6.0]; 2], "{features}");
    }
}
