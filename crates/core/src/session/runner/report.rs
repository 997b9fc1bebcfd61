//! What a runner says of its plans, and of the times of its nodes.

use std::collections::HashMap;

use super::Runner;
use crate::builtin::BUILTIN;
use crate::memory::Storage;
use crate::report::{BackendReport, MemoryPlan, NodeReport, NodeTime, PortReport, Report};
use crate::session::Shared;

impl Runner {
    /// Forgets the times of earlier runs.
    pub fn clear_times(&mut self) {
        for index in 0..self.plans.len() {
            self.forget_times(index);
        }
        for body in self.bodies.values_mut().flatten() {
            body.clear_times();
        }
    }

    /// The times of the last profiled run, bodies included.
    pub fn collect_times(
        &self,
        shared: &Shared,
        scope: &mut Vec<String>,
        times: &mut Vec<NodeTime>,
    ) {
        for (index, plans) in self.plans.iter().enumerate() {
            for (_, planned) in plans {
                for placed in &planned.nodes {
                    if planned.left_out(placed) {
                        continue;
                    }
                    let measured = planned.times.get(placed.backend);
                    let Some(&seconds) = measured.and_then(|t| t.get(placed.kernel)) else {
                        continue;
                    };
                    times.push(NodeTime {
                        name: placed.name.clone(),
                        op: placed.op.clone(),
                        backend: shared.backends[placed.backend].describe().id.to_string(),
                        scope: scope.clone(),
                        seconds,
                    });
                }
            }
            for id in &self.stages.stages[index].control {
                scope.push(self.graph.nodes[id.0].name.clone());
                for body in self.bodies.get(id).into_iter().flatten() {
                    body.collect_times(shared, scope, times);
                }
                scope.pop();
            }
        }
    }

    /// The report of the graph and of those inside it.
    pub fn report(&self, shared: &Shared) -> Report {
        let calibration = &shared.options.calibration;
        let mut report = Report {
            backends: shared
                .backends
                .iter()
                .zip(&shared.contexts)
                .map(|(b, c)| BackendReport {
                    id: b.describe().id.to_string(),
                    device: b.describe().device.clone(),
                    calibrated: calibration.speed(b.describe()).is_some(),
                    constant_bytes: c.constant_bytes(),
                    planned_bytes: c.arena().bytes() + c.ledger().bytes(Storage::DynamicSeparate),
                    arena_bytes: c.arena().bytes(),
                    arena_owner: c.arena().owner().to_string(),
                    ..BackendReport::default()
                })
                .collect(),
            threads: cfg!(all(target_family = "wasm", not(target_feature = "atomics")))
                .then(|| "one thread computes: this WebAssembly build has no shared memory".into()),
            plans: shared.plans,
            ..Report::default()
        };
        self.add_to_report(&[], &mut report);
        let mut buffers = HashMap::new();
        self.buffers(&mut buffers);
        report.graph_bytes = buffers.values().sum();
        report
    }

    /// The buffers on the host that constants are in, by address, with their sizes.
    fn buffers(&self, buffers: &mut HashMap<usize, usize>) {
        let constants = self.graph.values.iter().filter_map(|v| v.constant.as_ref());
        for tensor in constants {
            tensor.buffers(&mut |address, bytes| {
                buffers.insert(address, bytes);
            });
        }
        for body in self.bodies.values().flatten() {
            body.buffers(buffers);
        }
    }

    fn add_to_report(&self, scope: &[String], report: &mut Report) {
        for (index, plans) in self.plans.iter().enumerate() {
            match plans.last() {
                Some((_, planned)) => {
                    for (b, e) in planned.executables.iter().enumerate() {
                        let entry = &mut report.backends[b];
                        if let Some(e) = e {
                            entry.launches += e.launches();
                        }
                    }
                    for (b, plan) in &planned.memory {
                        let entry = &mut report.backends[b.0];
                        entry.unshared_bytes += plan.unshared_bytes;
                        entry.intermediate_bytes = entry.intermediate_bytes.max(plan.bytes);
                        entry.lower_bound_bytes =
                            entry.lower_bound_bytes.max(plan.lower_bound_bytes);
                        report.memory.push(MemoryPlan {
                            scope: scope.to_vec(),
                            stage: index,
                            ..plan.clone()
                        });
                    }
                    report.crossings.extend(planned.crossings.iter().cloned());
                    report
                        .nodes
                        .extend(planned.report.iter().cloned().map(|mut n| {
                            n.scope = scope.to_vec();
                            n
                        }));
                }
                None => report.unplanned_stages += 1,
            }
            for id in &self.stages.stages[index].control {
                let node = &self.graph.nodes[id.0];
                report.nodes.push(NodeReport {
                    name: node.name.clone(),
                    op: node.op.name().to_string(),
                    backend: BUILTIN.to_string(),
                    view: false,
                    scope: scope.to_vec(),
                    stage: index,
                    inputs: node
                        .present_inputs()
                        .map(|v| self.graph.value(v).name.clone())
                        .collect(),
                    outputs: node
                        .outputs
                        .iter()
                        .map(|&v| PortReport {
                            name: self.graph.value(v).name.clone(),
                            ..PortReport::default()
                        })
                        .collect(),
                    refusals: Vec::new(),
                    moved: None,
                });
                let mut inner = scope.to_vec();
                inner.push(node.name.clone());
                for body in self.bodies.get(id).into_iter().flatten() {
                    body.add_to_report(&inner, report);
                }
            }
        }
    }
}
