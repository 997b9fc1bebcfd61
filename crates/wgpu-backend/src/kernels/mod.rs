//! How each operator becomes dispatches. A file holds a family; [`Kernels::all`] lists them.

use std::any::{Any, TypeId};
use std::collections::HashMap;

use kilim_core::Operator;
use kilim_core::backend::Refusal;

use crate::lower::{Lowering, Lowers, refuse};

pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod custom;
pub(crate) mod einsum;
pub(crate) mod grid;
pub(crate) mod index;
pub(crate) mod matmul;
pub(crate) mod movement;
pub(crate) mod norm;
pub(crate) mod quantized;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod select;
pub(crate) mod sort;
mod tile;
pub(crate) mod unary;
pub(crate) mod window;

type Lower = Box<dyn Fn(&dyn Operator, &mut Lowering) -> Lowers + Send + Sync>;

/// The lowering of every operator that the GPU runs.
#[derive(Default)]
pub(crate) struct Kernels {
    by_type: HashMap<TypeId, Lower>,
}

impl Kernels {
    /// Everything that is registered.
    pub fn all() -> Kernels {
        let mut kernels = Kernels::default();
        unary::register(&mut kernels);
        binary::register(&mut kernels);
        cast::register(&mut kernels);
        select::register(&mut kernels);
        matmul::register(&mut kernels);
        conv::register(&mut kernels);
        einsum::register(&mut kernels);
        movement::register(&mut kernels);
        index::register(&mut kernels);
        reduce::register(&mut kernels);
        norm::register(&mut kernels);
        quantized::register(&mut kernels);
        window::register(&mut kernels);
        grid::register(&mut kernels);
        sort::register(&mut kernels);
        recurrent::register(&mut kernels);
        custom::register(&mut kernels);
        kernels
    }

    /// Registers the lowering of an operator.
    pub fn add<T: Operator>(&mut self, lower: fn(&T, &mut Lowering) -> Lowers) {
        self.by_type.insert(
            TypeId::of::<T>(),
            Box::new(move |op, l| match op.downcast_ref::<T>() {
                Some(op) => lower(op, l),
                None => refuse("the kernel is for another operator"),
            }),
        );
    }

    /// Lowers a node, or says why the GPU does not run it.
    pub fn lower(&self, l: &mut Lowering) -> Result<(), Refusal> {
        if !l.node.op.subgraphs().is_empty() {
            return refuse("control flow is not run on the GPU");
        }
        if l.node.op.is_view() {
            return copy::whole(l);
        }
        match self.by_type.get(&(l.node.op as &dyn Any).type_id()) {
            Some(lower) => lower(l.node.op, l),
            None => refuse(format!("there is no GPU kernel for {}", l.node.op.name())),
        }
    }
}
