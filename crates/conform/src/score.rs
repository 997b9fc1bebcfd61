//! How a backend does with the operator cases.

use kilim::{LoadOptions, Result, Runtime};
use serde::Serialize;

use crate::operators::{self, Case, Outcome};

/// A case that a backend has right.
#[derive(Clone, Debug, Serialize)]
pub struct Passed {
    pub case: String,
    pub op: String,
    /// The largest difference from the expected results, relative to their largest magnitude.
    pub error: f64,
    /// The largest difference that the case allows.
    pub tolerance: f64,
}

/// A case that a backend does not take.
#[derive(Clone, Debug, Serialize)]
pub struct Refused {
    pub case: String,
    pub op: String,
    /// What the backend says; all that is known where it says nothing.
    pub reason: String,
}

/// A case that a backend takes and has wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Wrong {
    pub case: String,
    pub op: String,
    /// What is wrong: the error of a run, or the difference.
    pub what: String,
}

/// What [`conform`] found.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    pub backend: String,
    pub device: String,
    /// Cases that were computed while planning, as views are: no backend ran them.
    pub planned: usize,
    pub passed: Vec<Passed>,
    pub refused: Vec<Refused>,
    pub wrong: Vec<Wrong>,
}

impl Score {
    /// How many cases the backend ran: those that passed, and those that are wrong.
    pub fn taken(&self) -> usize {
        self.passed.len() + self.wrong.len()
    }

    /// The passed case that is closest to its tolerance.
    pub fn worst(&self) -> Option<&Passed> {
        // A case without tolerance has no error.
        let share = |p: &&Passed| match p.error > 0.0 {
            true => p.error / p.tolerance,
            false => 0.0,
        };
        let larger = |a: &&Passed, b: &&Passed| share(a).total_cmp(&share(b));
        self.passed.iter().max_by(larger)
    }
}

/// Runs the cases whose names begin with `begin` (all, where it is empty) on the first backend of `options`; what it refuses
/// goes to the others, so that it is known why. `done` is told how each case ended.
///
/// # Errors
/// Those of [`Runtime::backends`]. What goes wrong with a case is in the score.
pub async fn conform(
    runtime: &Runtime,
    options: &LoadOptions,
    begin: &str,
    mut done: impl FnMut(&Case, &Outcome),
) -> Result<Score> {
    let backends = runtime.backends(options).await?;
    let Some(first) = backends.first().map(|b| b.describe()) else {
        return Err(kilim::Error::new(
            kilim::ErrorCode::NoBackend,
            "no backend is named",
        ));
    };
    let id = first.id.to_string();
    let mut score = Score {
        backend: id.clone(),
        device: first.device.clone(),
        planned: 0,
        passed: Vec::new(),
        refused: Vec::new(),
        wrong: Vec::new(),
    };
    for tried in operators::all() {
        if !tried.name.starts_with(begin) {
            continue;
        }
        let outcome = operators::run_with(&tried, runtime, options).await;
        done(&tried, &outcome);
        let (case, op) = (tried.name.clone(), tried.op.name().to_string());
        match outcome {
            Outcome::Passed(ran) if ran.on == id => score.passed.push(Passed {
                case,
                op,
                error: ran.error,
                tolerance: tried.tolerance,
            }),
            Outcome::Passed(ran) if ran.on == operators::PLANNED => score.planned += 1,
            Outcome::Passed(ran) => score.refused.push(Refused {
                case,
                op,
                reason: match ran.refusal {
                    Some(reason) => reason,
                    None => format!("it ran on {}", ran.on),
                },
            }),
            Outcome::Refused(reason) => score.refused.push(Refused { case, op, reason }),
            Outcome::Wrong(what) => score.wrong.push(Wrong { case, op, what }),
        }
    }
    Ok(score)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kilim::{BackendId, ErrorCode};

    fn on(backends: &[&str], begin: &str) -> Result<Score> {
        let options = LoadOptions {
            backends: backends.iter().map(|&id| BackendId::from(id)).collect(),
            ..LoadOptions::default()
        };
        let runtime = Runtime::default();
        pollster::block_on(conform(&runtime, &options, begin, |_, _| ()))
    }

    #[test]
    fn a_score_has_every_case_that_is_wanted() {
        let score = on(&["cpu"], "Relu").unwrap();
        let wanted = operators::all().into_iter();
        let wanted = wanted.filter(|c| c.name.starts_with("Relu")).count();
        assert!(wanted > 1);
        assert_eq!(score.passed.len() + score.planned, wanted, "{score:?}");
        let worst = score.worst().unwrap();
        assert!(worst.error <= worst.tolerance, "{worst:?}");
        assert!(score.passed.iter().all(|p| p.op == "Relu"), "{score:?}");
    }

    #[test]
    fn a_backend_that_is_not_there_has_no_score() {
        assert_eq!(on(&["xpu"], "").err().unwrap().code(), ErrorCode::NoBackend);
        let none = Runtime::new(kilim::BackendRegistry::new());
        let options = LoadOptions::default();
        let score = pollster::block_on(conform(&none, &options, "", |_, _| ()));
        let error = score.expect_err("nobody is there");
        assert_eq!(error.code(), ErrorCode::NoBackend);
    }
}
