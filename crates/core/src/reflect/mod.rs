//! What an operator consists of: its fields in order, each under a frozen name.
//!
//! `#[derive(Reflect)]` writes [`Reflect::visit`]. Everything that depends on an operator's fields is a
//! [`Visitor`]: [`Contents`] tells equal operators from different ones, [`Attributes`] are what backends
//! in libraries see.

mod attributes;
mod below;
mod identity;
#[cfg(test)]
mod tests;
mod values;

pub use attributes::{Attribute, Attributes};
pub use identity::Contents;

use crate::tensor::Tensor;

/// Code that the derive writes for tests: nothing in any other build.
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[macro_export]
macro_rules! in_tests {
    ($($code:tt)*) => { $($code)* };
}

#[cfg(not(any(test, feature = "testing")))]
#[doc(hidden)]
#[macro_export]
macro_rules! in_tests {
    ($($code:tt)*) => {};
}

/// A value whose contents can be visited: an operator, or a part of one.
///
/// Equal contents are visited alike, and different contents differently, to the last bit of a float.
///
/// ```
/// use kilim_core::graph::Flow;
/// use kilim_core::{Fact, InferContext, Operator, Reflect, Result};
///
/// #[derive(Reflect)]
/// struct Roll {
///     shift: i64,
/// }
///
/// impl Operator for Roll {
///     fn name(&self) -> &str {
///         "Roll"
///     }
///
///     kilim_core::signature! { (data) -> (output) }
///
///     fn flow(&self) -> Flow {
///         Flow::OPAQUE
///     }
///
///     fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
///         Ok(vec![ctx.fact(0)?.clone()])
///     }
/// }
///
/// let attributes = (&Roll { shift: 2 } as &dyn Operator).attributes().unwrap();
/// assert_eq!(attributes.int_or("shift", 0), 2);
/// ```
///
/// An operator without the derive does not compile:
///
/// ```compile_fail,E0277
/// use kilim_core::graph::Flow;
/// use kilim_core::{Fact, InferContext, Operator, Result};
///
/// struct Roll {
///     shift: i64,
/// }
///
/// impl Operator for Roll {
///     fn name(&self) -> &str {
///         "Roll"
///     }
///
///     kilim_core::signature! { (data) -> (output) }
///
///     fn flow(&self) -> Flow {
///         Flow::OPAQUE
///     }
///
///     fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
///         Ok(vec![ctx.fact(0)?.clone()])
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it consists of",
    note = "operators and the types of their fields need `#[derive(kilim_core::Reflect)]`"
)]
pub trait Reflect {
    /// Shows the contents: [`Visitor::name`] and the fields of a struct or of an enum's variant,
    /// [`Visitor::list`] of a list, or one [`Leaf`].
    fn visit(&self, visitor: &mut dyn Visitor);
}

/// Sees the contents of a value, in order.
pub trait Visitor {
    /// A field under its frozen name, unique in its struct or variant.
    fn field(&mut self, name: &str, value: &dyn Reflect);

    /// A field that is part of the value's identity and has no form as an attribute.
    fn hidden(&mut self, name: &str, value: &dyn Reflect) {
        self.field(name, value);
    }

    /// A list.
    fn list(&mut self, items: &dyn Items);

    /// A value without parts.
    fn leaf(&mut self, leaf: Leaf);
}

impl dyn Visitor + '_ {
    /// The frozen name of the struct, or of the enum's variant, whose fields follow.
    pub fn name(&mut self, name: &'static str) {
        self.leaf(Leaf::Name(name));
    }
}

/// The items of a list.
pub trait Items {
    /// The number of items.
    fn count(&self) -> usize;

    /// Visits item `index`, which is less than [`Items::count`].
    fn visit(&self, index: usize, visitor: &mut dyn Visitor);
}

/// A value without parts.
#[derive(Clone, Copy)]
pub enum Leaf<'a> {
    /// An optional value that is not there.
    Absent,
    /// The frozen name of a struct or of an enum's variant.
    Name(&'static str),
    Bool(bool),
    /// Any integer type; `u64` and `usize` above `i64::MAX` as the number of the same bits.
    Int(i64),
    Float32(f32),
    Float64(f64),
    Text(&'a str),
    Tensor(&'a Tensor),
    /// The address of something without contents to compare, code or a graph: it is the same only as
    /// itself, as long as it lives.
    Opaque(usize),
}
