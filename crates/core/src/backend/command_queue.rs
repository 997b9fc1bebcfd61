//! Command queues of devices, which users and backends tell each other.

/// A command queue of a device, by a handle as the backend defines it: a `cl_command_queue` for instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandQueue(u64);

impl CommandQueue {
    /// The queue of this handle.
    ///
    /// # Safety
    /// The handle is one of a queue of the kind that the backend says, which lives as long as the sessions that it is given to.
    pub unsafe fn new(handle: u64) -> CommandQueue {
        CommandQueue(handle)
    }

    /// The handle.
    pub fn handle(self) -> u64 {
        self.0
    }
}
