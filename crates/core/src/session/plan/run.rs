//! Running a planned stage.

use std::sync::Arc;

use super::{PlannedStage, Source};
use crate::backend::Memory;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::ValueId;
use crate::ids::{PerBackend, PerKernel, TensorIndex};
use crate::schedule::{StageRun, StageTrace};
use crate::session::runner::Needed;
use crate::session::{Handle, Run};

impl PlannedStage {
    /// Runs the stage: `env` holds its inputs and takes its results. It lets go of those inputs that are `spent`. `host`
    /// says which results the host will look at, and `needed` which of them are wanted; `None`: all.
    pub async fn run(
        &mut self,
        env: &mut [Option<Handle>],
        spent: &[ValueId],
        host: &[bool],
        needed: Option<&Arc<Needed>>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        run.count(self.operations)?;
        self.ran = needed.map(|needed| self.share(needed));
        for (b, e) in self.executables.entries_mut() {
            if let Some(e) = e {
                e.skip(self.ran.as_ref().map(|share| share.skipped[b].clone()));
                e.set_profiling(run.is_timed(b));
            }
        }
        let begun = Begun::begin(self)?;
        begun.stage.write(env, spent).await?;
        #[cfg(not(target_arch = "wasm32"))]
        begun.stage.place(env, host, run)?;
        begun.stage.steps(run).await?;
        begun.stage.read(env, host, needed, run).await?;
        begun.end()?;
        self.times = PerBackend::new();
        for (b, e) in self.executables.entries_mut() {
            self.times.push(match e {
                Some(e) if run.is_timed(b) => e.profile().await?,
                _ => PerKernel::new(),
            });
        }
        Ok(())
    }

    /// Gives the backends what the stage reads. What is `spent` is then theirs alone, but for what goes through.
    async fn write(&mut self, env: &mut [Option<Handle>], spent: &[ValueId]) -> Result<()> {
        let goes_through = |v: ValueId| {
            let mut sources = self.results.iter().map(|(_, source)| source);
            sources.any(|source| matches!(source, Source::Feed(of, _) if *of == v))
        };
        for (v, targets) in &self.feeds {
            for &(b, t) in targets {
                let handle = env[v.0].clone().ok_or_else(missing)?;
                let e = self.executables[b].as_mut().ok_or_else(missing)?;
                match handle {
                    Handle::Device(d) if e.takes(&d) => e.import(t, &d)?,
                    other => {
                        let tensor = other.into_host().await?;
                        env[v.0] = Some(Handle::Host(tensor.clone()));
                        e.write(t, &tensor)?;
                    }
                }
            }
            if spent.contains(v) && !goes_through(*v) {
                env[v.0] = None;
            }
        }
        Ok(())
    }

    /// Tells executables which results go into memory of the user's; `env` has that memory for those that do.
    #[cfg(not(target_arch = "wasm32"))]
    fn place(&mut self, env: &mut [Option<Handle>], host: &[bool], run: &Run<'_>) -> Result<()> {
        for (v, memory) in &run.memory {
            let mut results = self.results.iter();
            let Some((
                _,
                Source::Tensor {
                    backend, tensor, ..
                },
            )) = results.find(|(of, _)| of == v)
            else {
                continue;
            };
            let e = self.executables[*backend].as_mut().ok_or_else(missing)?;
            let free = !host[v.0] && env[v.0].is_none();
            if free && e.takes(memory) && e.export_into(*tensor, memory)? {
                env[v.0] = Some(Handle::Device(memory.clone()));
            }
        }
        Ok(())
    }

    /// Has the scheduler run the kernels.
    async fn steps(&mut self, run: &Run<'_>) -> Result<()> {
        let (steps, labels) = match &self.ran {
            Some(share) => (&share.steps, &share.labels),
            None => (&self.steps, &self.labels),
        };
        let trace = run.trace.as_ref().map(|(trace, number)| StageTrace {
            trace,
            run: *number,
            clock: run.shared.options.clock,
            labels,
        });
        let stage = StageRun {
            executables: &mut self.executables,
            steps,
            interrupt: &run.interrupt,
            trace,
        };
        run.shared.options.scheduler.run(stage).await
    }

    /// Takes what others read of the stage, as far as it is `needed`.
    async fn read(
        &mut self,
        env: &mut [Option<Handle>],
        host: &[bool],
        needed: Option<&Arc<Needed>>,
        run: &Run<'_>,
    ) -> Result<()> {
        let backends = &run.shared.backends;
        // Nobody else may look for faults that a device has found in what is kept.
        let mut checked: PerBackend<bool> = vec![false; backends.len()].into();
        let mut reads: PerBackend<(Vec<ValueId>, Vec<TensorIndex>)> =
            vec![Default::default(); self.executables.len()].into();
        for (v, source) in &self.results {
            if needed.is_some_and(|needed| !needed.any(&[*v])) {
                continue;
            }
            let handle = match source {
                Source::Feed(of, shape) => {
                    env[of.0].clone().ok_or_else(missing)?.reshaped(shape)?
                }
                Source::Known(t) => Handle::Host(t.clone()),
                // The backend has put it into memory of the user's.
                #[cfg(not(target_arch = "wasm32"))]
                Source::Tensor { backend, .. } if env[v.0].is_some() => {
                    checked[*backend] = run.keeps;
                    continue;
                }
                Source::Tensor {
                    backend, tensor, ..
                } => {
                    let on_host = backends[*backend].describe().memory == Memory::Host;
                    if on_host || host[v.0] {
                        reads[*backend].0.push(*v);
                        reads[*backend].1.push(*tensor);
                        continue;
                    }
                    let e = self.executables[*backend].as_mut().ok_or_else(missing)?;
                    checked[*backend] = run.keeps;
                    Handle::Device(e.export(*tensor)?)
                }
            };
            env[v.0] = Some(handle);
        }
        for (b, (values, tensors)) in reads.entries() {
            if let Some(e) = self.executables[b].as_mut()
                && (checked[b] || !tensors.is_empty())
            {
                for (v, t) in values.iter().zip(e.read(tensors).await?) {
                    env[v.0] = Some(Handle::Host(t));
                }
            }
        }
        Ok(())
    }
}

fn missing() -> Error {
    Error::new(ErrorCode::State, "a stage ran before its inputs were there")
}

/// A stage whose run has begun on the first so many of its backends. Whatever becomes of the run, also
/// where its future is dropped, it ends there.
struct Begun<'a> {
    stage: &'a mut PlannedStage,
    backends: usize,
}

impl<'a> Begun<'a> {
    fn begin(stage: &'a mut PlannedStage) -> Result<Begun<'a>> {
        let mut begun = Begun { stage, backends: 0 };
        for e in &mut begun.stage.executables {
            if let Some(e) = e {
                e.execute_begin()?;
            }
            begun.backends += 1;
        }
        Ok(begun)
    }

    /// Ends the run on all of them and gives the first error.
    fn end(mut self) -> Result<()> {
        self.end_all()
    }

    fn end_all(&mut self) -> Result<()> {
        let backends = std::mem::take(&mut self.backends);
        let mut ended = Ok(());
        for e in self.stage.executables.iter_mut().take(backends).flatten() {
            ended = ended.and(e.execute_end());
        }
        ended
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // The run has failed already, with an error of its own.
        let _ = self.end_all();
    }
}
