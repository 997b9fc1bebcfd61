//! What a text holds: its caches, and nothing that becomes more with words, conversations or sessions.

mod speaker;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use speaker::{Speaker, prompt, session, settings, spoken, step};

/// The system's allocator, which counts.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated.
static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller says that the block is the system's, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// One test, since all threads count together: 2,000 words of one text, ten conversations of a session, and ten sessions.
#[test]
fn memory_is_flat() {
    let begin = prompt(6, 2);
    let mut s = session("llama-int4");
    let mut text = Speaker::new(&mut s, &settings(2048));
    let mut next = step(&mut text, &begin);
    let mut lengths = Vec::with_capacity(2000);
    for _ in 0..2000 {
        next = step(&mut text, &[next]);
        lengths.push(held());
    }
    assert_eq!(text.length(), 2006);
    // At 1,024 words the caches became as large as they may become. The mask and the text become longer: 8 and 4 bytes a word, with room.
    let (more, words) = (lengths[1999] - lengths[1100], 1999 - 1100);
    assert!(more <= 16 * words, "{more} bytes for {words} words");
    drop(text);

    let mut conversations = [0; 10];
    for (conversation, after) in conversations.iter_mut().enumerate() {
        let mut text = Speaker::new(&mut s, &settings(2048));
        spoken(&mut text, &prompt(5, conversation), 200);
        drop(text);
        *after = held();
    }
    assert_eq!(conversations[1..], [conversations[1]; 9]);
    drop(s);

    let mut sessions = [0; 10];
    for after in &mut sessions {
        let mut s = session("llama-int4");
        spoken(&mut Speaker::new(&mut s, &settings(2048)), &begin, 20);
        drop(s);
        *after = held();
    }
    assert_eq!(sessions[1..], [sessions[1]; 9]);
}
