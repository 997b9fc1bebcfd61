//! What becomes of a case: the line that is printed of it, and the count of all.

use std::time::Instant;

use kilim::compare::{Comparison, Verdict};
use kilim::{Datum, Error, ErrorCode, Result, RunOptions, Session};
use serde::Serialize;

use crate::Failure;

/// The result of one case.
#[derive(Serialize)]
pub struct Line {
    model: String,
    file: String,
    case: String,
    /// `pass`, `miss`, `error`, or `refused` with a reason.
    status: &'static str,
    /// The worst of all outputs, in the unit of the tolerance.
    error: Option<f64>,
    tolerance: Option<f64>,
    output: Option<String>,
    message: Option<String>,
    backends: Vec<String>,
    seconds: f64,
}

impl Line {
    /// Of a case that ran in `session`, or of one whose model could not be loaded.
    pub fn of(verdict: Result<Worst>, session: Option<&Session>, start: Instant) -> Line {
        let mut backends: Vec<String> = Vec::new();
        for node in session.iter().flat_map(|s| s.report().nodes) {
            if node.backend != "plan" && !backends.contains(&node.backend) {
                backends.push(node.backend);
            }
        }
        let (worst, failure) = match verdict {
            Ok(worst) => (Some(worst), None),
            Err(error) => (None, Some(error)),
        };
        Line {
            model: String::new(),
            file: String::new(),
            case: String::new(),
            status: match (&worst, &failure) {
                (Some(worst), _) if worst.verdict.passed => "pass",
                (Some(_), _) => "miss",
                (None, Some(error)) if is_refusal(error) => "refused",
                _ => "error",
            },
            error: worst.as_ref().map(|w| w.verdict.error),
            tolerance: worst.as_ref().map(|w| w.verdict.tolerance),
            output: worst.map(|w| w.output),
            message: failure.map(|e| e.to_string()),
            backends,
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    /// Whose line it is; `model` is empty for a file that no manifest names.
    pub fn named(self, model: &str, file: &str, case: &str) -> Line {
        Line {
            model: model.to_string(),
            file: file.to_string(),
            case: case.to_string(),
            ..self
        }
    }
}

/// Whether an error says that Kilim does not do this, rather than that it failed.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Unsupported | ErrorCode::UnknownFormat | ErrorCode::NoBackend
    )
}

/// How many cases went how.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    missed: usize,
    refused: usize,
}

impl Tally {
    pub fn add(&mut self, line: &Line, json: bool) {
        match line.status {
            "pass" => self.passed += 1,
            "refused" => self.refused += 1,
            _ => self.missed += 1,
        }
        if json {
            if let Ok(text) = serde_json::to_string(line) {
                say!("{text}");
            }
            return;
        }
        let model = match line.model.as_str() {
            "" => line.file.clone(),
            name => format!("{name} {}", line.file),
        };
        let found = match (line.error, line.tolerance) {
            (Some(e), Some(t)) => format!("error {e:.2e} of {t:.2e}"),
            _ => line.message.clone().unwrap_or_default(),
        };
        let place = match line.backends.join("+") {
            ids if ids.is_empty() => ids,
            ids => format!(" on {ids}"),
        };
        say!(
            "{:8} {model} [{}] {found}{place} ({:.2} s)",
            line.status,
            line.case,
            line.seconds
        );
    }

    /// Prints the count.
    ///
    /// # Errors
    /// `Missed` where a case missed, `Usage` where there was none.
    pub fn finish(self, json: bool) -> Result<(), Failure> {
        let Tally {
            passed,
            missed,
            refused,
        } = self;
        if json {
            say!(r#"{{"passed":{passed},"missed":{missed},"refused":{refused}}}"#);
        } else {
            say!("{passed} passed, {missed} missed, {refused} refused");
        }
        match (missed, passed + refused) {
            (0, 0) => Err(Failure::Usage("nothing was compared".to_string())),
            (0, _) => Ok(()),
            _ => Err(Failure::Missed),
        }
    }
}

/// The output that is furthest from its reference.
pub struct Worst {
    output: String,
    verdict: Verdict,
}

impl Worst {
    /// An output outside its tolerance before those within, then by the share of the tolerance.
    fn before(&self, other: &Worst) -> bool {
        let rank = |v: &Verdict| (!v.passed, v.error / v.tolerance.max(f64::MIN_POSITIVE));
        let ((missed, share), (other_missed, other_share)) =
            (rank(&self.verdict), rank(&other.verdict));
        missed
            .cmp(&other_missed)
            .then(share.total_cmp(&other_share))
            .is_gt()
    }
}

/// An output's name, its reference, and the element type of the reference where it is stored as another.
pub type Wanted = (String, Datum, Option<String>);

/// Runs one case.
///
/// # Errors
/// Those of a run; `Input` where there is no reference, or one for an output that the model has not.
pub async fn compare(
    session: &mut Session,
    inputs: &[(String, Datum)],
    wanted: &[Wanted],
    by: &Comparison,
) -> Result<Worst> {
    let inputs: Vec<(&str, Datum)> = inputs
        .iter()
        .map(|(n, t)| (n.as_str(), t.clone()))
        .collect();
    let outputs = session.run_data(&inputs, &RunOptions::default()).await?;
    let mut worst: Option<Worst> = None;
    for (name, want, dtype) in wanted {
        let got = outputs.iter().find(|(n, _)| n == name).ok_or_else(|| {
            let message = format!("the model has no output `{name}`");
            Error::new(ErrorCode::Input, message)
        })?;
        let verdict = by
            .data_verdict(&got.1, want, dtype.as_deref())
            .map_err(|e| e.with_input(name))?;
        let found = Worst {
            output: name.clone(),
            verdict,
        };
        if worst.as_ref().is_none_or(|worst| found.before(worst)) {
            worst = Some(found);
        }
    }
    worst.ok_or_else(|| Error::new(ErrorCode::Input, "the case has no reference"))
}
