//! Probabilities of classes from those of pairs: `multiclass_probability` of libsvm.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::PairwiseCoupling;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

pub fn build(op: &PairwiseCoupling, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Coupling {
        classes: op.classes,
        pairs: op.pairs(),
        input: f64::codec(required(node, 0)?.dtype),
        output: f64::codec(node.outputs[0].dtype),
    }))
}

struct Coupling {
    classes: usize,
    pairs: usize,
    input: Codec<f64>,
    output: Codec<f64>,
}

impl Coupling {
    /// Numbers that a row is computed in.
    fn room(&self) -> usize {
        let matrices = self.classes.saturating_add(1).saturating_mul(2);
        (self.classes.saturating_mul(matrices)).saturating_add(self.pairs)
    }
}

impl Kernel for Coupling {
    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f64>(self.room())
    }

    fn run(&self, io: &mut Io) -> Result<()> {
        let k = self.classes;
        let scratch = io.thread_scratch::<f64>(self.room());
        let x = io.input_bytes(0);
        let rows = io.output_len(0) / k.max(1);
        let y = by(io.output_bytes(0), k * self.output.size());
        let cost = k.saturating_mul(k).saturating_mul(16);
        io.cpu()
            .rows_with(rows, y, scratch, cost, |piece, y, scratch, cpu| {
                let (given, rest) = scratch.split_at_mut(self.pairs);
                let (r, rest) = rest.split_at_mut(k * k);
                let (q, rest) = rest.split_at_mut(k * k);
                let (p, qp) = rest.split_at_mut(k);
                for row in piece.clone() {
                    self.input.load(x, row * self.pairs, given);
                    let mut given = given.iter();
                    for i in 0..k {
                        cpu.spend(k)?;
                        for j in i + 1..k {
                            let first = given.next().map_or(0.5, |v| v.clamp(1e-7, 1.0 - 1e-7));
                            r[i * k + j] = first;
                            r[j * k + i] = 1.0 - first;
                        }
                    }
                    solve(cpu, k, r, q, p, qp)?;
                    self.output.store(y, (row - piece.start) * k, p);
                }
                Ok(())
            })
    }
}

/// Minimises `p' q p` for probabilities `p`. Matrices are `[k, k]`.
fn solve(
    cpu: &CpuRun,
    k: usize,
    r: &[f64],
    q: &mut [f64],
    p: &mut [f64],
    qp: &mut [f64],
) -> Result<()> {
    for t in 0..k {
        cpu.spend(2 * k)?;
        p[t] = 1.0 / k as f64;
        q[t * k + t] = (0..k)
            .filter(|&j| j != t)
            .map(|j| r[j * k + t].powi(2))
            .sum();
        for j in (0..k).filter(|&j| j != t) {
            q[t * k + j] = -r[j * k + t] * r[t * k + j];
        }
    }
    for _ in 0..k.max(100) {
        let mut total = 0.0;
        for t in 0..k {
            cpu.spend(k)?;
            qp[t] = (0..k).map(|j| q[t * k + j] * p[j]).sum();
            total += p[t] * qp[t];
        }
        let error = qp.iter().map(|v| (v - total).abs()).fold(0.0, f64::max);
        if error < 0.005 / k as f64 {
            return Ok(());
        }
        for t in 0..k {
            cpu.spend(4 * k)?;
            let own = q[t * k + t];
            let change = (total - qp[t]) / own;
            p[t] += change;
            let scale = 1.0 + change;
            total = (total + change * (change * own + 2.0 * qp[t])) / scale / scale;
            for j in 0..k {
                qp[j] = (qp[j] + change * q[t * k + j]) / scale;
                p[j] /= scale;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::tensor;

    /// Pairs of `p_i / (p_i + p_j)` come from probabilities `p`.
    #[test]
    fn consistent_pairs_are_met() {
        let want = [0.2f32, 0.5, 0.3];
        let pair = |i: usize, j: usize| want[i] / (want[i] + want[j]);
        let x = tensor::<f32>(&[1, 3], &[pair(0, 1), pair(0, 2), pair(1, 2)]);
        let got = run_f32(&PairwiseCoupling { classes: 3 }, &[&x], &[1, 3]);
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 5e-3, "{got} for {want}");
        }
        assert!((got.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
