//! What holds for the score of every backend.

use std::collections::BTreeMap;

use kilim_conform::Score;
use kilim_test_support::say;

use crate::operators;

/// Holds the score of a backend that ran all cases: whatever it took is right, and each case is accounted for. Prints why cases
/// were refused.
///
/// # Panics
/// Where that is not so, or the backend took no case.
pub fn hold(score: &Score) {
    let (right, refused) = (score.passed.len(), score.refused.len());
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for r in &score.refused {
        assert!(
            !r.reason.is_empty(),
            "{} is refused without a reason",
            r.case
        );
        reasons.entry(&r.reason).or_default().push(&r.case);
    }
    for (reason, cases) in reasons {
        println!("refused {}: {reason}: {}", cases.len(), cases.join(", "));
    }
    say(format_args!(
        "{}: {right} operator cases right, {refused} refused, {} need no backend",
        score.backend, score.planned
    ));
    assert!(score.wrong.is_empty(), "{:#?}", score.wrong);
    assert_eq!(right, score.taken());
    assert_eq!(
        score.taken() + refused + score.planned,
        operators::all().len()
    );
    assert!(right > 0, "{} takes no case", score.backend);
}
