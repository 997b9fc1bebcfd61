//! Measures the kernels between which a backend has a choice, on nodes as a stage has them.

use std::collections::{HashMap, HashSet};

use super::plan::arena;
use super::{Run, Shared};
use crate::backend::{Backend, BackendContext, ContextConfig, Location, Memory, StageSpec};
use crate::error::Result;
use crate::executable::Executable;
use crate::graph::NodeSpec;
use crate::ids::{BackendIndex, KernelIndex, PartIndex, TensorIndex};
use crate::interrupt::Interrupt;
use crate::report::{AlgorithmTime, TuningReport};
use crate::schedule::run_part;
use crate::tensor::Tensor;
use crate::tuning::{Choice, Tuned};

/// Seconds that one figure is measured for, at least.
const ENOUGH: f64 = 0.004;
/// Runs that are started before the device is waited for, at most.
const MOST_RUNS: u32 = 512;
/// Figures that are taken of each algorithm; the best counts.
const ROUNDS: usize = 4;
/// How much faster an algorithm must be to be taken instead of the first: less is noise.
const FASTER: f64 = 0.97;

/// A node by itself, whose class nobody has measured.
pub(super) struct Trial {
    backend: BackendIndex,
    choice: Choice,
    stage: StageSpec,
}

/// Adds to `trials` what there is to measure in a backend's share of a stage, and to the report what
/// is known already.
pub(super) fn collect(
    stage: &StageSpec,
    backend: BackendIndex,
    shared: &mut Shared,
    trials: &mut Vec<Trial>,
) -> Result<()> {
    let device = shared.backends[backend].clone();
    let id = device.describe().id.as_str();
    let tuned = shared.options.tuning.of(&device.describe().key());
    let own = (trials.iter()).filter(|t| t.backend == backend);
    let known = (shared.tuning.iter()).filter(|t| t.backend == id);
    let mut met: HashSet<String> = own.map(|t| t.choice.class.clone()).collect();
    met.extend(known.map(|t| t.class.clone()));
    for (node, kernel) in stage.nodes.entries() {
        let (inputs, outputs) = stage.specs(kernel);
        let spec = NodeSpec {
            name: &kernel.name,
            op: &*kernel.op,
            inputs: &inputs,
            outputs: &outputs,
        };
        let Some(choice) = device.choice(&spec, &shared.options.context) else {
            continue;
        };
        if !met.insert(choice.class.clone()) {
            continue;
        }
        match tuned.measured(&choice) {
            Some(algorithm) => shared.tuning.push(TuningReport {
                backend: id.to_string(),
                class: choice.class,
                algorithm: choice.algorithms[algorithm].to_string(),
                times: Vec::new(),
            }),
            None => trials.push(Trial {
                stage: alone(stage, node, &*device)?,
                backend,
                choice,
            }),
        }
    }
    Ok(())
}

/// One node of a stage as a stage of its own.
fn alone(stage: &StageSpec, node: KernelIndex, backend: &dyn Backend) -> Result<StageSpec> {
    let on_host = backend.describe().memory == Memory::Host;
    let (input, output) = match on_host {
        true => (Location::Input, Location::Output),
        false => (Location::Arena { offset: 0 }, Location::Arena { offset: 0 }),
    };
    let mut kernel = stage.nodes[node].clone();
    let mut own = StageSpec::default();
    let mut of: HashMap<TensorIndex, TensorIndex> = HashMap::new();
    for t in kernel.inputs.iter_mut().flatten() {
        *t = *of.entry(*t).or_insert_with(|| {
            let mut slot = stage.tensors[*t].clone();
            let known = slot.spec.value.is_some();
            if !known {
                slot.location = input;
            } else if let Location::Alias(_) = slot.location {
                slot.location = Location::Planned;
            }
            let tensor = own.tensors.push(slot);
            if !known {
                own.inputs.push(tensor);
            }
            tensor
        });
    }
    for t in &mut kernel.outputs {
        let mut slot = stage.tensors[*t].clone();
        slot.location = output;
        *t = own.tensors.push(slot);
        own.outputs.push(*t);
    }
    let only = own.nodes.push(kernel);
    own.parts.push(only..own.nodes.end());
    let lives = vec![(0, 0); own.tensors.len()].into();
    arena::lay_out(&mut own, &lives, backend).map_err(|no_room| no_room.error)?;
    Ok(own)
}

