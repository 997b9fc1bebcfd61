//! Tensors in memory of the user's, and command queues, of the library of `tests/plugins/handles.c`.

use std::ptr::NonNull;

use kilim::{
    CommandQueue, DType, Datum, DeviceTensor, ErrorCode, Keep, MemoryHandle, Placement, UserMemory,
};
use kilim_tests::machine::cpu;
use kilim_tests::stand_in::StandIn;

use crate::user_memory::{
    Words, bring, get, import, in_file, into, memory_file, part, put, run_on,
};
use crate::*;

fn slot(number: u64) -> MemoryHandle {
    MemoryHandle::Own("slot".into(), number)
}

/// The library, compiled for one test, and the file that it writes.
struct Handles {
    folder: PathBuf,
    log: PathBuf,
}

const ID: &str = "handles";

impl Handles {
    fn new(name: &str, defines: &[&str]) -> Handles {
        let folder = folder(&format!("handles-{name}"));
        let log = folder.join("log");
        let mut all: Vec<String> = defines.iter().map(ToString::to_string).collect();
        all.push(format!("LOG=\"{}\"", log.display()));
        compile("tests/plugins/handles.c", &folder, ID, &all);
        Handles { folder, log }
    }

    fn options(&self) -> LoadOptions {
        let mut options = options(&[ID, "cpu"], &self.folder);
        options.placement = Placement::Fixed;
        options
    }

    fn load(&self, model: &[u8]) -> Session {
        let session = load(model, self.options()).unwrap();
        self.told();
        session
    }

    /// The calls since this was asked last.
    fn told(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let _ = std::fs::remove_file(&self.log);
        text.lines().map(str::to_string).collect()
    }
}

/// `y = relu(x)` of three elements.
fn relu() -> Vec<u8> {
    let nodes = [node("", "Relu", &["x"], &["y"])];
    model(&nodes, &[("x", &["3"])], &[("y", &["3"])])
}

fn imported(session: &mut Session, memory: &UserMemory) -> DeviceTensor {
    import(session, ID, memory).unwrap()
}

#[test]
fn a_run_reads_and_writes_files_of_the_user() {
    for (name, defines) in [
        ("files", &[][..]),
        ("copies", &["COPIES"]),
        ("files-host", &["HOST"]),
    ] {
        let handles = Handles::new(name, defines);
        let mut session = handles.load(&relu());
        let (from, to) = (memory_file(64), memory_file(64));
        let x = imported(&mut session, &in_file(&from, 16, 12));
        let y = imported(&mut session, &in_file(&to, 8, 20));
        // Maps hold the memory: other descriptors of these files are still needed only to look into them.
        put(&to, 0, &[9.0; 16]);
        assert_eq!(handles.told(), ["import dma-buf"; 2]);
        for values in [[-1.0, 2.0, 3.0], [4.0, -5.0, 6.0]] {
            put(&from, 16, &values);
            let out = run_on(&mut session, x.clone(), &into("y", &y)).unwrap();
            assert_eq!(out[0].1, Datum::Device(y.clone()));
            assert_eq!(get(&to, 8, 3), values.map(|v: f32| v.max(0.0)));
            assert_eq!(
                (get(&to, 0, 2), get(&to, 20, 11)),
                (vec![9.0; 2], vec![9.0; 11])
            );
            let mut told = handles.told();
            told.retain(|call| !call.starts_with("attach"));
            assert_eq!(
                told,
                ["use", "keep_in", "run"],
                "nothing passes over the host"
            );
        }
        // The second run has other memory.
        let other = memory_file(12);
        let elsewhere = imported(&mut session, &in_file(&other, 0, 12));
        let options = into("y", &elsewhere);
        run_on(&mut session, y.clone(), &options).unwrap();
        assert_eq!(get(&other, 0, 3), [4.0, 0.0, 6.0]);
        // And the third none.
        let usual = RunOptions::default();
        let out = run_on(
            &mut session,
            Tensor::from_slice(&[3], &[-1.0f32, 7.0, 8.0]).unwrap(),
            &usual,
        )
        .unwrap();
        assert_eq!(
            out[0].1.tensor().unwrap().as_slice::<f32>().unwrap(),
            [0.0, 7.0, 8.0]
        );
        assert_eq!(get(&other, 0, 3), [4.0, 0.0, 6.0]);
        let started = session
            .run_async(&[("x", Datum::from(x.clone()))], &options)
            .unwrap();
        started.wait().unwrap();
        assert_eq!(bring(&elsewhere), [4.0, 0.0, 6.0]);
        handles.told();
        drop(session);
        drop((x, y, elsewhere, options, out));
        assert_eq!(handles.told(), ["release_kept"; 3]);
    }
}

