//! What a backend says of its device, and what users ask of it.

use std::ffi::CStr;

use crate as abi;

/// A layout of spatial tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLayout {
    /// NCHW.
    ChannelsFirst,
    /// NHWC.
    ChannelsLast,
}

impl DataLayout {
    pub(crate) fn number(self) -> i32 {
        match self {
            DataLayout::ChannelsFirst => abi::NCHW,
            DataLayout::ChannelsLast => abi::NHWC,
        }
    }

    pub(crate) fn of(number: i32) -> Option<DataLayout> {
        match number {
            abi::NCHW => Some(DataLayout::ChannelsFirst),
            abi::NHWC => Some(DataLayout::ChannelsLast),
            _ => None,
        }
    }
}

/// What is computed in `float16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Nothing.
    Off,
    /// Nodes that mixed precision chooses.
    Chosen,
    /// Models of half precision, too.
    Kept,
}

impl Half {
    pub(crate) fn number(half: Option<Half>) -> i32 {
        match half {
            None => abi::HALF_BY_GRADE,
            Some(Half::Off) => abi::HALF_OFF,
            Some(Half::Chosen) => abi::HALF_CHOSEN,
            Some(Half::Kept) => abi::HALF_KEPT,
        }
    }

    pub(crate) fn of(number: i32) -> Option<Half> {
        match number {
            abi::HALF_OFF => Some(Half::Off),
            abi::HALF_CHOSEN => Some(Half::Chosen),
            abi::HALF_KEPT => Some(Half::Kept),
            _ => None,
        }
    }
}

/// The arithmetic of quantised tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantized {
    /// Bytes are those of every other backend.
    #[default]
    Exact,
    /// At most a step of quantisation off in each operator, where the backend has nothing exact.
    Native,
}

impl Quantized {
    pub(crate) fn number(self) -> i32 {
        match self {
            Quantized::Exact => abi::QUANTIZED_EXACT,
            Quantized::Native => abi::QUANTIZED_NATIVE,
        }
    }

    pub(crate) fn of(number: i32) -> Quantized {
        match number {
            abi::QUANTIZED_NATIVE => Quantized::Native,
            _ => Quantized::Exact,
        }
    }
}

/// What a backend says of its device. The default is what Kilim assumes of a backend that says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Element types with their grades: [`abi::STORAGE`], [`abi::ARITHMETIC`] or [`abi::FAST`].
    pub dtypes: Vec<(i32, i32)>,
    /// The largest tensor, in bytes.
    pub max_tensor_bytes: u64,
    /// The largest arena, in bytes.
    pub max_arena_bytes: u64,
    pub flops_per_second: f64,
    pub bytes_per_second: f64,
    /// Seconds that starting one kernel costs.
    pub kernel_start: f64,
    /// Seconds that one transfer costs, whatever its size.
    pub transfer_start: f64,
    pub transfer_bytes_per_second: f64,
    /// Layouts of spatial tensors, the fastest first.
    pub layouts: Vec<DataLayout>,
    /// Whether a session may be planned again for other shapes of its inputs.
    pub dynamic_shapes: bool,
    /// What is computed in `float16`. `None` is [`Half::Kept`] where that type is [`abi::FAST`], else [`Half::Off`].
    pub half: Option<Half>,
    /// How quantised tensors may be computed.
    pub quantized: Quantized,
    /// [`abi::MEMORY_DEVICE`], or [`abi::MEMORY_HOST`] where kernels read a stage's inputs and write its outputs in memory of
    /// the session's, without a copy. Hosts of before this was added copy.
    pub memory: i32,
    /// Whether kernels run on a thread of the library's, one after another in the order in which Kilim starts them. Kilim goes on
    /// meanwhile, with other backends for instance, and waits where it needs a result.
    pub queued: bool,
    /// Whether runs of one session at the same time share what its kernels have packed ([`super::Build::pack`]). Kernels that
    /// have no [`super::Kernel::replica`] are made anew for each of them.
    pub replicas: bool,
    /// Whether Kilim may let go of constants that every kernel has packed which reads them.
    pub packs: bool,
}

impl Default for Description {
    fn default() -> Description {
        let abi::Description {
            max_tensor_bytes,
            max_arena_bytes,
            flops_per_second,
            bytes_per_second,
            kernel_start,
            transfer_start,
            transfer_bytes_per_second,
            dynamic_shapes,
            half,
            quantized,
            memory,
            ..
        } = abi::Description::UNSAID;
        Description {
            dtypes: Vec::new(),
            max_tensor_bytes,
            max_arena_bytes,
            flops_per_second,
            bytes_per_second,
            kernel_start,
            transfer_start,
            transfer_bytes_per_second,
            layouts: vec![DataLayout::ChannelsFirst],
            dynamic_shapes: dynamic_shapes != 0,
            half: Half::of(half),
            quantized: Quantized::of(quantized),
            memory,
            queued: false,
            replicas: false,
            packs: false,
        }
    }
}

/// What the value of an option may be.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// `on` or `off`.
    Switch,
    /// A whole number that fits 64 bits with a sign.
    Integer,
    /// A finite number.
    Number,
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static CStr]),
}

/// An option of the backend's own: users write `--config ID:NAME=VALUE`. Kilim refuses names and values that are none.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    pub name: &'static CStr,
    pub kind: OptionKind,
    /// The value where the user gives none.
    pub initial: &'static CStr,
    /// One sentence without a full stop.
    pub meaning: &'static CStr,
}

/// What a session asks of the backend.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads that the backend may use; `None` leaves it to the backend.
    pub threads: Option<usize>,
    /// Whether memory is to be spared rather than time.
    pub spare_memory: bool,
    /// The layout of spatial tensors; `None` where the host does not say.
    pub layout: Option<DataLayout>,
    /// Whether the session may be planned again for other shapes of its inputs.
    pub dynamic_shapes: bool,
    /// What is computed in `float16`; `None` where the host does not say.
    pub half: Option<Half>,
    /// How quantised tensors may be computed.
    pub quantized: Quantized,
    /// Whether every run is timed.
    pub timers: bool,
    /// The command queue that the user gives; [`super::Guest::queue`] then gives it, too.
    pub queue: Option<u64>,
    pub(crate) values: Vec<(String, String)>,
}

/// What a host asks that does not say more.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            threads: None,
            spare_memory: false,
            layout: None,
            dynamic_shapes: true,
            half: None,
            quantized: Quantized::Exact,
            timers: false,
            queue: None,
            values: Vec::new(),
        }
    }
}

impl Settings {
    /// The value of an option, checked by Kilim; empty where a host does not know options.
    pub fn text(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    /// The value of an [`OptionKind::Switch`]; `None` where a host does not know options.
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.text(name) {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    /// The value of an [`OptionKind::Integer`]; `None` where a host does not know options.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    /// The value of an [`OptionKind::Number`]; `None` where a host does not know options.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name).parse().ok()
    }
}
