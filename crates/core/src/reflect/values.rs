//! How the types of fields are visited.

use std::sync::Arc;

use super::{Items, Leaf, Reflect, Visitor};
use crate::tensor::Tensor;

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Reflect for $t {
            fn visit(&self, visitor: &mut dyn Visitor) {
                visitor.leaf(Leaf::Int(*self as i64));
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64, usize);

impl Reflect for bool {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Bool(*self));
    }
}

impl Reflect for f32 {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Float32(*self));
    }
}

impl Reflect for f64 {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Float64(*self));
    }
}

impl Reflect for String {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Text(self));
    }
}

impl Reflect for Tensor {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Tensor(self));
    }
}

impl<T: Reflect> Reflect for &T {
    fn visit(&self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }
}

impl<T: Reflect> Reflect for Option<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        match self {
            Some(value) => value.visit(visitor),
            None => visitor.leaf(Leaf::Absent),
        }
    }
}

impl<T: Reflect> Reflect for Arc<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }
}

impl<T: Reflect> Reflect for Vec<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.list(&self.as_slice());
    }
}

impl<T: Reflect, const N: usize> Reflect for [T; N] {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.list(&self.as_slice());
    }
}

impl<A: Reflect, B: Reflect> Reflect for (A, B) {
    fn visit(&self, visitor: &mut dyn Visitor) {
        let both: [&dyn Reflect; 2] = [&self.0, &self.1];
        visitor.list(&both);
    }
}

impl<T: Reflect> Items for &[T] {
    fn count(&self) -> usize {
        self.len()
    }

    fn visit(&self, index: usize, visitor: &mut dyn Visitor) {
        self[index].visit(visitor);
    }
}

impl Items for [&dyn Reflect; 2] {
    fn count(&self) -> usize {
        2
    }

    fn visit(&self, index: usize, visitor: &mut dyn Visitor) {
        self[index].visit(visitor);
    }
}
