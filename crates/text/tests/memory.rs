//! What a text holds: its caches, and nothing that becomes more with words, conversations or sessions.

mod speaker;

use kilim_test_support::allocations::{Counting, held};

use speaker::{Speaker, prompt, session, settings, spoken, step};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