/// A descriptor may be closed when its memory is imported.
#[test]
fn memory_outlives_its_descriptor() {
    let handles = Handles::new("closed", &[]);
    let mut session = handles.load(&relu());
    let file = memory_file(12);
    put(&file, 0, &[-1.0, 2.0, 3.0]);
    let x = imported(&mut session, &in_file(&file, 0, 12));
    drop(file);
    let out = run_on(&mut session, x, &RunOptions::default()).unwrap();
    assert_eq!(
        out[0].1.tensor().unwrap().as_slice::<f32>().unwrap(),
        [0.0, 2.0, 3.0]
    );
}

#[test]
fn a_backend_has_handles_of_its_own() {
    let handles = Handles::new("own", &[]);
    let mut session = handles.load(&relu());
    let file = memory_file(12);
    put(&file, 0, &[-1.0, 2.0, 3.0]);
    let x = imported(&mut session, &in_file(&file, 0, 12));
    let first = imported(&mut session, &part(slot(0), 4, 12));
    let second = imported(&mut session, &part(slot(1), 0, 64));
    run_on(&mut session, x, &into("y", &first)).unwrap();
    put(&file, 0, &[0.0; 3]);
    run_on(&mut session, first.clone(), &into("y", &second)).unwrap();
    assert_eq!(
        (bring(&first), bring(&second)),
        (vec![0.0, 2.0, 3.0], vec![0.0, 2.0, 3.0])
    );
    let none = import(&mut session, ID, &part(slot(2), 0, 12)).unwrap_err();
    assert_eq!(none.code(), ErrorCode::InvalidValue);
    assert!(none.message().contains("no such slot"), "{none}");
    let other = part(MemoryHandle::Own("cl_mem".into(), 0), 0, 12);
    let other = import(&mut session, ID, &other).unwrap_err();
    assert_eq!(
        (other.code(), other.got()),
        (ErrorCode::Unsupported, Some("cl_mem"))
    );
}

#[test]
fn host_memory_of_the_user_is_not_copied() {
    for (name, defines, mapped) in [("device", &[][..], true), ("host", &["HOST"], false)] {
        let handles = Handles::new(name, defines);
        let mut session = handles.load(&relu());
        // The first eight bytes are not the tensors'.
        let (mut from, mut to) = (Words([-1.0, 2.0, -1.0, 2.0, 3.0, 0.0]), Words([9.0; 6]));
        let [a, b] = [&mut from, &mut to].map(|words| NonNull::from(words).cast::<u8>());
        let x = imported(&mut session, &part(MemoryHandle::Host(a), 8, 12));
        let y = imported(&mut session, &part(MemoryHandle::Host(b), 8, 12));
        let at = |call: &str, start: NonNull<u8>, offset| {
            format!("{call} {:p}", start.as_ptr().wrapping_add(offset))
        };
        if mapped {
            assert_eq!(
                handles.told(),
                [at("import host", a, 0), at("import host", b, 0)]
            );
        }
        run_on(&mut session, x.clone(), &into("y", &y)).unwrap();
        let told = handles.told();
        match mapped {
            true => assert_eq!(told, ["use", "keep_in", "run"]),
            false => assert_eq!(
                told[1..],
                [at("attach", a, 8), at("attach", b, 8), "run".to_string()]
            ),
        }
        drop((x, y));
        assert_eq!(to.0, [9.0, 9.0, 0.0, 2.0, 3.0, 9.0]);
    }
}

