//! Operators of `com.example` that show when and where kernels of a library in Rust run: `Wait` gives its input when a file
//! is there, `Plus` adds two tensors, `Place` gives the addresses of its input and its output, `Count` the number of blocks of
//! memory that Kilim has asked for, `Asked` what the session asks of the backend. On Linux it computes in files that it maps, and in host
//! memory of the user's.

#[cfg(target_os = "linux")]
mod memory;

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kilim_plugin_abi::guest::{
    Build, Data, Description, Failure, Guest, Half, Kernel, Memory, Node, OperatorDef, OptionDef,
    OptionKind, OutputInfo, Quantized, Result, Settings,
};
#[cfg(target_os = "linux")]
use kilim_plugin_abi::guest::{Handle, HandleKind, Mapping, UserMemory};
use kilim_plugin_abi::{MEMORY_DEVICE, MEMORY_HOST};

/// `KILIM_INT64`.
const INT64: i32 = 7;

/// Blocks of memory that Kilim has asked for.
#[derive(Default)]
struct Gate(Arc<AtomicI64>);

impl Gate {
    fn made(&self, node: &Node, settings: &Settings) -> Result<Box<dyn Kernel>> {
        match node.op {
            "Wait" => {
                let file = PathBuf::from(settings.text("file"));
                let seconds = settings.number("seconds").unwrap_or(0.0);
                let most = Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
                Ok(Box::new(
                    move |inputs: &[Option<&Data>], outputs: &mut [Data]| {
                        let start = Instant::now();
                        while !file.exists() {
                            if start.elapsed() > most {
                                return Err(Failure::device("nobody went on"));
                            }
                            sleep(Duration::from_millis(1));
                        }
                        let [Some(x)] = inputs else { return missing() };
                        outputs[0].bytes_mut().copy_from_slice(x.bytes());
                        Ok(())
                    },
                ))
            }
            "Plus" => Ok(Box::new(
                |inputs: &[Option<&Data>], outputs: &mut [Data]| {
                    let [Some(a), Some(b)] = inputs else {
                        return missing();
                    };
                    let pairs = a.f32s().iter().zip(b.f32s());
                    for (y, (a, b)) in outputs[0].f32s_mut().iter_mut().zip(pairs) {
                        *y = a + b;
                    }
                    Ok(())
                },
            )),
            "Place" => Ok(Box::new(
                |inputs: &[Option<&Data>], outputs: &mut [Data]| {
                    let [Some(x)] = inputs else { return missing() };
                    let places = [x.bytes().as_ptr(), outputs[0].bytes().as_ptr()];
                    let to = outputs[0].elements_mut::<i64>();
                    for (to, place) in to.iter_mut().zip(places) {
                        *to = place.addr() as i64;
                    }
                    Ok(())
                },
            )),
            "Count" => {
                let count = self.0.clone();
                Ok(Box::new(
                    move |_: &[Option<&Data>], outputs: &mut [Data]| {
                        outputs[0].elements_mut()[0] = count.load(Ordering::Relaxed);
                        Ok(())
                    },
                ))
            }
            "Asked" => {
                let asked = [
                    i64::from(settings.dynamic_shapes),
                    i64::from(settings.half == Some(Half::Chosen)),
                    i64::from(settings.quantized == Quantized::Native),
                    i64::from(settings.timers),
                ];
                Ok(Box::new(
                    move |_: &[Option<&Data>], outputs: &mut [Data]| {
                        outputs[0].elements_mut().copy_from_slice(&asked);
                        Ok(())
                    },
                ))
            }
            _ => Err(Failure::unsupported(
                "only Wait, Plus, Place, Count and Asked",
            )),
        }
    }
}

impl Guest for Gate {
    fn open() -> Result<Gate> {
        Ok(Gate::default())
    }

    fn device(&self) -> &CStr {
        c"a gate"
    }

    fn describe(&self) -> Description {
        Description {
            queued: cfg!(feature = "queued"),
            dynamic_shapes: !cfg!(feature = "config"),
            half: cfg!(feature = "config").then_some(Half::Chosen),
            quantized: match cfg!(feature = "config") {
                true => Quantized::Native,
                false => Quantized::Exact,
            },
            memory: match cfg!(feature = "host") {
                true => MEMORY_HOST,
                false => MEMORY_DEVICE,
            },
            ..Description::default()
        }
    }

    fn allocate(&self, _: usize) -> Result<Option<Memory>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }

    #[cfg(target_os = "linux")]
    fn handle_kinds(&self) -> Vec<HandleKind> {
        vec![HandleKind::Host, HandleKind::DmaBuf]
    }

    #[cfg(target_os = "linux")]
    fn import(&self, memory: &UserMemory, _: &Settings) -> Result<Mapping> {
        match memory.handle {
            Handle::DmaBuf(fd) => memory::map(fd, memory.offset, memory.bytes),
            _ => Err(Failure::unsupported("only files are mapped")),
        }
    }

    fn queue(&self, settings: &Settings) -> Option<u64> {
        settings.queue.or(Some(7))
    }

    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>> {
        self.made(node, &Settings::default())
    }

    fn kernel_with(&self, node: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        self.made(node, build.settings)
    }

    fn options() -> &'static [OptionDef] {
        &[
            OptionDef {
                name: c"file",
                kind: OptionKind::Text,
                initial: c"",
                meaning: c"what Wait waits for",
            },
            OptionDef {
                name: c"seconds",
                kind: OptionKind::Number,
                initial: c"10",
                meaning: c"how long Wait waits",
            },
        ]
    }

    fn operators() -> &'static [OperatorDef] {
        &[
            OperatorDef {
                domain: c"com.example",
                name: c"Wait",
                infer: like_the_first,
            },
            OperatorDef {
                domain: c"com.example",
                name: c"Plus",
                infer: like_the_first,
            },
            OperatorDef {
                domain: c"com.example",
                name: c"Place",
                infer: |_| Ok(integers(2)),
            },
            OperatorDef {
                domain: c"com.example",
                name: c"Count",
                infer: |_| Ok(integers(1)),
            },
            OperatorDef {
                domain: c"com.example",
                name: c"Asked",
                infer: |_| Ok(integers(4)),
            },
        ]
    }
}

fn integers(count: i64) -> Vec<OutputInfo> {
    vec![OutputInfo {
        dtype: INT64,
        shape: vec![count],
    }]
}

fn missing() -> Result {
    Err(Failure::device("an input is missing"))
}

fn like_the_first(node: &Node) -> Result<Vec<OutputInfo>> {
    let first = node.inputs.first().and_then(Option::as_ref);
    let shape = first.and_then(|x| Some((x.dtype, x.shape?.to_vec())));
    let (dtype, shape) = shape.ok_or_else(|| Failure::unsupported("the input is unknown"))?;
    Ok(vec![OutputInfo { dtype, shape }])
}

kilim_plugin_abi::export_backend!(Gate);
