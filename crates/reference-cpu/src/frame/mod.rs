//! What stands around the kernels: the backend, its contexts and executables, and the access of
//! kernels to memory.

mod backend;
mod context;
mod executable;
mod io;
mod kernel;
mod packs;
mod texts;
pub(crate) mod widen;

pub use backend::CpuBackend;
#[cfg(any(test, feature = "testing"))]
pub use backend::run_candidate;
pub use io::Io;
pub use kernel::{Build, CpuRun, Kernel, Threads};
pub use packs::PackKey;
pub use texts::Texts;
