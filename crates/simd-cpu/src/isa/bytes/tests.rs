use super::*;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;

/// Compares what a vector of each instruction set gives with plain sums.
struct Check;

fn each<B: Bytes, const BITS: usize>(b: B) {
    // The extremes, and bytes in between.
    let weights: Vec<u8> = (0..B::LEN)
        .map(|i| [255, 0, 170, (i * 37) as u8][i % 4])
        .collect();
    for a in [
        [127i8; 64],
        [-127; 64],
        std::array::from_fn(|i| (i * 29) as i8 | 1),
    ] {
        let mut got = [0.0f32; 16];
        // SAFETY: all arrays have a vector.
        unsafe {
            let (w, a) = (b.load(weights.as_ptr()), b.load(a.as_ptr().cast()));
            let sums = (0..8 / BITS).fold(b.splat(-5), |sum, i| {
                b.dot::<BITS>(b.number::<BITS>(w, i), a, sum)
            });
            b.floats().store(got.as_mut_ptr(), b.real(sums));
        }
        for (lane, got) in got[..B::LEN / 4].iter().enumerate() {
            let mut want = -5i32;
            for byte in 4 * lane..4 * lane + 4 {
                for i in 0..8 / BITS {
                    let number = (weights[byte] >> (i * BITS)) & (u8::MAX >> (8 - BITS));
                    want += i32::from(number) * i32::from(a[byte]);
                }
            }
            assert_eq!(*got, want as f32, "{BITS} bits, lane {lane}");
        }
    }
}

impl ByteTask for Check {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, b: B) {
        each::<B, 2>(b);
        each::<B, 4>(b);
        each::<B, 8>(b);
        let lanes = B::LEN / 4;
        let from: Vec<f32> = (1..=lanes).map(|i| i as f32).collect();
        let bytes: Vec<u8> = (1..=B::LEN).map(|i| i as u8).collect();
        for shift in 0..=lanes.trailing_zeros() {
            let each = 1 << shift;
            for count in 1..=lanes / each {
                let mut got = [0.0f32; 16];
                // SAFETY: `from` has `count` floats, `got` has a vector.
                unsafe {
                    let v = b.spread(from[..count].as_ptr(), count, each);
                    b.floats().store(got.as_mut_ptr(), v);
                }
                for (lane, got) in got[..lanes].iter().enumerate() {
                    let want = from[..count].get(lane / each).copied().unwrap_or(0.0);
                    assert_eq!(*got, want, "{count} of {each} lanes each, lane {lane}");
                }
            }
        }
        for n in (0..=B::LEN).step_by(4) {
            let mut got = [1.0f32; 16];
            // SAFETY: `bytes` has `n` bytes, `got` has a vector.
            unsafe {
                let v = b.load_part(bytes[..n].as_ptr(), n);
                let ones = b.splat(i32::from_ne_bytes([1; 4]));
                b.floats()
                    .store(got.as_mut_ptr(), b.real(b.dot::<8>(v, ones, b.splat(0))));
            }
            for (word, got) in got[..lanes].iter().enumerate() {
                let four = &bytes[4 * word..][..4];
                let sum: u32 = four.iter().map(|&byte| u32::from(byte)).sum();
                assert_eq!(*got, if 4 * word < n { sum as f32 } else { 0.0 });
            }
        }
    }
}

#[test]
fn vectors_of_bytes() {
    for isa in Isa::available() {
        isa.dispatch_bytes(Check);
    }
}