/// `e = exp(relu(x))` on `cpu`, `x` itself, and `r = relu(x)`, and all three go into files.
#[test]
fn what_another_backend_computes_passes_over_the_host() {
    let handles = Handles::new("others", &[]);
    let nodes = [
        node("", "Relu", &["x"], &["r"]),
        node("", "Exp", &["r"], &["e"]),
        node("", "Identity", &["x"], &["i"]),
    ];
    let outputs: [(&str, &[&str]); 3] = [("e", &["3"]), ("i", &["3"]), ("r", &["3"])];
    let mut session = handles.load(&model(&nodes, &[("x", &["3"])], &outputs));
    assert_eq!(at(&session, "Exp").as_deref(), Some("cpu"));
    let files = [(); 4].map(|()| memory_file(12));
    put(&files[3], 0, &[-1.0, 0.0, 2.0]);
    let [e, i, r, x] = files
        .each_ref()
        .map(|file| imported(&mut session, &in_file(file, 0, 12)));
    let keep = Keep::default()
        .with_memory("e", e)
        .with_memory("i", i)
        .with_memory("r", r);
    let options = RunOptions {
        keep,
        ..RunOptions::default()
    };
    handles.told();
    run_on(&mut session, x, &options).unwrap();
    let [e, i, r] = [0, 1, 2].map(|n: usize| get(&files[n], 0, 3));
    assert_eq!(
        (e, i, r),
        (
            vec![1.0, 1.0, 2f32.exp()],
            vec![-1.0, 0.0, 2.0],
            vec![0.0, 0.0, 2.0]
        )
    );
    let told = handles.told();
    let count = |call: &str| told.iter().filter(|told| *told == call).count();
    assert_eq!((count("keep_in"), count("write_kept")), (1, 2), "{told:?}");
}

