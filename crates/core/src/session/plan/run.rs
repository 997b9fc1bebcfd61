//! Running a planned stage.

use super::{PlannedStage, Source};
use crate::backend::Memory;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::ValueId;
use crate::schedule::{StageRun, StageTrace};
use crate::session::{Handle, Shared};

impl PlannedStage {
    /// Runs the stage: `env` holds its inputs and takes its results. `host` says which results the
    /// host will look at.
    pub async fn run(
        &mut self,
        env: &mut [Option<Handle>],
        host: &[bool],
        shared: &mut Shared,
    ) -> Result<()> {
        let missing = || Error::new(ErrorCode::State, "a stage ran before its inputs were there");
        for (b, e) in self.executables.iter_mut().enumerate() {
            if let Some(e) = e {
                e.set_profiling(shared.is_timed(b));
                e.execute_begin()?;
            }
        }
        for (v, targets) in &self.feeds {
            for &(b, t) in targets {
                let handle = env[v.0].clone().ok_or_else(missing)?;
                let e = self.executables[b].as_mut().ok_or_else(missing)?;
                match handle {
                    Handle::Device(d) if d.backend == shared.backends[b].describe().id => {
                        e.import(t, &d)?;
                    }
                    other => {
                        let tensor = other.into_host(shared).await?;
                        env[v.0] = Some(Handle::Host(tensor.clone()));
                        e.write(t, &tensor)?;
                    }
                }
            }
        }
        let scheduler = shared.options.scheduler.clone();
        let trace = shared.trace.as_ref().map(|(trace, run)| StageTrace {
            trace,
            run: *run,
            clock: shared.options.clock,
            labels: &self.labels,
        });
        scheduler
            .run(StageRun {
                executables: &mut self.executables,
                steps: &self.steps,
                interrupt: &shared.interrupt,
                trace,
            })
            .await?;
        let mut reads: Vec<(Vec<ValueId>, Vec<usize>)> =
            vec![Default::default(); self.executables.len()];
        for (v, source) in &self.results {
            let handle = match source {
                Source::Feed(of, shape) => {
                    env[of.0].clone().ok_or_else(missing)?.reshaped(shape)?
                }
                Source::Known(t) => Handle::Host(t.clone()),
                Source::Tensor { backend, tensor } => {
                    let on_host = shared.backends[*backend].describe().memory == Memory::Host;
                    if on_host || host[v.0] {
                        reads[*backend].0.push(*v);
                        reads[*backend].1.push(*tensor);
                        continue;
                    }
                    let e = self.executables[*backend].as_mut().ok_or_else(missing)?;
                    Handle::Device(e.export(*tensor)?)
                }
            };
            env[v.0] = Some(handle);
        }
        for (b, (values, tensors)) in reads.iter().enumerate() {
            if let Some(e) = self.executables[b].as_mut()
                && !tensors.is_empty()
            {
                for (v, t) in values.iter().zip(e.read(tensors).await?) {
                    env[v.0] = Some(Handle::Host(t));
                }
            }
        }
        self.times.clear();
        for (b, e) in self.executables.iter_mut().enumerate() {
            self.times.push(match e {
                Some(e) => {
                    e.execute_end()?;
                    if shared.is_timed(b) {
                        e.profile().await?
                    } else {
                        Vec::new()
                    }
                }
                None => Vec::new(),
            });
        }
        Ok(())
    }
}
