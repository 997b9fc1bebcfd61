//! Types that products are summed in.

use bytemuck::Pod;

/// Numbers with a sum and a product; integers wrap.
pub trait Ring: Pod + Send + Sync {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! float_ring {
    ($($t:ident),*) => { $(impl Ring for $t {
        const ZERO: $t = 0.0;
        fn plus(self, other: $t) -> $t { self + other }
        fn times(self, other: $t) -> $t { self * other }
    })* };
}
float_ring!(f32, f64);

macro_rules! integer_ring {
    ($($t:ident),*) => { $(impl Ring for $t {
        const ZERO: $t = 0;
        fn plus(self, other: $t) -> $t { self.wrapping_add(other) }
        fn times(self, other: $t) -> $t { self.wrapping_mul(other) }
    })* };
}
integer_ring!(i32, i64);
