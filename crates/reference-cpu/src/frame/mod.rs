//! What stands around the kernels: the backend, its contexts and executables, and the access of
//! kernels to memory.

#[cfg(any(test, feature = "testing"))]
mod alone;
mod backend;
mod context;
mod cpu;
mod executable;
mod io;
mod kernel;
mod packs;
mod parts;
mod scratch;
#[cfg(threads)]
mod spread;
mod table;
mod texts;
pub(crate) mod threads;
pub(crate) mod widen;

#[cfg(any(test, feature = "testing"))]
pub use alone::{Alone, build_alone};
pub use backend::CpuBackend;
#[cfg(any(test, feature = "testing"))]
pub use backend::run_candidate;
pub use cpu::CpuRun;
pub use io::Io;
pub use kernel::{Build, Kernel};
pub use packs::PackKey;
pub use parts::{By, Parts, Shared, by};
pub use scratch::Scratch;
pub use table::Table;
pub use texts::Texts;
pub use threads::Threads;
