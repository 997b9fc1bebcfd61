//! Small functions that no run of the core entered stay there, as a stand-in would cost as much. Where one part alone can call such a
//! function, nothing need stand for it, and it follows that part.

use super::binary::Binary;
use super::callers::Callers;
use super::cold::LENGTHS;
use super::data::{Moved, moved};
use super::layout::Layout;
use super::owners::Profile;
use anyhow::Result;
use std::collections::HashSet;

/// Has functions of the core follow the part that alone may call them. Gives the data that leaves the core then.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn follow(
    binary: &Binary,
    layout: &Layout,
    profile: &Profile,
    owners: &mut [Option<usize>],
) -> Result<Vec<Moved>> {
    let core = profile.get("core");
    let free = binary.functions().filter(|f| {
        let own = *f as usize;
        let lengths = || LENGTHS.iter().any(|of| binary.names[own].contains(of));
        let entered = core.is_some_and(|core| core.contains(f));
        *f >= binary.imported && !binary.rooted[own] && !entered && !lengths()
    });
    let free: Vec<u32> = free.collect();
    let callers = Callers::new(binary, layout);
    loop {
        let moved = moved(binary, layout, owners)?;
        let mut followed = false;
        for &f in &free {
            if owners[f as usize].is_some() {
                continue;
            }
            let by = callers.of(f, owners, &moved);
            if let (Some(Some(part)), 1) = (by.first(), by.len()) {
                owners[f as usize] = Some(*part);
                followed = true;
            }
        }
        if !followed {
            return Ok(moved);
        }
    }
}

/// The functions of the table that nobody but their own part may call: nothing need stand there before the part is there. `moved` is the data
/// that parts bring, in the order of its addresses.
///
/// Threads that share memory have none: one reads data there that another's part has brought, while its own table has not that part yet.
pub fn hidden(
    binary: &Binary,
    layout: &Layout,
    owners: &[Option<usize>],
    moved: &[Moved],
) -> HashSet<u32> {
    if binary.shared {
        return HashSet::new();
    }
    let callers = Callers::new(binary, layout);
    let own_alone = |f: &u32| {
        let owner = owners[*f as usize];
        owner.is_some() && callers.of(*f, owners, moved).iter().eq([&owner])
    };
    binary.slots.keys().copied().filter(own_alone).collect()
}