impl Run<'_> {
    /// Measures, and keeps what was the fastest.
    ///
    /// # Errors
    /// `Device` where a device fails, `Aborted` where the run is to stop.
    pub(super) async fn measure(&mut self, trials: Vec<Trial>) -> Result<()> {
        let Run {
            shared, interrupt, ..
        } = self;
        for trial in trials {
            let device = shared.backends[trial.backend].clone();
            let config = ContextConfig {
                arena: None,
                backend: shared.options.config(&device)?,
                limits: shared.options.limits.clone(),
                ..shared.options.context.clone()
            };
            let clock = shared.options.clock;
            let times = trial.times(&*device, &config, clock, interrupt).await?;
            let mut fastest = 0;
            for i in 1..times.len() {
                let bound = if fastest == 0 { FASTER } else { 1.0 };
                if times[i] < times[fastest] * bound {
                    fastest = i;
                }
            }
            let Choice { class, algorithms } = trial.choice;
            let algorithm = &algorithms[fastest];
            let tuned = shared.options.tuning.of(&device.describe().key());
            tuned.insert(&class, algorithm);
            let times = algorithms.iter().zip(times);
            shared.tuning.push(TuningReport {
                backend: device.describe().id.to_string(),
                class,
                algorithm: algorithm.to_string(),
                times: times
                    .filter(|(_, seconds)| seconds.is_finite())
                    .map(|(algorithm, seconds)| AlgorithmTime {
                        algorithm: algorithm.to_string(),
                        seconds,
                    })
                    .collect(),
            });
        }
        Ok(())
    }
}

impl Trial {
    /// Seconds of a run with each algorithm; infinite where the device does not make it. They take
    /// turns, so that a machine that slows down is no algorithm's fault.
    async fn times(
        &self,
        backend: &dyn Backend,
        config: &ContextConfig,
        clock: fn() -> f64,
        interrupt: &Interrupt,
    ) -> Result<Vec<f64>> {
        let mut lanes = Vec::with_capacity(self.choice.algorithms.len());
        for algorithm in &self.choice.algorithms {
            let tuned = Tuned::only(&self.choice.class, algorithm);
            let config = ContextConfig {
                tuned,
                ..config.clone()
            };
            interrupt.check()?;
            lanes.push(Lane::new(&self.stage, backend, &config).await.ok());
        }
        let mut best = vec![f64::INFINITY; lanes.len()];
        for _ in 0..ROUNDS {
            for (lane, best) in lanes.iter_mut().zip(&mut best) {
                interrupt.check()?;
                if let Some(lane) = lane {
                    *best = best.min(lane.seconds(clock).await?);
                }
            }
        }
        Ok(best)
    }
}

/// A node with one of its kernels.
struct Lane {
    _context: Box<dyn BackendContext>,
    executable: Box<dyn Executable>,
    inputs: Vec<(TensorIndex, Tensor)>,
}

impl Lane {
    async fn new(stage: &StageSpec, backend: &dyn Backend, config: &ContextConfig) -> Result<Lane> {
        let mut context = backend.create_context(config)?;
        let mut executable = context.prepare(stage.clone(), &Interrupt::NEVER)?;
        context.warm_up(&Interrupt::NEVER).await?;
        let mut inputs = Vec::with_capacity(stage.inputs.len());
        for &t in &stage.inputs {
            let spec = &stage.tensors[t].spec;
            inputs.push((t, Tensor::zeros(spec.dtype, &spec.shape)?));
        }
        // The first run pays for what is only done once.
        executable.execute_begin()?;
        let mut lane = Lane {
            _context: context,
            executable,
            inputs,
        };
        let run = lane.run(1).await;
        lane.executable.execute_end()?;
        run.map(|()| lane)
    }

    async fn run(&mut self, times: u32) -> Result<()> {
        for (t, value) in &self.inputs {
            self.executable.write(*t, value)?;
        }
        for _ in 0..times {
            run_part(&mut *self.executable, PartIndex(0), &Interrupt::NEVER).await?;
        }
        self.executable.submit()?;
        self.executable.wait_finish().await
    }

    /// Seconds of one run among many.
    async fn seconds(&mut self, clock: fn() -> f64) -> Result<f64> {
        self.executable.execute_begin()?;
        let measured = self.repeated(clock).await;
        self.executable.execute_end()?;
        measured
    }

    async fn repeated(&mut self, clock: fn() -> f64) -> Result<f64> {
        let mut runs = 1;
        loop {
            let start = clock();
            self.run(runs).await?;
            let passed = clock() - start;
            if passed >= ENOUGH || runs >= MOST_RUNS {
                return Ok(passed / f64::from(runs));
            }
            runs *= 4;
        }
    }
}
