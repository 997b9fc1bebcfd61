//! What a runtime has learnt, saved and given back.

#![cfg(not(target_arch = "wasm32"))]

use kilim::{BackendId, ErrorCode, Runtime};

fn load(runtime: &Runtime, cache: &[u8]) -> kilim::Result<()> {
    // SAFETY: the bytes come from `save_cache`; damaged ones are refused before a driver sees them.
    pollster::block_on(unsafe { runtime.load_cache(cache) })
}

#[test]
fn what_was_saved_is_taken_back_and_nothing_else() {
    let runtime = Runtime::default();
    for id in runtime.ids() {
        // A machine may have no GPU.
        let _ = pollster::block_on(runtime.backend(&id));
    }
    let cache = runtime.save_cache();
    // Of all drivers, those of Vulkan give out what they compiled.
    let wgpu = pollster::block_on(runtime.backend(&BackendId::from("wgpu")));
    if wgpu.is_ok_and(|b| b.describe().device.contains("Vulkan")) {
        assert!(cache.windows(4).any(|part| part == b"wgpu"));
    }
    load(&runtime, &cache).unwrap();
    load(&Runtime::default(), &cache).unwrap();
    for at in 0..cache.len() {
        let mut damaged = cache.clone();
        damaged[at] ^= 0x40;
        let error = load(&runtime, &damaged).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue, "byte {at}");
        if at > 64 {
            break;
        }
    }
    for cut in [0, 7, 8, cache.len() - 1] {
        let error = load(&runtime, &cache[..cut]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{cut} bytes");
    }
}
