//! What becomes of a case: the line that is printed of it, and the count of all.

use std::time::Instant;

use kilim::compare::{Comparison, Detections, Rule, Verdict};
use kilim::{Datum, Error, ErrorCode, Result, RunOptions, Session, Tensor};
use serde::Serialize;

use crate::Failure;

/// The result of one case.
#[derive(Serialize)]
pub struct Line {
    model: String,
    file: String,
    case: String,
    status: Status,
    /// The worst of all outputs, in the unit of the tolerance.
    error: Option<f64>,
    tolerance: Option<f64>,
    output: Option<String>,
    message: Option<String>,
    backends: Vec<String>,
    seconds: f64,
    /// The code of the error that the case ended with.
    #[serde(skip)]
    code: Option<ErrorCode>,
}

/// What became of a case.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Pass,
    /// The outputs are not within the tolerance of their references.
    Miss,
    /// Nothing could be compared.
    Error,
    /// Kilim does not run the model, for the reason in the message.
    Refused,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Miss => "miss",
            Status::Error => "error",
            Status::Refused => "refused",
        }
    }
}

impl Line {
    /// The line of a case that ran in `session`, or of a case whose model could not be loaded.
    pub fn of(found: Result<Found>, session: Option<&Session>, start: Instant) -> Line {
        let mut backends: Vec<String> = Vec::new();
        for node in session.iter().flat_map(|s| s.report().nodes) {
            if node.backend != "plan" && !backends.contains(&node.backend) {
                backends.push(node.backend);
            }
        }
        let line = Line {
            model: String::new(),
            file: String::new(),
            case: String::new(),
            status: Status::Error,
            error: None,
            tolerance: None,
            output: None,
            message: None,
            backends,
            seconds: start.elapsed().as_secs_f64(),
            code: None,
        };
        match found {
            Ok(Found::Compared(Worst { output, verdict })) => Line {
                status: match verdict.passed {
                    true => Status::Pass,
                    false => Status::Miss,
                },
                error: Some(verdict.error),
                tolerance: Some(verdict.tolerance),
                output: Some(output),
                ..line
            },
            Ok(Found::Unlike(why)) => Line {
                status: Status::Miss,
                output: why.input().map(str::to_string),
                message: Some(why.to_string()),
                ..line
            },
            Err(error) => Line {
                status: match is_refusal(&error) {
                    true => Status::Refused,
                    false => Status::Error,
                },
                message: Some(error.to_string()),
                code: Some(error.code()),
                ..line
            },
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
    errors: usize,
    refused: usize,
    /// The code of the first error.
    code: Option<ErrorCode>,
}

impl Tally {
    pub fn add(&mut self, line: &Line, json: bool) {
        match line.status {
            Status::Pass => self.passed += 1,
            Status::Miss => self.missed += 1,
            Status::Refused => self.refused += 1,
            Status::Error => {
                self.errors += 1;
                self.code = self.code.or(line.code);
            }
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
            line.status.word(),
            line.case,
            line.seconds
        );
    }

    /// Prints the count.
    ///
    /// # Errors
    /// `Printed` where a case was an error, else `Missed` where one missed; `Usage` where there was none.
    pub fn finish(self, json: bool) -> Result<(), Failure> {
        let Tally {
            passed,
            missed,
            errors,
            refused,
            code,
        } = self;
        if json {
            say!(
                r#"{{"passed":{passed},"missed":{missed},"errors":{errors},"refused":{refused}}}"#
            );
        } else {
            say!("{passed} passed, {missed} missed, {errors} errors, {refused} refused");
        }
        match (code, missed, passed + refused) {
            (Some(code), ..) => Err(Failure::Printed(code)),
            (None, 0, 0) => Err(Failure::Usage("nothing was compared".to_string())),
            (None, 0, _) => Ok(()),
            (None, ..) => Err(Failure::Missed),
        }
    }
}

/// What comparing outputs with their references gave.
pub enum Found {
    Compared(Worst),
    /// An output is of another type, shape or form than its reference.
    Unlike(Error),
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
/// Those of a run; `Input` where there is no reference, or one for an output that the model has not;
/// `InvalidValue` where outputs cannot be compared so.
pub async fn compare(
    session: &mut Session,
    inputs: &[(String, Datum)],
    wanted: &[Wanted],
    by: &Rule,
) -> Result<Found> {
    let inputs: Vec<(&str, Datum)> = inputs
        .iter()
        .map(|(n, t)| (n.as_str(), t.clone()))
        .collect();
    let outputs = session.run_data(&inputs, &RunOptions::default()).await?;
    let mut pairs = Vec::with_capacity(wanted.len());
    for (name, want, dtype) in wanted {
        let got = outputs.iter().find(|(n, _)| n == name).ok_or_else(|| {
            let message = format!("the model has no output `{name}`");
            let names: Vec<&str> = outputs.iter().map(|(n, _)| n.as_str()).collect();
            Error::new(ErrorCode::Input, message).with_known(name, &names)
        })?;
        pairs.push(Pair {
            name,
            got: &got.1,
            want,
            dtype: dtype.as_deref(),
        });
    }
    if pairs.is_empty() {
        let message = "the case has no reference";
        return Err(Error::new(ErrorCode::Input, message));
    }
    let worst = match by {
        Rule::Each(comparison) => worst_of_each(comparison, &pairs),
        Rule::Detections(detections) => of_detections(detections, &pairs),
    };
    match worst {
        Ok(worst) => Ok(Found::Compared(worst)),
        Err(error) if error.code() == ErrorCode::Shape => Ok(Found::Unlike(error)),
        Err(error) => Err(error),
    }
}

/// An output beside its reference.
struct Pair<'a> {
    name: &'a str,
    got: &'a Datum,
    want: &'a Datum,
    dtype: Option<&'a str>,
}

fn worst_of_each(by: &Comparison, pairs: &[Pair]) -> Result<Worst> {
    let mut worst: Option<Worst> = None;
    for pair in pairs {
        let verdict = by
            .data_verdict(pair.got, pair.want, pair.dtype)
            .map_err(|e| e.with_input(pair.name))?;
        let found = Worst {
            output: pair.name.to_string(),
            verdict,
        };
        if worst.as_ref().is_none_or(|worst| found.before(worst)) {
            worst = Some(found);
        }
    }
    worst.ok_or_else(|| Error::new(ErrorCode::Input, "the case has no reference"))
}

fn of_detections(by: &Detections, pairs: &[Pair]) -> Result<Worst> {
    let tensors = |of: fn(&Pair) -> Datum| -> Result<Vec<Tensor>> {
        pairs.iter().map(|pair| of(pair).into_tensor()).collect()
    };
    let (got, want) = (tensors(|p| p.got.clone())?, tensors(|p| p.want.clone())?);
    let names: Vec<&str> = pairs.iter().map(|p| p.name).collect();
    Ok(Worst {
        output: names.join(", "),
        verdict: by.verdict(&got, &want)?,
    })
}
