//! Whether a session ran wholly on the backend asked first: nothing ran elsewhere but control flow,
//! constants and shape arithmetic.

use std::collections::HashSet;

use kilim::Session;
use kilim::core::report::NodeReport;

/// What ran elsewhere, each operator with the reason.
///
/// Values that are known while planning are computed there, on the host. What depends on constants
/// and shapes only is no work of a run; neither are whole numbers and truths of at most one dimension,
/// which shapes are made of. Anything else that depends on the contents of an input counts.
pub fn elsewhere(session: &Session) -> Vec<String> {
    let report = session.report();
    let first = report.backends.first().map_or("", |b| b.id.as_str());
    let mut read: HashSet<&str> = session.inputs().iter().map(|i| i.name.as_str()).collect();
    let mut elsewhere = Vec::new();
    for node in &report.nodes {
        let dependent = node.scope.is_empty()
            && !matches!(node.op.as_str(), "Shape" | "Size")
            && node.inputs.iter().any(|i| read.contains(i.as_str()));
        if dependent {
            read.extend(node.outputs.iter().map(|o| o.name.as_str()));
        }
        match node.backend.as_str() {
            "builtin" => {}
            "plan" if !dependent || node.view || makes_shapes(node) => {}
            "plan" => elsewhere.push(format!("{} while planning", node.op)),
            id if id == first => {}
            id => {
                let refusal = node.refusals.iter().find(|r| r.backend == first);
                let reason = refusal.map_or("", |r| r.reason.as_str());
                elsewhere.push(format!("{} on {id}: {reason}", node.op));
            }
        }
    }
    elsewhere
}

/// Whether anything runs at all: not where there are only views, shapes and constants.
pub fn has_work(session: &Session) -> bool {
    let report = session.report();
    let idle = |node: &NodeReport| matches!(node.backend.as_str(), "plan" | "builtin");
    !report.nodes.iter().all(idle)
}

fn makes_shapes(node: &NodeReport) -> bool {
    let whole = |dtype: &str| matches!(dtype, "int32" | "int64" | "bool");
    node.outputs
        .iter()
        .all(|o| whole(&o.dtype) && o.shape.len() <= 1)
}
