//! A device in Rust that convolves, as `examples/plugin-c/conv` does in C: Conv on float32 images, with a bias and Relu where
//! Kilim has merged them. It takes two convolutions that follow each other as one node of its own, com.example::ConvPair, has two
//! algorithms to choose from, keeps its weights in a form of its own, which runs at the same time share, has its work done before
//! that of others, and may lose its device.
//!
//!     cargo build -p backend_conv
//!     kilim bench model.onnx --backends conv,cpu --plugin-path target/debug
//!
//! The option `log` names a file for calls. With the feature `pointwise-last`, convolutions of 1x1 are wanted on channels-last data.

mod graph;
mod kernels;
mod layer;

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kilim_plugin_abi::guest::{
    Build, Call, Change, Choice, Choices, DataLayout, Description, Failure, Guest, Kernel, Node,
    NodeLayouts, OperatorDef, OptionDef, OptionKind, OutputInfo, Result, Scheduler, Subgraph, Task,
};
use kilim_plugin_abi::{ARITHMETIC, FLOAT32};

use kernels::Convolutions;
use layer::Layer;

/// Algorithms: point by point, or by rows of the output, which needs channels first.
const POINTS: &CStr = c"points";
const ROWS: &CStr = c"rows";

/// The device, which its kernels share.
#[derive(Default)]
struct Device {
    runs: AtomicI64,
    lost: AtomicBool,
}

impl Device {
    /// Counts a run of a kernel; in the one with the number `lose` the device is lost.
    fn start(&self, lose: Option<i64>) -> Result {
        if lose.is_some_and(|run| self.runs.fetch_add(1, Ordering::Relaxed) == run) {
            self.lost.store(true, Ordering::Relaxed);
        }
        match self.lost.load(Ordering::Relaxed) {
            true => Err(Failure::device("the device is lost")),
            false => Ok(()),
        }
    }
}

#[derive(Default)]
struct Convolver {
    device: Arc<Device>,
    log: Mutex<Option<PathBuf>>,
}

impl Convolver {
    /// Writes a line to the log, if there is one.
    fn tell(&self, line: &str) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = &*log {
            let file = OpenOptions::new().create(true).append(true).open(log);
            // A log that cannot be written stays behind.
            let _ = file.and_then(|mut file| writeln!(file, "{line}"));
        }
    }
}

impl Guest for Convolver {
    fn open() -> Result<Convolver> {
        Ok(Convolver::default())
    }

    fn device(&self) -> &CStr {
        c"a device that convolves, in Rust"
    }

    fn describe(&self) -> Description {
        let both = [DataLayout::ChannelsFirst, DataLayout::ChannelsLast];
        let layouts = if cfg!(feature = "pointwise-last") {
            2
        } else {
            1
        };
        Description {
            dtypes: vec![(FLOAT32, ARITHMETIC)],
            layouts: both[..layouts].to_vec(),
            replicas: true,
            packs: true,
            ..Description::default()
        }
    }

    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>> {
        let layer = Layer::of(node)?;
        let data = node.inputs.first().copied().flatten();
        let [from, to] = [data.as_ref(), node.outputs.first()].map(|t| t.map_or("", |t| t.name));
        self.tell(&format!("supports {}: {from} -> {to}", node.name));
        Ok(Box::new(Convolutions::new(layer, self.device.clone())))
    }

    fn kernel_with(&self, node: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        let mut kernel = Convolutions::new(Layer::of(node)?, self.device.clone());
        kernel.rows = build.algorithm == Some(ROWS);
        kernel.lose = build.settings.integer("lose").filter(|&run| run >= 0);
        for input in 1..node.inputs.len() {
            kernel.packed.push(build.pack(input, kernels::floats)?);
        }
        Ok(Box::new(kernel))
    }

    fn optimise(&self, subgraph: &Subgraph) -> Result<Vec<Change>> {
        Ok(graph::pairs(subgraph))
    }

    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
        cfg!(feature = "pointwise-last").then_some(self)
    }

    fn choices(&self) -> Option<&dyn Choices> {
        Some(self)
    }

    fn scheduler(&self) -> Option<&dyn Scheduler> {
        Some(self)
    }

    fn hear(&self, call: Call) {
        self.tell(match call {
            Call::CreateContext(settings) => {
                let log = Some(settings.text("log")).filter(|log| !log.is_empty());
                *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log.map(PathBuf::from);
                "create_context"
            }
            Call::ReleaseContext => "release_context",
            Call::Replica => "replica",
            Call::Replicate => "replicate",
            Call::IsPacked => "is_packed",
            Call::Keep => "keep",
            _ => return,
        });
    }

    fn is_lost(&self) -> bool {
        self.device.lost.load(Ordering::Relaxed)
    }

    fn reopen(&self) -> Result {
        self.tell("reopen");
        self.device.lost.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn options() -> &'static [OptionDef] {
        &[
            OptionDef {
                name: c"lose",
                kind: OptionKind::Integer,
                initial: c"-1",
                meaning: c"the run in which the device is lost, to try that out",
            },
            OptionDef {
                name: c"log",
                kind: OptionKind::Text,
                initial: c"",
                meaning: c"a file for calls",
            },
        ]
    }

    fn operators() -> &'static [OperatorDef] {
        &[OperatorDef {
            domain: c"com.example",
            name: c"ConvPair",
            infer: |node| {
                let shape = Layer::of(node)?.result().map(|n| n as i64).to_vec();
                Ok(vec![OutputInfo {
                    dtype: FLOAT32,
                    shape,
                }])
            },
        }]
    }
}

impl NodeLayouts for Convolver {
    fn fastest(&self, node: &Node) -> Option<DataLayout> {
        let weights = node.inputs.get(1).copied().flatten();
        match (node.op, weights?.shape?) {
            ("Conv", [_, _, 1, 1]) => Some(DataLayout::ChannelsLast),
            ("Conv", [_, _, _, _]) => Some(DataLayout::ChannelsFirst),
            _ => None,
        }
    }
}

impl Choices for Convolver {
    fn choice(&self, node: &Node) -> Option<Choice> {
        let layer = Layer::of(node).ok()?;
        let first = layer.convolutions.first().filter(|conv| !conv.last)?;
        Some(Choice {
            class: format!("{} {first}", node.op),
            algorithms: &[POINTS, ROWS],
        })
    }
}

impl Scheduler for Convolver {
    fn order(&self, tasks: &[Task]) -> Result<Vec<usize>> {
        let order = graph::own_first(tasks);
        self.tell("schedule");
        Ok(order)
    }
}

impl Drop for Convolver {
    fn drop(&mut self) {
        self.tell("destroy");
    }
}

kilim_plugin_abi::export_backend!(Convolver);
