//! Cases with rules of the optimiser switched off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kilim::BackendId;
use kilim::core::passes::{ChangeLog, Rule};

use super::{Case, Index, Outcome, caught, options, run_model};
use crate::files::Files;

/// What became of models without the rules that change them.
#[derive(Debug, Default)]
pub struct Ruled {
    pub models: usize,
    /// The models that each rule changes.
    pub changed: BTreeMap<Rule, Vec<String>>,
    pub failed: Vec<String>,
}

impl Ruled {
    /// How often a model ran without a rule that changes it.
    pub fn runs(&self) -> usize {
        self.changed.values().map(Vec::len).sum()
    }
}

/// Runs the cases that `chosen` picks with all rules, and without each rule that changes the model, and compares with
/// what is recorded.
pub async fn run_without_rules(
    files: &dyn Files,
    backends: &[BackendId],
    chosen: impl Fn(&Case) -> bool,
) -> Result<Ruled, String> {
    let index = Index::read(files)?;
    let mut ruled = Ruled::default();
    for case in index.cases.iter().filter(|case| chosen(case)) {
        ruled.models += 1;
        let model = files.read(&format!("{}/{}", case.path, case.model));
        let model = model.ok_or_else(|| format!("{} cannot be read", case.name))?;
        let run = async |without: Option<Rule>| {
            let log = Arc::new(ChangeLog::default());
            let mut options = options(case, backends);
            options.without.extend(without);
            options.observer = Some(log.clone());
            let rtol = index.bfloat16_rtol;
            let run = run_model(files, case, model.clone(), rtol, options, None);
            let outcome = caught(Box::pin(run)).await;
            let applied: BTreeSet<Rule> = log.changes().iter().map(|c| c.rule).collect();
            (outcome, applied)
        };
        let (outcome, rules) = run(None).await;
        if outcome != Outcome::Passed {
            let name = &case.name;
            ruled
                .failed
                .push(format!("{name} with all rules: {outcome:?}"));
        }
        for rule in rules {
            let (outcome, applied) = run(Some(rule)).await;
            if outcome != Outcome::Passed || applied.contains(&rule) {
                let name = &case.name;
                ruled
                    .failed
                    .push(format!("{name} without {rule}: {outcome:?}, {applied:?}"));
            }
            let models = ruled.changed.entry(rule).or_default();
            models.push(case.name.clone());
        }
    }
    Ok(ruled)
}
