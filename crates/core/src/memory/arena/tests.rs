use std::any::Any;
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::{Error, ErrorCode};
use crate::ids::BackendId;

/// Notes how many bytes it gives and takes back, and gives at most 100.
#[derive(Default)]
struct Counting {
    given: Mutex<Vec<usize>>,
    back: Mutex<Vec<usize>>,
}

impl Allocator for Counting {
    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        if bytes > 100 {
            return Err(Error::new(ErrorCode::Limit, "there is not so much"));
        }
        self.given.lock().unwrap().push(bytes);
        Ok(Box::new(vec![0u8; bytes]))
    }

    fn release(&self, memory: Box<dyn ArenaMemory>) {
        let memory: Box<dyn Any> = memory;
        let memory = memory.downcast::<Vec<u8>>().unwrap();
        self.back.lock().unwrap().push(memory.len());
    }
}

#[test]
fn memory_grows_and_is_cleared() {
    let arena = Arena::default();
    arena.reserve(10).unwrap();
    let before = arena.lock(10).unwrap().generation();
    assert_eq!(arena.lock(4).unwrap().generation(), before);
    let mut guard = arena.lock(20).unwrap();
    assert_ne!(guard.generation(), before);
    let memory = guard.memory::<crate::memory::HostMemory>().unwrap();
    assert_eq!(memory.unwrap().base().1, 20);
    assert_eq!(
        guard.memory::<String>().unwrap_err().code(),
        ErrorCode::State
    );
    drop(guard);
    assert_eq!(arena.bytes(), 20);
    arena.clear();
    assert_eq!(arena.bytes(), 0);
}

#[test]
fn one_user_runs_at_a_time() {
    let first = Arena::default();
    let second = first.attach();
    first.reserve(8).unwrap();
    let lease = first.lease().unwrap();
    assert_eq!(second.lease().unwrap_err().code(), ErrorCode::State);
    second.reserve(16).unwrap();
    assert_eq!(first.bytes(), 8, "a run's memory stays where it is");
    let locked = second.lock(8).err().map(|e| e.code());
    assert_eq!(locked, Some(ErrorCode::State));
    first.clear();
    assert_eq!(first.bytes(), 8);
    drop(lease);
    let _lease = second.lease().unwrap();
    second.lock(16).unwrap();
    assert_eq!(first.bytes(), 16);
}

#[test]
fn the_callers_memory_does_not_grow() {
    let allocator = Arc::new(Counting::default());
    let memory = allocator.allocate(32).unwrap();
    let arena = Arena::external(BackendId::new("test"), allocator.clone(), memory, 32);
    arena.reserve(32).unwrap();
    let error = arena.reserve(33).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(error.expected(), Some("at least 33 bytes"));
    arena.clear();
    assert_eq!(arena.bytes(), 32);
    let other = arena.attach();
    drop(arena);
    assert!(allocator.back.lock().unwrap().is_empty());
    drop(other);
    assert_eq!(*allocator.back.lock().unwrap(), [32]);
}

#[test]
fn an_allocator_gets_back_what_it_gave() {
    let allocator = Arc::new(Counting::default());
    let arena = Arena::new(allocator.clone());
    arena.reserve(0).unwrap();
    assert!(allocator.given.lock().unwrap().is_empty());
    for bytes in [10, 5, 20] {
        arena.reserve(bytes).unwrap();
    }
    assert_eq!(*allocator.given.lock().unwrap(), [10, 20]);
    assert_eq!(*allocator.back.lock().unwrap(), [10]);
    assert_eq!(arena.reserve(101).unwrap_err().code(), ErrorCode::Limit);
    assert_eq!(arena.bytes(), 0, "what failed leaves nothing behind");
    arena.reserve(30).unwrap();
    arena.clear();
    assert_eq!(*allocator.back.lock().unwrap(), [10, 20, 30]);
    let another = arena.another();
    another.reserve(40).unwrap();
    drop((arena, another));
    assert_eq!(*allocator.back.lock().unwrap(), [10, 20, 30, 40]);
}
