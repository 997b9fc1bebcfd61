//! How each operator becomes dispatches. Families are those of `shaders/`; [`Kernels::all`] lists them.

use std::any::{Any, TypeId};
use std::collections::HashMap;

use kilim_core::Operator;

use crate::lowering::{Lowering, Lowers, refuse, wrong};

pub(crate) mod custom;
pub(crate) mod elementwise;
pub(crate) mod index;
pub(crate) mod movement;
pub(crate) mod norm;
pub(crate) mod products;
pub(crate) mod quantized;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod sort;
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
        elementwise::register(&mut kernels);
        products::register(&mut kernels);
        movement::register(&mut kernels);
        index::register(&mut kernels);
        reduce::register(&mut kernels);
        norm::register(&mut kernels);
        quantized::register(&mut kernels);
        window::register(&mut kernels);
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
                None => wrong("a kernel is registered for another operator"),
            }),
        );
    }

    /// Lowers a node, or says why the GPU does not run it.
    pub fn lower(&self, l: &mut Lowering) -> Lowers {
        if !l.node.op.subgraphs().is_empty() {
            return refuse("control flow is not run on the GPU");
        }
        if l.node.op.is_view() {
            return movement::copy::whole(l);
        }
        match self.by_type.get(&(l.node.op as &dyn Any).type_id()) {
            Some(lower) => lower(l.node.op, l),
            None => refuse(format!("there is no GPU kernel for {}", l.node.op.name())),
        }
    }
}
