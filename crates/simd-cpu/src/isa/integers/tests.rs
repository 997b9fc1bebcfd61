use super::*;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;

/// Compares sums of products of bytes with plain ones, at the extremes and in between.
struct Check {
    signed_data: bool,
}

impl IntegerTask for Check {
    type Output = ();

    #[inline(always)]
    fn run<I: Integers>(self, v: I) {
        assert_eq!(I::GROUP, 4);
        for data in [[255u8; 4], [128, 127, 0, 1], [0, 255, 129, 3]] {
            for weights in [[-128i8; 4], [127; 4], [-1, 127, -128, 5]] {
                let want: i32 = (data.iter().zip(&weights))
                    .map(|(&x, &w)| {
                        let x = if self.signed_data {
                            i32::from(x as i8)
                        } else {
                            x.into()
                        };
                        x * i32::from(w)
                    })
                    .sum();
                let four = |bytes: [u8; 4]| v.splat(i32::from_le_bytes(bytes));
                let weights = weights.map(|w| w as u8);
                let mut got = [0i32; 16];
                // SAFETY: no vector has more than 16 numbers.
                unsafe {
                    let sums = v.dot(four(data), four(weights), v.splat(-5));
                    v.store(got.as_mut_ptr(), sums);
                }
                assert_eq!(got[..I::LANES], [want - 5; 16][..I::LANES]);
            }
        }
    }
}

#[test]
fn products_of_bytes() {
    for fours in Isa::available().into_iter().filter_map(Isa::fours) {
        let signed_data = fours.signed_data();
        fours.dispatch(Check { signed_data });
    }
}
