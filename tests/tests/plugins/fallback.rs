//! What a library takes and then cannot run goes to the next backend.

use kilim::ErrorCode;

use crate::broken::*;
use crate::*;

#[test]
fn what_a_library_cannot_run_after_all_goes_to_the_next_backend() {
    for (how, code, why) in [
        (
            PREPARE_REFUSES,
            ErrorCode::Unsupported,
            "not this after all",
        ),
        (PREPARE_FAILS, ErrorCode::Limit, "no memory for this"),
        (NO_MEMORY, ErrorCode::Limit, "the device is full"),
        (ABSURD_BYTES, ErrorCode::Limit, "expected at most"),
        (
            SMALL_TENSORS,
            ErrorCode::Limit,
            "expected at most 4 bytes; got 8 bytes",
        ),
    ] {
        let mut session = broken(how, &["cpu"]).unwrap();
        assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
        let node = session.report().nodes.remove(0);
        assert_eq!(node.backend, "cpu");
        let reason = &node.refusals[0].reason;
        assert!(reason.contains(why), "{reason}");

        let folder = folder(&format!("broken{how}"));
        let mut options = options(&["broken", "cpu"], &folder);
        options.strict = true;
        let error = load(&relu(), options).err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(refused_alone(how).code(), code);
    }
}
