//! Products of rows that each choose the matrix of an expert, route by route.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::{shape_error, value_error};
use kilim_core::ops::{ExpertMatMul, ExpertMatMulNBits};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::packed::{LANES, Product, Weights, add_products, join, total};
use crate::by_real;
use crate::common::Real;

pub fn build(_: &ExpertMatMul, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let [experts, n, k] = required(node, 2)?.shape[..] else {
        return Err(shape_error("the weights of experts need three dimensions"));
    };
    let routes = Routes::new(node, [experts, n, k])?;
    by_real!(required(node, 0)?.dtype, T => {
        Ok(Box::new(Plain::<T> { routes, real: std::marker::PhantomData }))
    })
}

pub fn build_packed(
    op: &ExpertMatMulNBits,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let product = Product::new(op.of_one(), 1, node.input(4))?;
    let [blocks, ..] = product.op.row()?;
    let of_one = op.n * blocks;
    if of_one == 0 {
        return Err(shape_error("the experts have no weights"));
    }
    let experts = required(node, 3)?.elements() / of_one;
    let routes = Routes::new(node, [experts, op.n, op.k])?;
    by_real!(required(node, 0)?.dtype, T => {
        Ok(Box::new(Packed::<T> { routes, product, real: std::marker::PhantomData }))
    })
}

struct Routes {
    experts: usize,
    n: usize,
    k: usize,
    /// Routes that begin with the same row.
    sharing: usize,
}

impl Routes {
    fn new(node: &NodeSpec, [experts, n, k]: [usize; 3]) -> Result<Routes> {
        let (a, routes) = (required(node, 0)?, required(node, 1)?);
        let ([_, of_a, _], [_, of_row]) = (&a.shape[..], &routes.shape[..]) else {
            return Err(shape_error(
                "routes need two dimensions and their rows three",
            ));
        };
        let sharing = match of_a {
            1 => (*of_row).max(1),
            _ => 1,
        };
        Ok(Routes {
            experts,
            n,
            k,
            sharing,
        })
    }

    /// Calls `f` with each route's expert, its row of `a`, and where its product goes, and adds the expert's bias.
    fn each<T: Real>(
        &self,
        io: &Io,
        bias: usize,
        y: &mut [T],
        mut f: impl FnMut(usize, &[T], &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let (a, routes): (&[T], &[i32]) = (io.input(0), io.input(1));
        let bias = io.optional::<T>(bias);
        if y.is_empty() {
            return Ok(());
        }
        for (i, (y, &route)) in y.chunks_exact_mut(self.n).zip(routes).enumerate() {
            let expert = usize::try_from(route).ok().filter(|&e| e < self.experts);
            let expert = expert.ok_or_else(|| {
                value_error("a route leads to an expert that is not there")
                    .with_input(1)
                    .with_expected(format!("0..{}", self.experts))
                    .with_got(route)
            })?;
            f(expert, &a[i / self.sharing * self.k..][..self.k], y)?;
            if let Some(bias) = bias {
                join(io.cpu(), y, &bias[expert * self.n..], |y, bias| y + bias)?;
            }
        }
        Ok(())
    }
}

struct Plain<T> {
    routes: Routes,
    real: std::marker::PhantomData<T>,
}

/// `y = w · a` of the rows of `w`.
fn rows<T: Real>(cpu: &CpuRun, w: &[T], a: &[T], y: &mut [T]) -> Result<()> {
    let k = a.len();
    cpu.rows(y.len(), by(y, 1), k, |piece, y, cpu| {
        for (y, j) in y.iter_mut().zip(piece) {
            let mut sums = [T::default(); LANES];
            cpu.pieces(k, 1, |part| {
                add_products(&a[part.clone()], &w[j * k..][part], &mut sums);
                Ok(())
            })?;
            *y = total(sums);
        }
        Ok(())
    })
}

impl<T: Real> Kernel for Plain<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (w, size) = (io.input::<T>(2), self.routes.n * self.routes.k);
        let y = io.output(0);
        self.routes.each(io, 3, y, |expert, a, y| {
            rows(io.cpu(), &w[expert * size..][..size], a, y)
        })
    }
}

struct Packed<T> {
    routes: Routes,
    product: Product,
    real: std::marker::PhantomData<T>,
}

impl<T: Real + From<u8>> Kernel for Packed<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let y: &mut [T] = io.output(0);
        self.routes.each(io, 5, y, |expert, a, y| {
            Weights::at(&self.product, io, 2, expert).row(io.cpu(), a, y)
        })
    }
}
