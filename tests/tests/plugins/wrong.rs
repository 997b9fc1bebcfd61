//! Libraries that cannot be used, refuse everything, fail or are not there.

use kilim::ErrorCode;
use kilim_tests::libraries::file_name;

use crate::broken::*;
use crate::*;

#[test]
fn a_library_that_cannot_be_used_is_a_typed_error() {
    let error = refused(CREATION_FAILS);
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(
        error.message().contains("there is no such device"),
        "{error}"
    );
    assert_eq!(refused(CREATION_GIVES_NOTHING).code(), ErrorCode::Device);
    let error = refused(OTHER_VERSION);
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!((error.expected(), error.got()), (Some("1"), Some("2")));
    let error = refused(SMALL_TABLE);
    assert_eq!(
        (error.code(), error.got()),
        (ErrorCode::NoBackend, Some("24 bytes"))
    );
    assert!(refused(NO_RUN).message().contains("without `run`"));
    assert!(refused(NO_BIND).message().contains("without `bind`"));
    assert_eq!(refused(BAD_SPEED).code(), ErrorCode::NoBackend);
    let error = refused_alone(PREPARE_FAILS);
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!((error.node(), error.op()), (Some("y"), Some("Relu")));
}

#[test]
fn a_library_that_crashes_its_creation_is_a_typed_error() {
    if !cfg!(target_os = "linux") {
        return;
    }
    // It stays loaded: what it registered for the end of the process hangs in a copy of the process.
    let _waits = broken(WAITS_AT_EXIT, &["cpu"]).unwrap();
    for (how, what, got) in [
        (CREATION_CRASHES, "crashes", "signal 11"),
        (CREATION_ABORTS, "crashes", "signal 6"),
        (CREATION_EXITS, "ends the process", "exit status 0"),
    ] {
        let error = refused(how);
        assert_eq!(error.code(), ErrorCode::Device);
        assert!(error.message().contains(what), "{error}");
        assert_eq!(error.got(), Some(got));
    }
}

#[test]
fn what_is_created_is_destroyed() {
    let log = folder("destroyed").join("log");
    let defines = |how: u32| {
        [
            format!("BROKEN={how}"),
            format!("LOG=\"{}\"", log.display()),
        ]
    };
    for how in [REFUSES_ALL, OTHER_VERSION, NO_RUN] {
        let _ = std::fs::remove_file(&log);
        let folder = folder(&format!("destroyed{how}"));
        compile(BROKEN, &folder, "broken", &defines(how));
        let alive = || {
            let text = std::fs::read_to_string(&log).unwrap();
            text.matches('+').count() - text.matches('-').count()
        };
        let session = load(&relu(), options(&["broken", "cpu"], &folder));
        assert_eq!(alive(), usize::from(session.is_ok()), "{how}");
        drop(session);
        assert_eq!(alive(), 0, "{how}");
    }
}

/// A device is opened twice where its library is new: in the trial and then for good.
#[test]
fn a_library_that_was_tried_is_not_tried_again() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = folder("tried");
    let log = folder.join("log");
    let defines = |how: u32| {
        [
            format!("BROKEN={how}"),
            format!("LOG=\"{}\"", log.display()),
        ]
    };
    let _ = std::fs::remove_file(&log);
    compile(BROKEN, &folder, "broken", &defines(REFUSES_ALL));
    let opened = || {
        let session = load(&relu(), options(&["broken", "cpu"], &folder));
        assert!(session.is_ok());
        drop(session);
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        text.matches('+').count()
    };
    assert_eq!(opened(), 2);
    assert_eq!(opened(), 1);
    // Another file of the same name is another library.
    std::fs::remove_file(folder.join("libbackend_broken.so")).unwrap();
    compile(BROKEN, &folder, "broken", &defines(LONGER_TABLE));
    assert_eq!(opened(), 2);
}

/// A runtime that lives on lets go of its libraries when it is told to; a session keeps its own.
#[test]
fn a_runtime_closes_its_libraries() {
    let folder = folder("closed");
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    let defines = [
        format!("BROKEN={LONGER_TABLE}"),
        format!("LOG=\"{}\"", log.display()),
    ];
    compile(BROKEN, &folder, "broken", &defines);
    let alive = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.matches('+').count() - text.matches('-').count()
    };
    let runtime = Runtime::default();
    let load = || {
        let options = options(&["broken", "cpu"], &folder);
        pollster::block_on(runtime.load(&relu()[..], options)).unwrap()
    };
    let mut session = load();
    runtime.close_libraries();
    assert_eq!(alive(), 1, "a session has it");
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    drop(session);
    assert_eq!(alive(), 0);
    drop(load());
    assert_eq!(alive(), 1, "the runtime has it");
    runtime.close_libraries();
    assert_eq!(alive(), 0);
    drop(load());
    drop(runtime);
    assert_eq!(alive(), 0);
}

#[test]
fn a_library_has_both_functions_of_the_interface() {
    let error = refused(NO_DESTROY);
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(
        error.hint().unwrap().contains("kilim_backend_destroy"),
        "{error}"
    );
}

#[test]
fn a_library_that_refuses_everything_leaves_its_share_to_others() {
    let mut session = broken(REFUSES_ALL, &["cpu"]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let report = session.report();
    assert_eq!(report.nodes[0].backend, "cpu");
    assert_eq!(report.nodes[0].refusals[0].reason, "I refuse everything");
    let error = broken(REFUSES_ALL, &[]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
}

#[test]
fn a_run_that_fails_names_its_node_and_the_next_one_may_succeed() {
    let mut session = broken(RUN_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("caught fire"), "{error}");
    assert_eq!((error.node(), error.op()), (Some("y"), Some("Relu")));
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let mut session = broken(READ_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("status 99"), "{error}");
}

#[test]
fn a_table_of_a_later_addition_is_read_as_far_as_it_is_known() {
    let mut session = broken(LONGER_TABLE, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
}

#[test]
fn a_backend_that_is_nowhere_says_where_it_was_looked_for() {
    let folder = folder("empty");
    let error = load(&relu(), options(&["nowhere"], &folder)).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(error.message().contains(&file_name("nowhere")), "{error}");
    // An id is not a path.
    let error = load(&relu(), options(&["../plugins/c/scale"], &folder))
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(!error.to_string().contains("libbackend"), "{error}");
    std::fs::write(folder.join(file_name("text")), "no library").unwrap();
    let error = load(&relu(), options(&["text"], &folder)).err().unwrap();
    assert!(error.message().contains("cannot be loaded"), "{error}");
}
