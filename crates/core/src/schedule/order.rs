//! Running a stage in an order that a backend says before it runs.

use super::{StageRun, Step};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::{BackendId, BackendIndex};

impl Step {
    /// The backends that the step needs, which are one where it crosses nothing.
    pub fn backends(&self) -> [BackendIndex; 2] {
        match self {
            Step::Part { backend, .. } => [*backend; 2],
            Step::Permute { from, to, .. } => [*from, *to],
        }
    }
}

impl StageRun<'_> {
    /// Runs every step in the order that the backend `id` gives. A part is started as soon as it is recorded, so that what
    /// the next steps do not need goes on beside them.
    ///
    /// # Errors
    /// `State` where the order cannot be, before anything runs; that of a step that failed.
    pub async fn execute_in(&mut self, order: &[usize], id: &BackendId) -> Result<()> {
        if let Some(fault) = fault(order, self.steps) {
            return Err(Error::new(
                ErrorCode::State,
                format!("`{id}` puts the tasks of a stage into an order that cannot be"),
            )
            .with_expected("every task once, those that share a backend in their order")
            .with_got(fault));
        }
        for &index in order {
            self.execute(index).await?;
            if let Step::Part { backend, .. } = self.steps[index]
                && let Some(executable) = &mut self.executables[backend]
            {
                executable.submit()?;
            }
        }
        Ok(())
    }
}

/// What is wrong with an order of steps; `None` where each stands in it once, and those that share a backend as before.
fn fault(order: &[usize], steps: &[Step]) -> Option<String> {
    let mut done = vec![false; steps.len()];
    let mut last: Vec<(BackendIndex, usize)> = Vec::new();
    for &index in order {
        let Some(done) = done.get_mut(index) else {
            return Some(format!("there is no task {index}"));
        };
        if std::mem::replace(done, true) {
            return Some(format!("task {index} stands there twice"));
        }
        for backend in steps[index].backends() {
            match last.iter_mut().find(|(b, _)| *b == backend) {
                None => last.push((backend, index)),
                Some((_, before)) if *before > index => {
                    return Some(format!("task {before} stands before task {index}"));
                }
                Some((_, before)) => *before = index,
            }
        }
    }
    let left = done.iter().position(|done| !done);
    left.map(|index| format!("task {index} does not stand there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PartIndex;

    #[test]
    fn an_order_keeps_that_of_each_backend() {
        let part = |backend, part| Step::Part {
            backend: BackendIndex(backend),
            part: PartIndex(part),
        };
        let cross = Step::Permute {
            from: BackendIndex(0),
            to: BackendIndex(1),
            pairs: Vec::new(),
        };
        let steps = [part(0, 0), part(1, 0), cross, part(1, 1)];
        assert_eq!(fault(&[1, 0, 2, 3], &steps), None);
        let wrong: [&[usize]; 5] = [
            &[0, 2, 1, 3],
            &[0, 1, 3, 2],
            &[0, 1, 1, 3],
            &[0, 1, 2, 4],
            &[0, 1, 2],
        ];
        for wrong in wrong {
            assert!(fault(wrong, &steps).is_some(), "{wrong:?}");
        }
    }
}
