//! `com.microsoft`: what onnxruntime's optimiser and quantiser and the exporters of language models leave in files, written
//! out in standard operators. A file holds a family.

mod attention;
mod cache;
mod encoder;
mod fused;
mod gelu;
mod group_query;
mod lstm;
mod multi_head;
mod norm;
mod packed;
mod quantized;
mod rotary;

use super::{MapFn, OpTable};

const DOMAIN: &str = "com.microsoft";

pub fn register(table: &mut OpTable) {
    norm::register_as_standard(table);
    let mut add = |op, map: MapFn| table.add_in(DOMAIN, op, map);
    quantized::register(&mut add);
    packed::register(&mut add);
    lstm::register(&mut add);
    fused::register(&mut add);
    gelu::register(&mut add);
    norm::register(&mut add);
    rotary::register(&mut add);
    encoder::register(&mut add);
    multi_head::register(&mut add);
    group_query::register(&mut add);
}

/// Where a family registers its operators.
type Add<'a> = &'a mut dyn FnMut(&'static str, MapFn);
