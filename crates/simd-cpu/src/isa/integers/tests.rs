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

/// Compares sums and woven rows of all lengths with plain ones.
struct Rows {
    signed: bool,
}

impl IntegerTask for Rows {
    type Output = ();

    #[inline(always)]
    fn run<I: Integers>(self, v: I) {
        const SIZE: usize = 80;
        let row = |r: usize| -> [u8; SIZE] {
            std::array::from_fn(|i| (i * 89 + r * 53 + 200) as u8 | u8::from(i % 7 == 0) << 7)
        };
        let rows = [0, 1, 2, 3].map(row);
        for count in 0..SIZE {
            let bytes = &rows[0][..count];
            let number = |&b: &u8| match self.signed {
                true => i32::from(b as i8),
                false => b.into(),
            };
            let want: i32 = bytes.iter().map(number).sum();
            assert_eq!(v.sum(bytes, self.signed), want, "{count} bytes");
        }
        let size = size_of::<i32>() / I::GROUP;
        for count in 0..SIZE / size {
            let mut woven = vec![-1; count];
            v.weave(|r| &rows[r][..count * size], &mut woven);
            let group = |i: usize| {
                let bytes = (0..I::GROUP).flat_map(|r| &rows[r][i * size..][..size]);
                let bytes: Vec<u8> = bytes.copied().collect();
                i32::from_ne_bytes(bytes.try_into().expect("four bytes"))
            };
            let want: Vec<i32> = (0..count).map(group).collect();
            assert_eq!(woven, want, "{count} groups");
        }
    }
}

#[test]
fn rows_of_numbers() {
    for isa in Isa::available() {
        isa.dispatch_integers(Rows { signed: false });
        if let Some(fours) = isa.fours() {
            let signed = fours.signed_data();
            fours.dispatch(Rows { signed });
        }
    }
}
