//! One node, computed at once.

use std::ffi::c_void;

use super::memory::Block;
use super::{Opened, guarded, list, node};
use crate::guest::{Data, Failure, Guest};
use crate::{self as abi, Status};

pub unsafe extern "C" fn evaluate<G: Guest>(
    this: *mut c_void,
    n: *const abi::Node,
    outputs: *const *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the node is Kilim's.
        let (opened, told) = unsafe { (&*this.cast::<Opened<G>>(), node(n)) };
        let mut kernel = opened.guest.kernel(&told).map_err(|f| (f, -1))?;
        let mut blocks = Vec::with_capacity(told.inputs.len());
        for input in &told.inputs {
            blocks.push(match input {
                None => None,
                Some(input) => Some(copied(input.data).map_err(|f| (f, -1))?),
            });
        }
        // SAFETY: the blocks are initialised and of this call alone.
        let inputs = blocks
            .iter()
            .map(|b| b.as_ref().map(|b| unsafe { whole(b) }));
        let inputs: Vec<Option<Data>> = inputs.collect();
        // SAFETY: Kilim's node has as many outputs, each with its bytes, and room for each.
        let rooms: Vec<(*mut c_void, usize)> = unsafe {
            let tensors = list((*n).outputs, (*n).output_count);
            let rooms = list(outputs, tensors.len()).iter();
            rooms.zip(tensors).map(|(&r, t)| (r, (**t).bytes)).collect()
        };
        let results = rooms.iter().map(|&(_, bytes)| Block::zeroed(bytes));
        let results = results.collect::<Result<Vec<Block>, _>>();
        let results = results.map_err(|f| (f, -1))?;
        let made = results.iter().zip(&rooms);
        // SAFETY: the blocks are initialised, and nothing else uses them while the kernel runs.
        let made = made.map(|(b, &(_, bytes))| unsafe { Data::new(b.start().cast(), bytes) });
        let mut made: Vec<Data> = made.collect();
        let given: Vec<Option<&Data>> = inputs.iter().map(Option::as_ref).collect();
        kernel.run(&given, &mut made).map_err(|f| (f, -1))?;
        for (data, (room, bytes)) in made.iter().zip(rooms) {
            // SAFETY: Kilim gave room for so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(data.bytes().as_ptr(), room.cast(), bytes) };
        }
        Ok(())
    })
}

/// Elements of an input at an address that kernels can read, with as many bytes as they are.
struct Copied(Block, usize);

fn copied(elements: Option<&[u8]>) -> Result<Copied, Failure> {
    let unknown = || Failure::unsupported("the elements of an input are not known");
    let elements = elements.ok_or_else(unknown)?;
    let block = Block::zeroed(elements.len())?;
    let start = block.start().as_ptr();
    // SAFETY: the block is fresh, and large enough.
    unsafe { std::ptr::copy_nonoverlapping(elements.as_ptr(), start, elements.len()) };
    Ok(Copied(block, elements.len()))
}

/// # Safety
/// Nothing writes the elements while the result lives.
unsafe fn whole(copied: &Copied) -> Data {
    // SAFETY: the block is initialised and as large; nothing writes it while the result lives.
    unsafe { Data::new(copied.0.start().cast(), copied.1) }
}
