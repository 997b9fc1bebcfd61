//! The operators of ONNX: which mapping brings each into the graph. A file holds a family.

mod attention;
mod control;
mod conv;
pub mod custom;
mod generate;
mod index;
mod linear_attention;
mod loss;
mod matmul;
mod microsoft;
mod ml;
mod movement;
mod ngrams;
mod norm;
mod picture;
mod pointwise;
mod pool;
mod quant;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod rotary;
mod sequence;
mod signal;
mod text;
mod training;

use std::collections::HashMap;

use kilim_core::error::Result;

use super::builder::NodeBuilder;

/// Brings a node into the graph.
pub type MapFn = fn(&mut NodeBuilder) -> Result<()>;

/// Mappings by domain and operator.
pub struct OpTable {
    maps: HashMap<(&'static str, &'static str), MapFn>,
}

impl OpTable {
    /// Everything that can be imported.
    pub fn standard() -> OpTable {
        let mut table = OpTable {
            maps: HashMap::new(),
        };
        pointwise::register(&mut table);
        movement::register(&mut table);
        index::register(&mut table);
        reduce::register(&mut table);
        conv::register(&mut table);
        pool::register(&mut table);
        matmul::register(&mut table);
        norm::register(&mut table);
        quant::register(&mut table);
        random::register(&mut table);
        picture::register(&mut table);
        resize::register(&mut table);
        recurrent::register(&mut table);
        generate::register(&mut table);
        control::register(&mut table);
        sequence::register(&mut table);
        attention::register(&mut table);
        linear_attention::register(&mut table);
        loss::register(&mut table);
        signal::register(&mut table);
        text::register(&mut table);
        training::register(&mut table);
        rotary::register(&mut table);
        ml::register(&mut table);
        ngrams::register(&mut table);
        microsoft::register(&mut table);
        table
    }

    /// Adds an operator of the standard domain.
    pub fn add(&mut self, op: &'static str, map: MapFn) {
        self.add_in("", op, map);
    }

    /// Adds an operator of another domain.
    pub fn add_in(&mut self, domain: &'static str, op: &'static str, map: MapFn) {
        self.maps.insert((domain, op), map);
    }

    /// The mapping of an operator; the standard domain has the empty name.
    pub fn get(&self, domain: &str, op: &str) -> Option<MapFn> {
        self.maps.get(&(domain, op)).copied()
    }
}
