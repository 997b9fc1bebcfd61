//! Strings. Their elements are numbers of texts ([`kilim_host::Texts`]).

mod convert;
mod dynamic;
mod pairs;
mod pattern;

use kilim_core::ops::{RegexFullMatch, StringConcat, StringNormalizer, StringSplit};
use kilim_host::registry::{KernelRegistry, any};

pub(crate) use convert::{parser, writer};

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<StringConcat>(any, pairs::build);
    registry.add_for_every_type::<StringSplit>(dynamic::accepts, dynamic::build_split);
    registry.add_for_every_type::<StringNormalizer>(dynamic::accepts, dynamic::build_normalizer);
    registry.add_for_every_type::<RegexFullMatch>(pattern::accepts, pattern::build);
}
