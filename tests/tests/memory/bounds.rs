//! How large arenas are beside what no plan can avoid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kilim::Placement;
use kilim::core::backend::{Description, Memory};
use kilim::core::report::{MemoryPlan, PlannedTensor};
use kilim::core::{Backend, Session};
use kilim_tests::operators::Random;
use kilim_tests::stand_in::StandIn;

use crate::*;

fn models(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let model = |e: &std::ffi::OsStr| e == "onnx" || e == "tflite";
        if path.is_dir() {
            models(&path, found);
        } else if path.extension().is_some_and(model) {
            found.push(path);
        }
    }
}

/// The sets of backends whose plans are held to the lower bound. The GPU's pipelines are not compiled
/// for that.
fn planners() -> Vec<Vec<Arc<dyn Backend>>> {
    let cpu = cpu();
    let mut sets = vec![vec![cpu.clone()]];
    if let Some(gpu) = gpu_beside_others() {
        sets.push(vec![Arc::new(StandIn::new(gpu, "wgpu")), cpu]);
    }
    sets
}

/// Bytes that no plan for a device can avoid: there, all tensors but the last must end where another
/// may begin.
fn padding(plan: &MemoryPlan, backends: &[Arc<dyn Backend>]) -> usize {
    let described = backends.iter().map(|b| b.describe());
    let on_device = |d: &&Description| d.id.as_str() == plan.backend && d.memory == Memory::Device;
    let Some(device) = described.into_iter().find(on_device) else {
        return 0;
    };
    let slack = |t: &PlannedTensor| t.bytes.next_multiple_of(device.alignment) - t.bytes;
    let alive = |step: usize| {
        let alive = plan.tensors.iter();
        let slacks = alive
            .filter(|t| (t.first..=t.last).contains(&step))
            .map(slack);
        let (sum, most) = slacks.fold((0, 0), |(sum, most), s| (sum + s, most.max(s)));
        sum - most
    };
    (0..plan.steps).map(alive).max().unwrap_or(0)
}

/// Plans `graph` and gives the number of plans; those that are too wide go to `wide`.
fn plans(
    name: &str,
    graph: &Graph,
    backends: &[Arc<dyn Backend>],
    wide: &mut Vec<String>,
) -> usize {
    let options = kilim::core::SessionOptions {
        plan_unknown_as: Some(1),
        placement: Placement::Fixed,
        ..kilim::core::SessionOptions::default()
    };
    let cpu = backends[backends.len() - 1].clone();
    let made = Session::new(graph.clone(), backends.to_vec(), cpu, options);
    let Ok(session) = pollster::block_on(made) else {
        return 0;
    };
    let plans = session.report().memory;
    let first = backends[0].describe().id.to_string();
    for plan in &plans {
        let ratio = plan.bytes as f64 / plan.lower_bound_bytes as f64;
        let fits = plan.bytes <= plan.lower_bound_bytes + padding(plan, backends);
        if ratio > 1.10 && !fits {
            let (bytes, least) = (plan.bytes, plan.lower_bound_bytes);
            let scope = plan.scope.join("/");
            wide.push(format!(
                "{name} {scope} on {}: {bytes} for {least}, {ratio:.3}",
                plan.backend
            ));
        }
    }
    plans.iter().filter(|p| p.backend == first).count()
}

/// Every model of `KILIM_SHARED/models` that loads.
#[test]
fn arenas_are_close_to_the_lower_bound() {
    let Some(folder) = material::models() else {
        return;
    };
    let mut files = Vec::new();
    models(&folder, &mut files);
    files.sort();
    assert!(!files.is_empty());
    let runtime: Arc<Runtime> = Runtime::shared();
    let sets = planners();
    let (mut planned, mut wide) = (vec![0; sets.len()], Vec::new());
    for path in files {
        let Ok(graph) = pollster::block_on(runtime.parse(path.as_path(), &options())) else {
            continue;
        };
        for (planned, backends) in planned.iter_mut().zip(&sets) {
            *planned += plans(&path.display().to_string(), &graph, backends, &mut wide);
        }
    }
    assert!(planned.iter().all(|&n| n > 0), "{planned:?}");
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

/// Products, functions and sums of values that were made before, of several widths.
fn tangle(seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let mut below = |n: usize| (((random.unit() + 1.0) / 2.0 * n as f32) as usize).min(n - 1);
    let mut g = Graph::new("tangle");
    let mut values = vec![(g.add_input("x", Fact::fixed(DType::F32, &[32, 64])), 64)];
    let mut read = vec![false];
    for i in 0..40 {
        let at = below(values.len().min(6));
        let at = values.len() - 1 - at;
        let (x, width) = values[at];
        let twin = (0..values.len()).rfind(|&j| j != at && values[j].1 == width);
        read[at] = true;
        let made = match (below(3), twin) {
            (0, Some(twin)) => {
                read[twin] = true;
                let add = Binary::new(BinaryKind::Add);
                (
                    g.apply(format!("add {i}"), add, &[x, values[twin].0]),
                    width,
                )
            }
            (1, _) => {
                let to = [48, 64, 144, 256][below(4)];
                let w = g.add_constant(format!("w{i}"), weights(&[width, to]));
                (
                    g.apply(format!("product {i}"), MatMul::default(), &[x, w]),
                    to,
                )
            }
            _ => (
                g.apply(format!("sine {i}"), Unary(UnaryKind::Sin), &[x]),
                width,
            ),
        };
        values.push(made);
        read.push(false);
    }
    for ((v, _), read) in values.into_iter().zip(read) {
        if !read {
            g.outputs.push(v);
        }
    }
    g
}

#[test]
fn arenas_of_generated_graphs_are_close_to_the_lower_bound() {
    let mut wide = Vec::new();
    for backends in planners() {
        for seed in 0..20 {
            let name = format!("tangle {seed}");
            assert_eq!(
                plans(&name, &tangle(seed), &backends, &mut wide),
                1,
                "{name}"
            );
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}
