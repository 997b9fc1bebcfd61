//! Tables of keys and values.

use std::collections::HashMap;
use std::sync::OnceLock;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::value_error;
use kilim_core::memory::out_of_memory;
use kilim_core::ops::Lookup;
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::Identities;

type Index = HashMap<u64, usize>;

pub fn build(_: &Lookup, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let keys = required(node, 1)?;
    Ok(Box::new(Table {
        identities: Identities { dtype: keys.dtype },
        keys: keys.elements(),
        fixed: keys.value.is_some().then(OnceLock::new),
        size: node.outputs[0].dtype.size(),
    }))
}

struct Table {
    identities: Identities,
    keys: usize,
    /// Where keys stand, made by the first run. `None` where they may change between runs.
    fixed: Option<OnceLock<Index>>,
    /// Bytes of a value.
    size: usize,
}

impl Table {
    fn index(&self, cpu: &CpuRun, keys: &[u8]) -> Result<Index> {
        let mut index = Index::new();
        let reserved = index.try_reserve(self.keys);
        reserved.map_err(|_| out_of_memory(self.keys.saturating_mul(size_of::<(u64, usize)>())))?;
        cpu.pieces(self.keys, COST, |piece| {
            index.extend(piece.map(|i| (self.identities.get(keys, i), i)));
            Ok(())
        })?;
        Ok(index)
    }
}

/// Operations of putting a key into a table, or of finding it there.
const COST: usize = 64;

impl Kernel for Table {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, keys, values) = (io.input_bytes(0), io.input_bytes(1), io.input_bytes(2));
        let default = io.has_input(3).then(|| io.input_bytes(3));
        let cpu = io.cpu();
        let own;
        let index = match &self.fixed {
            Some(once) => match once.get() {
                Some(index) => index,
                None => {
                    let index = self.index(cpu, keys)?;
                    once.get_or_init(|| index)
                }
            },
            None => {
                own = self.index(cpu, keys)?;
                &own
            }
        };
        let (n, y) = (io.output_len(0), by(io.output_bytes(0), self.size));
        cpu.rows(n, y, COST, |piece, y, _| {
            for (i, y) in piece.zip(y.chunks_exact_mut(self.size)) {
                let at = index.get(&self.identities.get(x, i));
                let value = match (at, default) {
                    (Some(at), _) => &values[at * self.size..(at + 1) * self.size],
                    (None, Some(default)) => default,
                    (None, None) => {
                        return Err(value_error("an element that the table does not have")
                            .with_got(format!("element {i}")));
                    }
                };
                y.copy_from_slice(value);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn keys_are_found_and_others_get_the_default() {
        let x = tensor::<f32>(&[2, 2], &[f32::NAN, -0.0, 3.0, 4.0]);
        let keys = tensor::<f32>(&[3], &[0.0, f32::NAN, 3.0]);
        let values = tensor::<i16>(&[3], &[7, 8, 9]);
        let default = tensor::<i16>(&[], &[-1]);
        let y = run_as::<i16>(&Lookup, &[&x, &keys, &values, &default], &[2, 2]);
        assert_eq!(y, [8, 7, 9, -1]);
    }
}