#[test]
fn memory_that_cannot_be_used_is_a_typed_error() {
    let handles = Handles::new("refused", &["NO_HOST"]);
    let mut session = handles.load(&relu());
    let file = memory_file(16);
    put(&file, 0, &[9.0; 4]);
    let mut words = [0f32; 3];
    let host = part(MemoryHandle::Host(NonNull::from(&mut words).cast()), 0, 12);
    let android = part(MemoryHandle::HardwareBuffer(NonNull::dangling()), 0, 12);
    for (id, memory, hint) in [
        (ID, &host, "taken by `cpu`"),
        ("cpu", &in_file(&file, 0, 12), "taken by `handles`"),
        (ID, &android, "no backend of the session takes it"),
    ] {
        let error = import(&mut session, id, memory).unwrap_err();
        assert_eq!(
            (error.code(), error.hint()),
            (ErrorCode::Unsupported, Some(hint)),
            "{error}"
        );
    }
    let error = import(&mut session, "npu", &host).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    for (offset, bytes) in [(0, 11), (8, 12), (16, 12), (usize::MAX, 12)] {
        let error = import(&mut session, ID, &in_file(&file, offset, bytes)).unwrap_err();
        assert_eq!(
            error.code(),
            ErrorCode::InvalidValue,
            "{offset} {bytes}: {error}"
        );
    }
    for wrong in [-1, i32::MAX] {
        let error =
            import(&mut session, ID, &part(MemoryHandle::DmaBuf(wrong), 0, 12)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
    }

    let y = imported(&mut session, &in_file(&file, 0, 12));
    let id = BackendId::from(ID);
    let mut of = |dtype, shape: &[usize]| {
        session
            .import(&id, dtype, shape, &in_file(&file, 0, 16))
            .unwrap()
    };
    let (narrow, whole) = (of(DType::F32, &[2]), of(DType::I32, &[3]));
    let x = Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap();
    let kept = RunOptions {
        keep: Keep::new(["y"]),
        ..RunOptions::default()
    };
    let out = run_on(&mut session, x.clone(), &kept).unwrap();
    let Datum::Device(kept) = out[0].1.clone() else {
        panic!("{out:?} was not kept")
    };
    let mut code =
        |x: Datum, options: &RunOptions| run_on(&mut session, x, options).unwrap_err().code();
    assert_eq!(
        code(x.clone().into(), &into("y", &narrow)),
        ErrorCode::Shape
    );
    assert_eq!(code(x.clone().into(), &into("y", &whole)), ErrorCode::DType);
    assert_eq!(code(x.clone().into(), &into("z", &y)), ErrorCode::Input);
    assert_eq!(
        code(x.clone().into(), &into("y", &kept)),
        ErrorCode::InvalidValue,
        "not imported"
    );
    assert_eq!(
        code(y.clone().into(), &into("y", &y)),
        ErrorCode::InvalidValue,
        "read and written"
    );
    let mut twice = into("y", &y);
    twice.keep = twice.keep.with_memory("y", y);
    assert_eq!(code(x.into(), &twice), ErrorCode::InvalidValue);
    assert_eq!(get(&file, 0, 4), [9.0; 4], "nothing was written");
}

/// Sizes that come with the run are looked at before anything runs.
#[test]
fn memory_for_another_shape_is_refused_when_the_shape_is_known() {
    let handles = Handles::new("shapes", &[]);
    let nodes = [node("", "Relu", &["x"], &["y"])];
    let mut session = handles.load(&model(&nodes, &[("x", &["n"])], &[("y", &["n"])]));
    let file = memory_file(12);
    let y = imported(&mut session, &in_file(&file, 0, 12));
    handles.told();
    let short = Tensor::from_slice(&[2], &[1.0f32; 2]).unwrap();
    let error = run_on(&mut session, short, &into("y", &y)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Shape, "{error}");
    assert_eq!(handles.told(), ["write"]);
    let fits = Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap();
    run_on(&mut session, fits, &into("y", &y)).unwrap();
    assert_eq!(get(&file, 0, 3), [1.0; 3]);
}

#[test]
fn a_session_takes_a_command_queue_and_tells_it() {
    let given = |options: &mut LoadOptions, id: &str, handle| {
        // SAFETY: the backends of this test only tell the number.
        let queue = unsafe { CommandQueue::new(handle) };
        options.configs.entry(BackendId::from(id)).queue = Some(queue);
    };
    let (id, cpu_id) = (BackendId::from(ID), BackendId::from("cpu"));
    let handles = Handles::new("queue", &[]);
    let session = handles.load(&relu());
    assert_eq!(session.queue(&id).unwrap().handle(), 7, "its own");
    assert_eq!(
        session.queue(&cpu_id).unwrap_err().code(),
        ErrorCode::Unsupported
    );
    assert_eq!(
        session.queue(&"npu".into()).unwrap_err().code(),
        ErrorCode::NoBackend
    );
    let mut options = handles.options();
    given(&mut options, ID, 0);
    let mut session = load(&relu(), options.clone()).unwrap();
    assert_eq!(session.queue(&id).unwrap().handle(), 0);
    assert_eq!(
        run(&mut session, &[-1.0, 1.0, 2.0]).unwrap(),
        [0.0, 1.0, 2.0]
    );
    given(&mut options, "cpu", 1);
    let error = load(&relu(), options).err().unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    for (name, define) in [
        ("no-queues", "NO_QUEUES"),
        ("deaf", "DEAF"),
        ("old-queues", "SHORT"),
    ] {
        let handles = Handles::new(name, &[define]);
        let mut options = handles.options();
        assert!(load(&relu(), options.clone()).is_ok(), "{name}");
        given(&mut options, ID, 1);
        let error = load(&relu(), options).err().unwrap();
        assert_eq!(error.code(), ErrorCode::Unsupported, "{name}: {error}");
    }
}

#[test]
fn a_table_of_before_memory_of_the_user_takes_none() {
    let handles = Handles::new("short", &["SHORT"]);
    let mut session = handles.load(&relu());
    let error = import(&mut session, ID, &in_file(&memory_file(12), 0, 12)).unwrap_err();
    assert_eq!(
        (error.code(), error.expected()),
        (ErrorCode::Unsupported, Some("none"))
    );
    assert_eq!(
        run(&mut session, &[-1.0, 1.0, 2.0]).unwrap(),
        [0.0, 1.0, 2.0]
    );
    for missing in ["import_memory", "keep_in", "write_kept", "keep"] {
        let handles = Handles::new(&format!("no-{missing}"), &[&format!("MISSING={missing}")]);
        let error = load(&relu(), handles.options()).err().expect(missing);
        assert_eq!(error.code(), ErrorCode::NoBackend);
        let what = format!("without `{missing}`");
        assert!(error.message().contains(&what), "{error}");
    }
}

/// What a backend in a program has that says nothing of memory and queues, as `wgpu` is one.
#[test]
fn a_backend_that_says_nothing_takes_neither_memory_nor_queues() {
    let silent = StandIn::new(cpu(), "silent");
    let runtime = Runtime::default().with_backend(std::sync::Arc::new(silent));
    let mut options = LoadOptions {
        backends: vec!["silent".into()],
        ..LoadOptions::default()
    };
    let mut session = pollster::block_on(runtime.load(&relu()[..], options.clone())).unwrap();
    let error = import(&mut session, "silent", &in_file(&memory_file(12), 0, 12)).unwrap_err();
    assert_eq!(
        (error.code(), error.expected()),
        (ErrorCode::Unsupported, Some("none"))
    );
    // SAFETY: the backend is told a number that it does not use.
    options.configs.entry("silent").queue = Some(unsafe { CommandQueue::new(1) });
    let error = pollster::block_on(runtime.load(&relu()[..], options))
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported);
}
