//! Tensors in memory of the user's, in which kernels compute, and the queues of contexts.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::NonNull;

use super::context::Context;
use super::kept::Kept;
use super::memory::Block;
use super::program::{Executable, Home, Program, failed};
use super::{Opened, Outcome, guarded, list, text};
use crate::guest::{Failure, Guest, Handle, HandleKind, Settings, UserMemory};
use crate::{self as abi, Status};

/// The size of a host's table that knows memory of the user's.
const KNOWN_FROM: usize = offset_of!(abi::Backend, import_memory) + size_of::<usize>();
/// The size of a host's table that knows queues.
const QUEUES_FROM: usize = offset_of!(abi::Backend, queue) + size_of::<usize>();

/// The kinds of memory that a guest takes, for a host with a table of `size` bytes.
pub fn kinds<G: Guest>(guest: &G, size: usize) -> Vec<abi::HandleKind> {
    if size < KNOWN_FROM {
        return Vec::new();
    }
    let told = guest.handle_kinds().into_iter().map(|kind| {
        let (kind, name) = match kind {
            HandleKind::Host => (abi::HANDLE_HOST, std::ptr::null()),
            HandleKind::DmaBuf => (abi::HANDLE_DMA_BUF, std::ptr::null()),
            HandleKind::ProtectedDmaBuf => (abi::HANDLE_DMA_BUF_PROTECTED, std::ptr::null()),
            HandleKind::HardwareBuffer => (abi::HANDLE_HARDWARE_BUFFER, std::ptr::null()),
            HandleKind::Own(name) => (abi::HANDLE_OWN, name.as_ptr()),
        };
        abi::HandleKind { kind, name }
    });
    told.collect()
}

/// Whether a host with a table of `size` bytes knows queues.
pub fn knows_queues(size: usize) -> bool {
    size >= QUEUES_FROM
}

/// The queue that a user has given.
///
/// # Safety
/// The options are of a host that [knows queues](knows_queues).
pub unsafe fn given_queue(options: &abi::ContextOptions) -> Option<u64> {
    // SAFETY: the queue is NULL, or lives during the call that the options came with.
    unsafe { options.queue.as_ref() }.copied()
}

/// The settings of a context; none of NULL.
///
/// # Safety
/// The context is of `create_context`, or NULL, and lives during `'a`.
unsafe fn settings<'a>(context: *mut c_void) -> Option<&'a Settings> {
    // SAFETY: the context is of `create_context`, or NULL.
    let context = unsafe { context.cast::<Context>().as_ref() };
    context.map(|context| &context.settings)
}

/// What the interface says of memory; `None` for host memory.
///
/// # Safety
/// The handle is what its kind says, and its name lives during `'a`.
unsafe fn handle<'a>(told: &abi::Handle) -> Outcome<Option<Handle<'a>>> {
    let descriptor = || i32::try_from(told.value).map_err(|_| invalid("no file descriptor"));
    Ok(Some(match told.kind.kind {
        abi::HANDLE_HOST => return Ok(None),
        abi::HANDLE_DMA_BUF => Handle::DmaBuf(descriptor()?),
        abi::HANDLE_DMA_BUF_PROTECTED => Handle::ProtectedDmaBuf(descriptor()?),
        abi::HANDLE_HARDWARE_BUFFER => {
            let buffer = NonNull::new(address(told.value)?);
            Handle::HardwareBuffer(buffer.ok_or_else(|| invalid("no buffer"))?)
        }
        // SAFETY: strings of the interface end with a zero.
        abi::HANDLE_OWN => Handle::Own(unsafe { text(told.kind.name) }, told.value),
        _ => return Err(invalid("a kind of memory that there is not")),
    }))
}

fn address<T>(value: u64) -> Outcome<*mut T> {
    let address = usize::try_from(value).map_err(|_| invalid("no address"))?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

fn invalid(text: &str) -> (Failure, i64) {
    (Failure::invalid(text), -1)
}

pub unsafe extern "C" fn import_memory<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    tensor: *const abi::Tensor,
    told: *const abi::Handle,
    kept: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the context of `create_context` or NULL, the rest Kilim's, which lives during the call.
        let (opened, settings, bytes, told) = unsafe {
            let opened = &*this.cast::<Opened<G>>();
            (opened, settings(context), (*tensor).bytes, &*told)
        };
        // SAFETY: whoever gave the handle says that it is what its kind says.
        let block = match unsafe { handle(told) }? {
            None => Block::of_user(address::<u8>(told.value)?.wrapping_add(told.offset), bytes),
            Some(handle) => {
                let memory = UserMemory {
                    handle,
                    offset: told.offset,
                    bytes: told.bytes,
                };
                let none = Settings::default();
                let mapping = opened.guest.import(&memory, settings.unwrap_or(&none));
                mapping.and_then(|mapping| Block::mapped(mapping, bytes))
            }
        };
        let block = block.map_err(|f| (f, -1))?;
        let is_users = true;
        let made = Kept {
            block,
            bytes,
            is_users,
        };
        // SAFETY: Kilim gave `kept` to be written.
        unsafe { *kept = Box::into_raw(Box::new(made)).cast() };
        Ok(())
    })
}

/// Has kernels write an output where the user wants it, until the run ends.
pub unsafe extern "C" fn keep_in(
    _this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    kept: *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`, the tensor of `import_memory`.
        let (executable, kept) =
            unsafe { (&*executable.cast::<Executable>(), &*kept.cast::<Kept>()) };
        executable.idle()?.lend(tensor, kept)
    })
}

pub unsafe extern "C" fn write_kept(
    _this: *mut c_void,
    kept: *mut c_void,
    data: *const c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the tensor is of `import_memory`, the data Kilim's.
        let (kept, data) = unsafe { (&*kept.cast::<Kept>(), list(data.cast::<u8>(), bytes)) };
        if kept.bytes != data.len() {
            return Err(failed("a tensor has another size than was imported"));
        }
        // SAFETY: the block has so many bytes, and no run uses it now.
        unsafe {
            let to = kept.block.start().as_ptr();
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
        Ok(())
    })
}

pub unsafe extern "C" fn queue<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    queue: *mut u64,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the context of `create_context` or NULL.
        let (opened, settings) = unsafe { (&*this.cast::<Opened<G>>(), settings(context)) };
        let none = Settings::default();
        let used = opened.guest.queue(settings.unwrap_or(&none));
        let used = used.ok_or_else(|| (Failure::unsupported("there are no queues"), -1))?;
        // SAFETY: Kilim gave `queue` to be written.
        unsafe { *queue = used };
        Ok(())
    })
}

impl Program {
    /// Has a tensor of the stage lie in memory of the user's until the run ends.
    pub fn lend(&mut self, tensor: usize, kept: &Kept) -> Outcome {
        let root = self.roots.get(tensor).copied();
        let root = root.ok_or_else(|| failed("the stage has no such tensor"))?;
        let bytes = match &self.homes[root] {
            Home::Block { bytes, .. } | Home::Attached { bytes, .. } => *bytes,
            _ => 0,
        };
        if bytes == 0 || self.lent.contains_key(&root) {
            let text = "the tensor is known, or lies in other memory of the user's";
            return Err((Failure::unsupported(text), -1));
        }
        if bytes != kept.bytes {
            return Err(failed("a tensor has another size than was imported"));
        }
        self.lent.insert(root, (kept.block.start(), bytes));
        Ok(())
    }
}
