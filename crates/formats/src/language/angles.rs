//! Cosines and sines of the angles by which queries and keys turn.

use kilim_core::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::Gather;
use kilim_core::tensor::Tensor;

use crate::build::GraphBuilder;

/// Cosines and sines of all places of a text, `[places, pairs]`.
#[derive(Clone, Copy)]
pub struct Tables([ValueId; 2]);

impl Tables {
    /// Tables of `places` places: pair `i` turns by `place · frequencies[i]`, and is stretched by `stretch`. Nothing is computed
    /// before it is read.
    ///
    /// # Errors
    /// `Limit` where the tables are too large.
    pub fn new(
        b: &mut GraphBuilder,
        name: &str,
        places: usize,
        frequencies: &[f64],
        stretch: f32,
    ) -> Result<Tables> {
        let pairs = frequencies.len();
        let source = Tensor::from_slice(&[pairs], frequencies)?;
        let table = |of: fn(f64) -> f64| {
            source.later(
                DType::F32,
                &[places, pairs],
                move |frequencies, from, to| {
                    let frequencies = frequencies.as_slice::<f64>()?;
                    for (i, to) in (from / 4..).zip(to.chunks_exact_mut(4)) {
                        let angle = (i / pairs) as f64 * frequencies[i % pairs];
                        to.copy_from_slice(&(of(angle) as f32 * stretch).to_le_bytes());
                    }
                    Ok(())
                },
            )
        };
        let (cosines, sines) = (table(f64::cos)?, table(f64::sin)?);
        Ok(Tables([
            b.add_constant(&format!("{name}/cosines"), cosines),
            b.add_constant(&format!("{name}/sines"), sines),
        ]))
    }

    /// Cosines and sines `[batch or 1, words, pairs]` of the places `[batch or 1, words]`.
    ///
    /// # Errors
    /// What inference says of places of another shape.
    pub fn at(self, b: &mut GraphBuilder, places: ValueId) -> Result<[ValueId; 2]> {
        let mut found = self.0;
        for table in &mut found {
            *table = b.op(Gather { axis: 0 }, &[*table, places])?;
        }
        Ok(found)
    }
}
