//! What models of classical machine learning are made of beside arithmetic.

mod coupling;
mod lookup;
mod ngrams;
mod trees;

use kilim_core::DType;
use kilim_core::ops::{CountNgrams, Lookup, PairwiseCoupling, TreeEnsemble};
use kilim_host::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<TreeEnsemble>(any, trees::build);
    registry.add_for_every_type::<Lookup>(any, lookup::build);
    registry.add_for_every_type::<CountNgrams>(any, ngrams::build);
    registry.add::<PairwiseCoupling>(any, coupling::build);
}

/// An element as a number that equal elements, and no others, have in common.
struct Identities {
    dtype: DType,
}

impl Identities {
    fn get(&self, bytes: &[u8], i: usize) -> u64 {
        let size = self.dtype.size();
        let mut bits = [0; 8];
        bits[..size].copy_from_slice(&bytes[i * size..(i + 1) * size]);
        let bits = u64::from_le_bytes(bits);
        let number = match self.dtype {
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            DType::F64 => f64::from_bits(bits),
            _ => return bits,
        };
        match number {
            n if n.is_nan() => f64::NAN.to_bits(),
            // The negative zero is the zero.
            n => (n + 0.0).to_bits(),
        }
    }
}
