//! A roofline of the kernels: for a list of nodes every kernel that could serve, how much it computes, and its share of what
//! the same machine does in a loop of the same instruction. The kernels, and the one that is chosen, come from the registry
//! that sessions choose from.

mod case;
mod peak;
mod shapes;
mod turns;

use std::fmt;

use kilim_core::backend::{BackendConfig, ContextConfig, NodeSpec};
use kilim_core::error::unsupported;
use kilim_core::tuning::Tuned;
use kilim_core::{ErrorCode, Interrupt, Result};
use kilim_host::registry::{Candidate, KernelRegistry};
use kilim_host::{Prepared, Threads, Way};
use serde::Serialize;

pub use self::case::Arithmetic;
use self::case::Case;
pub use self::peak::Peaks;
pub use self::turns::TOLERATED;
use self::turns::{Lane, take};

/// A kernel that takes this many times as long as the chosen one is stopped: no more has to be known of it.
const SLOWER: f64 = 4.0;

/// How kernels are timed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads that kernels compute on; `None` for as many as sessions take by themselves.
    pub threads: Option<usize>,
    /// Seconds that a sample takes at least; short runs are repeated.
    pub sample: f64,
    /// Samples of each kernel.
    pub turns: usize,
    /// Gives seconds.
    pub clock: fn() -> f64,
}

/// A node that is measured, called by its operator and sizes.
#[derive(Clone, Copy, Debug)]
pub struct Subject(shapes::Shape);

impl Subject {
    /// All of the list.
    pub fn all() -> impl Iterator<Item = Subject> {
        shapes::SHAPES.iter().copied().map(Subject)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was measured of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The operator and its sizes.
    pub shape: String,
    /// Operations of a run by the definition of the operator, two for a product that is added. Kernels may need fewer.
    pub operations: f64,
    /// Bytes of all inputs and outputs, each once.
    pub bytes: usize,
    /// What the peak is measured with.
    pub arithmetic: Arithmetic,
    /// In the order of preference, the chosen one first.
    pub kernels: Vec<Timed>,
    /// The name of the fastest.
    pub fastest: String,
    /// How much more time the chosen one takes than the fastest, as a share.
    pub loss: f64,
    /// Whether that is more than [`TOLERATED`].
    pub wrong: bool,
}

/// What was measured of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// Where it comes from, and its algorithm if it has several.
    pub name: String,
    /// Whether it is what sessions without tuning take.
    pub chosen: bool,
    /// Seconds of a run, the median; `None` where it was stopped, being much slower than the chosen one.
    pub seconds: Option<f64>,
    /// Operations in a second.
    pub rate: Option<f64>,
    /// The rate as a share of the peak; more than 1 where an algorithm needs fewer operations than the definition.
    pub of_peak: Option<f64>,
    /// Bytes in a second as a share of what is read from memory; more than 1 where they are in a cache.
    pub of_memory: Option<f64>,
}

impl Timed {
    fn new(name: String, chosen: bool, seconds: Option<f64>, case: &Case, peaks: &Peaks) -> Timed {
        let rate = seconds.map(|seconds| case.node().cost().flops / seconds);
        let bytes = case.bytes() as f64;
        Timed {
            name,
            chosen,
            seconds,
            rate,
            of_peak: rate.map(|rate| rate / peaks.of(case.arithmetic)),
            of_memory: seconds.map(|seconds| bytes / seconds / peaks.memory),
        }
    }
}

/// Measures kernels of a registry on this machine.
pub struct Roofline {
    registry: KernelRegistry,
    threads: Threads,
    settings: Settings,
    peaks: Peaks,
}

