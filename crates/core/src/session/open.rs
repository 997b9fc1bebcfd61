//! From a graph to a session.

use std::cell::Cell;
use std::sync::Arc;

use super::builtin::Ports;
use super::layout::Layouts;
use super::variables::Variables;
use super::{Run, Runner, Session, SessionOptions, Shared, last, precision, wanted};
use crate::backend::{Backend, Half, RawConstants};
use crate::builtin::Port;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{Fact, TensorSpec};
use crate::graph::{Graph, NodeSpec};
use crate::passes::{self, Evaluator, Layout, Passes};
use crate::pin;

impl Session {
    /// Optimises and places `graph`. `backends` stand in the order of preference; `evaluator`
    /// computes constants and shapes, and needs not be one of them.
    ///
    /// # Errors
    /// `InvalidGraph`, `Shape`, `DType` for a graph that cannot be; `NoBackend` with a list of all
    /// nodes that no backend takes; `Limit` and `Device` as the devices say; `Aborted` where
    /// [`SessionOptions::interrupt`] stops it.
    pub async fn new(
        mut graph: Graph,
        backends: Vec<Arc<dyn Backend>>,
        evaluator: Arc<dyn Backend>,
        mut options: SessionOptions,
    ) -> Result<Session> {
        if backends.is_empty() {
            return Err(Error::new(
                ErrorCode::NoBackend,
                "a session needs at least one backend",
            ));
        }
        let ids: Vec<_> = backends.iter().map(|b| b.describe().id.clone()).collect();
        pin::check(&options.pins, &ids)?;
        options.configs.check(&ids)?;
        let configs = options.resolved(&backends)?;
        let backends: Vec<_> = backends
            .into_iter()
            .zip(&configs)
            .map(|(backend, config)| backend.configured(config).unwrap_or(backend))
            .collect();
        if options.scheduler.gives_way()
            && let Some(scheduler) = backends.iter().find_map(|b| b.scheduler())
        {
            options.scheduler = scheduler;
        }
        graph.sort()?;
        if let Some(wanted) = options.outputs.take() {
            wanted::only(&mut graph, &wanted)?;
        }
        let nodes_loaded = count_nodes(&graph);
        options.limits.check_nodes(nodes_loaded)?;
        graph.fix_dims(&options.dims)?;
        last::keep_last(&mut graph, &std::mem::take(&mut options.last_only))?;
        let variables = Variables::of(&graph)?;
        let names = Port::all(&graph, graph.given_outputs());
        let inputs = Port::all(&graph, &graph.inputs);
        let interrupt = std::mem::take(&mut options.interrupt);
        let interrupt = interrupt.within(Some(options.limits.load_seconds), options.clock);
        let room = Cell::new(options.limits.folded_bytes);
        let fold = |node: &NodeSpec| {
            let bytes = node.outputs.iter().map(TensorSpec::bytes);
            let bytes = bytes.fold(0usize, usize::saturating_add);
            room.set(room.get().checked_sub(bytes)?);
            evaluator.evaluate(node, &interrupt)
        };
        if options.optimise {
            let layouts = Layouts {
                backends: &backends,
                configs: &configs,
                options: &options,
                interrupt: &interrupt,
            };
            let choose = |graph: &Graph| layouts.choose(graph);
            let keeps = configs.iter().all(|c| c.f16 == Half::Kept);
            let narrow = |dtype: DType| match dtype {
                DType::F16 => !keeps,
                dtype => dtype == DType::BF16,
            };
            let passes = Passes {
                evaluate: Evaluator {
                    compute: &fold,
                    interrupt: &interrupt,
                },
                narrow: &narrow,
                layout: match layouts.common() {
                    Some(layout) => Layout::Every(layout),
                    None => Layout::Chosen(&choose),
                },
                without: &options.without,
                observer: options.observer.as_deref(),
            };
            passes::optimise(&mut graph, &passes)?;
        } else {
            passes::infer_graph(&mut graph, &interrupt)?;
        }
        let pinned = options.pins.iter().map(|p| &p.what);
        pin::find(
            &graph,
            pinned.chain(options.precisions.iter().map(|p| &p.what)),
        )?;
        // The graph has the sizes: sessions of parts of it, with these options, have no such dimension.
        options.dims.clear();
        let precisions = precision::force(&mut graph, &options.precisions)?;
        let precision = match &options.mixed_precision {
            Some(mixed) => {
                let options = SessionOptions {
                    interrupt: interrupt.clone(),
                    ..options.clone()
                };
                let chosen = precision::choose(&mut graph, &backends, &evaluator, &options, mixed);
                let chosen = chosen.await;
                // The interrupt knows better why a run was stopped.
                interrupt.check()?;
                Some(chosen?)
            }
            None => None,
        };
        let mut outputs = Port::all(&graph, graph.given_outputs());
        for (port, declared) in outputs.iter_mut().zip(names) {
            port.name = declared.name;
            port.fact.kind.optional |= declared.fact.kind.optional;
        }
        let mut facts: Vec<Fact> = inputs.iter().map(|p| p.fact.clone()).collect();
        let mut inputs = inputs;
        inputs.truncate(graph.given_inputs().len());
        let ports = Ports { inputs, outputs };
        ports.check_layouts(&options.layouts)?;
        let mut shared = Shared::new(backends, evaluator, options)?;
        let mut runner = Runner::new(graph, &mut shared)?;
        if let Some(n) = shared.options.plan_unknown_as {
            let shapes = facts.iter_mut().filter_map(|f| f.shape.as_mut());
            for d in shapes.flat_map(|s| &mut s.0) {
                *d = Dim::Known(d.known().unwrap_or(n));
            }
        }
        let raw = shared.raw_constants(&ports.inputs, &runner);
        if raw == RawConstants::Drop {
            runner.cut_constants()?;
        }
        let mut run = Run::new(&mut shared, interrupt.clone());
        runner.tune_first(&mut run, &facts).await?;
        runner.prepare_together(&mut run, &facts, raw)?;
        for context in &mut shared.contexts {
            context.warm_up(&interrupt).await?;
        }
        Ok(Session {
            shared,
            runner,
            ports,
            variables,
            raw,
            nodes_loaded,
            precision,
            precisions,
            timeline: Vec::new(),
            #[cfg(not(target_arch = "wasm32"))]
            workers: None,
        })
    }
}

fn count_nodes(graph: &Graph) -> usize {
    let inner =
        |n: &crate::Node| -> usize { n.op.subgraphs().iter().map(|g| count_nodes(g)).sum() };
    graph.nodes.iter().map(|n| 1 + inner(n)).sum()
}
