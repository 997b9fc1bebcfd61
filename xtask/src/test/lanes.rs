//! Steps side by side: those of the machine itself, and those of pages. Many run on one core, and the two kinds share no
//! build folder, so that neither waits for the other's compiler.

use super::{Counts, conformance};
use crate::{setup, sh};
use anyhow::{Result, anyhow};
use std::thread;
use std::time::Instant;

/// A check: it runs commands whose output counts tests, or is one by itself.
pub struct Step {
    pub name: &'static str,
    pub lane: Lane,
    pub run: fn() -> Result<Counts>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Lane {
    Native,
    Web,
}

/// What steps have counted, and the names of those that failed.
#[derive(Default)]
pub struct Outcome {
    pub counts: Counts,
    pub failed: Vec<&'static str>,
}

/// Runs each lane's steps in order, the lanes side by side where `steps` has both.
///
/// # Errors
/// Where a lane panics.
pub fn run(steps: &[&Step], each: &(impl Fn(&Step) -> Result<Counts> + Sync)) -> Result<Outcome> {
    let of = |lane| {
        let steps = steps.iter().copied();
        steps
            .filter(|step| step.lane == lane)
            .collect::<Vec<&Step>>()
    };
    let (native, web) = (of(Lane::Native), of(Lane::Web));
    if native.is_empty() || web.is_empty() {
        return Ok(in_order(steps, each));
    }
    prepare();
    thread::scope(|scope| {
        let web = scope.spawn(|| {
            sh::label("web | ");
            in_order(&web, each)
        });
        let mut outcome = in_order(&native, each);
        let web = web.join().map_err(|_| anyhow!("a thread panicked"))?;
        outcome.counts.add(web.counts);
        outcome.failed.extend(web.failed);
        Ok(outcome)
    })
}

/// Installs and exports once what both lanes use. What is missing is told again by the steps that want it.
fn prepare() {
    println!("\n== setup");
    let begun = Instant::now();
    if let Err(error) = setup::all().and_then(|()| conformance()) {
        println!("{error:#}");
    }
    println!("-- setup: in {:.0} s", begun.elapsed().as_secs_f64());
}

fn in_order(steps: &[&Step], each: &impl Fn(&Step) -> Result<Counts>) -> Outcome {
    let mut outcome = Outcome::default();
    for step in steps {
        sh::say(&format!("== {}", step.name));
        let begun = Instant::now();
        let counts = each(step).unwrap_or_else(|error| Counts::of(Err(error)));
        let result = if counts.failed == 0 { "ok" } else { "FAILED" };
        let seconds = begun.elapsed().as_secs_f64();
        sh::say(&format!("-- {}: {result} in {seconds:.0} s", step.name));
        if counts.failed > 0 {
            outcome.failed.push(step.name);
        }
        outcome.counts.add(counts);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::{Counts, Lane, Step, in_order};
    use anyhow::bail;

    #[test]
    fn steps_after_one_that_fails_run() {
        let step = |name| Step {
            name,
            lane: Lane::Web,
            run: || Ok(Counts::default()),
        };
        let (one, two) = (step("one"), step("two"));
        let outcome = in_order(&[&one, &two], &|step| match step.name {
            "one" => bail!("it is broken"),
            _ => Ok(Counts::of(Ok(()))),
        });
        assert_eq!(outcome.failed, ["one"]);
        assert_eq!((outcome.counts.passed, outcome.counts.failed), (1, 1));
    }
}