impl Roofline {
    /// Measures kernels of the backend `cpu`. The machine's peaks come first, which takes about a second.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn new(settings: Settings) -> Result<Roofline> {
        Roofline::of(crate::kernels(), settings)
    }

    fn of(registry: KernelRegistry, settings: Settings) -> Result<Roofline> {
        let threads = Threads::new(settings.threads);
        Ok(Roofline {
            registry,
            threads,
            peaks: Peaks::measure(threads, settings.clock)?,
            settings,
        })
    }

    /// What the machine can do.
    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    /// Times every kernel that accepts a node.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Unsupported` where there is no kernel.
    pub fn measure(&self, subject: Subject) -> Result<Row> {
        let case = subject.0.case()?;
        let node = case.node();
        let ways = self.ways(&node);
        let (mut lanes, mut lane_of) = (Vec::new(), Vec::with_capacity(ways.len()));
        let mut patience = None;
        for way in &ways {
            let lane = self.lane(&case, way, patience)?;
            lane_of.push(lane.as_ref().map(|_| lanes.len()));
            if let Some((lane, seconds)) = lane {
                patience = patience.or(Some(SLOWER * seconds + self.settings.sample));
                lanes.push(lane);
            }
        }
        if lanes.is_empty() {
            return Err(unsupported(format!("no kernel for {subject}")));
        }
        let loss = take(&mut lanes, self.settings.turns, &self.settings.clock)?;
        let fastest = lane_of.iter().position(|lane| *lane == Some(loss.to));
        let timed = ways.iter().zip(lane_of).enumerate();
        let timed = timed.map(|(i, (way, lane))| {
            let seconds = lane.map(|lane| lanes[lane].seconds());
            Timed::new(way.name.clone(), i == 0, seconds, &case, &self.peaks)
        });
        Ok(Row {
            shape: subject.to_string(),
            operations: node.cost().flops,
            bytes: case.bytes(),
            arithmetic: case.arithmetic,
            kernels: timed.collect(),
            fastest: ways[fastest.unwrap_or_default()].name.clone(),
            loss: loss.share,
            wrong: loss.share > TOLERATED,
        })
    }

    /// The kernels for a node with each of their algorithms, what is chosen without tuning first.
    fn ways<'a>(&'a self, node: &'a NodeSpec) -> Vec<KernelWay<'a>> {
        let config = ContextConfig {
            threads: self.settings.threads,
            backend: BackendConfig::default(),
            ..ContextConfig::default()
        };
        let mut ways = Vec::new();
        for serving in self.registry.serving(node) {
            let (source, candidate) = (serving.source, serving.candidate);
            let Some(choice) = candidate.choice(node, &config) else {
                ways.push(KernelWay {
                    name: source.to_string(),
                    candidate,
                    tuned: Tuned::default(),
                });
                continue;
            };
            for algorithm in choice.algorithms {
                ways.push(KernelWay {
                    name: format!("{source}, {algorithm}"),
                    candidate,
                    tuned: Tuned::only(&choice.class, &algorithm),
                });
            }
        }
        ways
    }

    /// A kernel that has run, with the seconds of a run; `None` where it takes longer than `patience`, in seconds.
    fn lane<'a>(
        &'a self,
        case: &'a Case,
        way: &KernelWay,
        patience: Option<f64>,
    ) -> Result<Option<(Lane<'a>, f64)>> {
        let clock = self.settings.clock;
        let how = Way {
            threads: self.threads,
            tuned: way.tuned.clone(),
        };
        let node = case.node();
        let built = Prepared::new(&node, &case.values, how, &Interrupt::NEVER, |build| {
            way.candidate.build(&node, build)
        });
        let mut kernel = built?;
        // The first run pays for what is only done once, such as the first touch of memory.
        let mut seconds = 0.0;
        for _ in 0..2 {
            let start = clock();
            match kernel.run(&Interrupt::default().within(patience, clock)) {
                Ok(()) => seconds = clock() - start,
                Err(error) if error.code() == ErrorCode::Aborted => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let run = move || kernel.run(&Interrupt::NEVER);
        let lane = Lane::new(run, &clock, self.settings.sample)?;
        Ok(Some((lane, seconds)))
    }
}

/// A kernel with one of its algorithms.
struct KernelWay<'a> {
    name: String,
    candidate: &'a dyn Candidate,
    tuned: Tuned,
}

