//! Files that are cut, overwritten or made to exhaust the memory.

use kilim_core::Interrupt;
use kilim_core::backend::DataLayout;
use kilim_core::error::ErrorCode;
use kilim_core::passes::{Evaluator, Layout, Passes, optimise};

use super::{import, network};

#[test]
fn truncated_and_garbled_files_are_errors() {
    let whole = network();
    for len in 0..whole.len() {
        // What lies at the very end may be padding that nobody reads.
        let _ = import(&whole[..len]);
    }
    assert!(import(&whole[..whole.len() / 2]).is_err());
    // What still imports must go through the passes without a panic as well.
    let attempt = |bytes: &[u8]| {
        if let Ok(mut graph) = import(bytes) {
            let passes = Passes {
                evaluate: Evaluator {
                    compute: &|_| None,
                    interrupt: &Interrupt::NEVER,
                },
                narrow: &|_| false,
                layout: Layout::Every(DataLayout::ChannelsLast),
                without: &[],
                observer: None,
            };
            let _ = optimise(&mut graph, &passes);
        }
    };
    let mut bytes = whole.clone();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            attempt(&bytes);
            bytes[at] ^= 1 << bit;
        }
        for value in [0, 0x7f, 0x80, 0xff] {
            let old = std::mem::replace(&mut bytes[at], value);
            attempt(&bytes);
            bytes[at] = old;
        }
    }
    assert_eq!(import(b"").unwrap_err().code(), ErrorCode::UnknownFormat);
}

#[test]
fn overlapping_tables_do_not_explode() {
    // Ten thousand subgraphs that are all the same one.
    let mut bytes = network();
    let word = |b: &[u8], at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    let model = word(&bytes, 0);
    let slot = model + 4 + 8;
    let subgraphs = slot + word(&bytes, slot);
    let first = subgraphs + 4;
    let subgraph = first + word(&bytes, first);
    // A copy of the offsets would point backwards, so the model moves to the front of the file.
    let count = 10_000;
    let shift = 4 * (count + 1) + 4 * 8 + 12;
    let mut big = vec![0u8; 8];
    big[4..8].copy_from_slice(b"TFL3");
    let vtable = big.len();
    big.extend([10u16, 16, 0, 0, 4].iter().flat_map(|v| v.to_le_bytes()));
    big.extend([0; 2]);
    let table = big.len();
    big.extend(((table - vtable) as i32).to_le_bytes());
    big.extend(4u32.to_le_bytes());
    big.extend((count as u32).to_le_bytes());
    let base = shift.max(big.len() + 4 * count).next_multiple_of(4);
    for i in 0..count {
        let at = big.len();
        assert_eq!(at, table + 12 + 4 * i);
        big.extend(((base + subgraph - at) as u32).to_le_bytes());
    }
    big.resize(base, 0);
    big.append(&mut bytes);
    big[0..4].copy_from_slice(&(table as u32).to_le_bytes());
    let error = import(&big).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidModel);
    assert!(error.message().contains("overlap"), "{error}");
}
