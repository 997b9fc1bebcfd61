//! The numbers of `include/kilim_backend.h`, which says what each of them means.

use crate::Status;

/// `KILIM_BACKEND_VERSION`.
pub const VERSION: u32 = 1;
/// `KILIM_MAX_RANK`: the dimensions that an [`crate::Output`] has room for.
pub const MAX_RANK: usize = 16;
/// An optional input that is left out.
pub const ABSENT: usize = usize::MAX;

/// `KILIM_OK`.
pub const OK: Status = 0;
/// `KILIM_UNSUPPORTED`: nothing that the backend runs.
pub const UNSUPPORTED: Status = 1;
/// `KILIM_INVALID_VALUE`: the data is out of an operator's domain.
pub const INVALID_VALUE: Status = 2;
/// `KILIM_LIMIT`: memory is short, or another limit was passed.
pub const LIMIT: Status = 3;
/// `KILIM_DEVICE`: the device failed.
pub const DEVICE: Status = 4;

/// `KILIM_INTS`, a kind of [`crate::Attribute`]: `i64`s, booleans as 0 and 1.
pub const INTS: i32 = 1;
/// `KILIM_FLOATS`: `f64`s.
pub const FLOATS: i32 = 2;
/// `KILIM_TEXTS`: strings that end with a zero.
pub const TEXTS: i32 = 3;
/// `KILIM_BYTES`: bytes.
pub const BYTES: i32 = 4;
/// `KILIM_TENSORS`: [`crate::Tensor`]s.
pub const TENSORS: i32 = 5;

/// `KILIM_STORAGE`, a grade of an element type: it can be stored.
pub const STORAGE: i32 = 1;
/// `KILIM_ARITHMETIC`: it can be computed with, too.
pub const ARITHMETIC: i32 = 2;
/// `KILIM_FAST`: computing with it is fast.
pub const FAST: i32 = 3;

/// `KILIM_CONSTANT`, a place of a [`crate::Slot`]: a constant of the session.
pub const CONSTANT: i32 = 1;
/// `KILIM_PLANNED`: known, but only for this stage.
pub const PLANNED: i32 = 2;
/// `KILIM_ARENA`: in the arena, [`crate::Slot::offset`] bytes from its beginning.
pub const ARENA: i32 = 3;
/// `KILIM_ALIAS`: the bytes of tensor [`crate::Slot::of`].
pub const ALIAS: i32 = 4;

/// `KILIM_INPUT`: elements in host memory that are only read.
pub const INPUT: i32 = 5;
/// `KILIM_OUTPUT`: room in host memory for elements that leave the stage.
pub const OUTPUT: i32 = 6;

/// `KILIM_TASK_PART`: the steps of a part, on one backend.
pub const TASK_PART: i32 = 1;
/// `KILIM_TASK_CROSS`: tensors that go from one backend to another.
pub const TASK_CROSS: i32 = 2;

/// `KILIM_MEMORY_DEVICE`: what a backend reads is written to it, what it computes is read.
pub const MEMORY_DEVICE: i32 = 1;
/// `KILIM_MEMORY_HOST`: a backend reads and writes host memory in place.
pub const MEMORY_HOST: i32 = 2;

/// `KILIM_HANDLE_HOST`, a kind of a [`crate::Handle`]: the address of host memory.
pub const HANDLE_HOST: i32 = 1;
/// `KILIM_HANDLE_DMA_BUF`: a file descriptor of a dma-buf.
pub const HANDLE_DMA_BUF: i32 = 2;
/// `KILIM_HANDLE_DMA_BUF_PROTECTED`: a file descriptor of a dma-buf that the host must neither read nor write.
pub const HANDLE_DMA_BUF_PROTECTED: i32 = 3;
/// `KILIM_HANDLE_HARDWARE_BUFFER`: an `AHardwareBuffer *`.
pub const HANDLE_HARDWARE_BUFFER: i32 = 4;
/// `KILIM_HANDLE_OWN`: a kind of the backend's own, by its name.
pub const HANDLE_OWN: i32 = 5;

/// `KILIM_NCHW`, a layout of spatial tensors: channels first.
pub const NCHW: i32 = 1;
/// `KILIM_NHWC`: channels last.
pub const NHWC: i32 = 2;

/// `KILIM_HALF_BY_GRADE`: what is computed in `float16` follows from the grade of the type.
pub const HALF_BY_GRADE: i32 = -1;
/// `KILIM_HALF_OFF`: nothing is computed in `float16`.
pub const HALF_OFF: i32 = 0;
/// `KILIM_HALF_CHOSEN`: nodes that mixed precision chooses.
pub const HALF_CHOSEN: i32 = 1;
/// `KILIM_HALF_KEPT`: models of half precision, too.
pub const HALF_KEPT: i32 = 2;

/// `KILIM_QUANTIZED_EXACT`: quantised tensors as every other backend computes them.
pub const QUANTIZED_EXACT: i32 = 0;
/// `KILIM_QUANTIZED_NATIVE`: at most a step of quantisation off in each operator.
pub const QUANTIZED_NATIVE: i32 = 1;

/// `KILIM_OPTION_SWITCH`, a kind of an [`crate::OptionInfo`]: `on` or `off`.
pub const OPTION_SWITCH: i32 = 1;
/// `KILIM_OPTION_INTEGER`: a whole number.
pub const OPTION_INTEGER: i32 = 2;
/// `KILIM_OPTION_NUMBER`: a finite number.
pub const OPTION_NUMBER: i32 = 3;
/// `KILIM_OPTION_TEXT`: any text.
pub const OPTION_TEXT: i32 = 4;
/// `KILIM_OPTION_CHOICE`: one of [`crate::OptionInfo::choices`].
pub const OPTION_CHOICE: i32 = 5;

/// `KILIM_FLOAT32`; element types are numbered as in ONNX.
pub const FLOAT32: i32 = 1;