#[cfg(test)]
mod tests {
    use super::shapes::{Shape, layer};
    use super::*;
    use kilim_core::SessionOptions;
    use kilim_core::ops::MatMul;
    use kilim_host::registry::any;
    use kilim_host::{Io, Kernel};
    use std::time::Duration;

    fn settings() -> Settings {
        Settings {
            threads: Some(1),
            sample: 0.0,
            turns: 3,
            clock: SessionOptions::default().clock,
        }
    }

    #[test]
    fn every_kernel_and_algorithm_is_timed() {
        let roofline = Roofline::new(settings()).expect("there is memory");
        let winograd = Subject(Shape::Convolution(layer(14, 64, 64, 1, 3, 1)));
        let row = roofline.measure(winograd).expect("it runs");
        let names: Vec<&str> = row.kernels.iter().map(|k| k.name.as_str()).collect();
        let expected = [
            "SIMD, Winograd 4x4",
            "SIMD, dense",
            "SIMD, Winograd 2x2",
            "reference",
        ];
        assert_eq!(names, expected);
        let chosen: Vec<bool> = row.kernels.iter().map(|k| k.chosen).collect();
        assert_eq!(chosen, [true, false, false, false]);
        let fast = &row.kernels[0];
        let (rate, seconds) = (fast.rate.expect("timed"), fast.seconds.expect("timed"));
        assert!((rate * seconds / row.operations - 1.0).abs() < 1e-9);
        let peak = roofline.peaks().float32;
        assert!((fast.of_peak.expect("timed") * peak / rate - 1.0).abs() < 1e-9);
        assert!(fast.of_memory > Some(0.0));
    }

    /// Every node of the list is one that a SIMD kernel accepts: another would be measured against a peak that is not its own.
    #[test]
    fn the_list_is_computed_by_vectors() {
        let registry = crate::kernels();
        for subject in Subject::all() {
            let case = subject.0.case().expect("there is memory");
            let node = case.node();
            let first = registry.serving(&node).next();
            assert_eq!(first.map(|s| s.source), Some("SIMD"), "{subject}");
        }
    }

    /// A kernel that takes its time.
    struct Waits(u64);

    impl Kernel for Waits {
        fn run(&self, _: &mut Io) -> Result<()> {
            std::thread::sleep(Duration::from_millis(self.0));
            Ok(())
        }
    }

    #[test]
    fn a_wrong_choice_is_found() {
        let mut registry = KernelRegistry::default();
        registry.begin("slow");
        registry.add::<MatMul>(any, |_, _, _| Ok(Box::new(Waits(4))));
        registry.begin("fast");
        registry.add::<MatMul>(any, |_, _, _| Ok(Box::new(Waits(1))));
        let roofline = Roofline::of(registry, settings()).expect("there is memory");
        let product = Subject(Shape::Product([8, 8, 8]));
        let row = roofline.measure(product).expect("it runs");
        assert_eq!(row.kernels[0].name, "slow");
        assert!(row.wrong && row.fastest == "fast", "{row:?}");
    }

    #[test]
    fn a_right_choice_is_none() {
        let mut registry = KernelRegistry::default();
        registry.begin("fast");
        registry.add::<MatMul>(any, |_, _, _| Ok(Box::new(Waits(1))));
        registry.begin("slow");
        registry.add::<MatMul>(any, |_, _, _| Ok(Box::new(Waits(20))));
        let roofline = Roofline::of(registry, settings()).expect("there is memory");
        let product = Subject(Shape::Product([8, 8, 8]));
        let row = roofline.measure(product).expect("it runs");
        assert!(!row.wrong && row.fastest == "fast", "{row:?}");
    }

    #[test]
    fn a_node_without_kernels_is_refused() {
        let registry = KernelRegistry::default();
        let roofline = Roofline::of(registry, settings()).expect("there is memory");
        let refused = roofline.measure(Subject(Shape::Product([8, 8, 8])));
        let error = refused.expect_err("there is none");
        assert_eq!(error.code(), ErrorCode::Unsupported);
    }
}
