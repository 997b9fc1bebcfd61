//! What the inference rules share: looking up values, checking element types and ranks, arithmetic
//! on dimensions that reports overflow.

use crate::graph::{InferContext, NodeSpec};

use crate::datum::Kind;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Error, Result, dtype_error, shape_error, value_error};
use crate::fact::Fact;
use crate::tensor::Tensor;

/// Inputs whose values can be looked up, by inference and by whoever builds a kernel.
pub trait InputValues {
    /// The value of input `i`; `None` where it is left out or not known.
    fn value(&self, i: usize) -> Option<&Tensor>;

    /// True where input `i` is not left out.
    fn has(&self, i: usize) -> bool;

    /// The elements of an integer input; `None` where it is left out or not known.
    fn ints(&self, i: usize) -> Result<Option<Vec<i64>>> {
        self.value(i).map(Tensor::to_i64s).transpose()
    }

    /// Like [`InputValues::ints`], with an error where there is nothing.
    fn need_ints(&self, i: usize) -> Result<Vec<i64>> {
        self.ints(i)?.ok_or_else(|| missing_value(i))
    }

    /// The one element of an integer input; `None` where it is left out or not known.
    fn int(&self, i: usize) -> Result<Option<i64>> {
        match self.ints(i)?.as_deref() {
            None => Ok(None),
            Some([v]) => Ok(Some(*v)),
            Some(other) => Err(shape_error(format!("input {i} must be a scalar"))
                .with_expected("1 element")
                .with_got(format!("{} elements", other.len()))),
        }
    }

    /// True where all of these inputs are left out or known.
    fn known(&self, which: &[usize]) -> bool {
        which
            .iter()
            .all(|&i| !self.has(i) || self.value(i).is_some())
    }
}

impl InputValues for InferContext<'_> {
    fn value(&self, i: usize) -> Option<&Tensor> {
        self.optional(i).and_then(|f| f.value.as_ref())
    }

    fn has(&self, i: usize) -> bool {
        self.optional(i).is_some()
    }
}

impl InputValues for NodeSpec<'_> {
    fn value(&self, i: usize) -> Option<&Tensor> {
        self.input(i).and_then(|s| s.value.as_ref())
    }

    fn has(&self, i: usize) -> bool {
        self.input(i).is_some()
    }
}

pub(crate) fn missing_value(i: usize) -> Error {
    value_error(format!("the value of input {i} must be known"))
}

/// A set of element types that an input may have.
pub(crate) struct Types {
    pub(super) name: &'static str,
    pub(super) contains: fn(DType) -> bool,
}

pub(crate) const ANY: Types = Types {
    name: "any element type",
    contains: |_| true,
};
pub(crate) const NOT_COMPLEX: Types = Types {
    name: "any element type but complex numbers",
    contains: |d| !d.is_complex(),
};
pub(crate) const FLOATS: Types = Types {
    name: "a floating-point type",
    contains: DType::is_float,
};
pub(crate) const INTEGERS: Types = Types {
    name: "an integer type",
    contains: DType::is_integer,
};
pub(crate) const NUMBERS: Types = Types {
    name: "a numeric type",
    contains: |d| d.is_float() || d.is_integer(),
};
pub(crate) const VALUES: Types = Types {
    name: "a numeric type or bool",
    contains: |d| d.is_float() || d.is_integer() || d == DType::Bool,
};
pub(crate) const STRINGS: Types = Types {
    name: "string",
    contains: |d| d == DType::String,
};
pub(crate) const SIGNED: Types = Types {
    name: "a signed numeric type",
    contains: |d| d.is_float() || d.is_signed_integer(),
};
pub(crate) const WIDE_NUMBERS: Types = Types {
    name: "a floating-point type or an integer of at least 32 bits",
    contains: |d| d.is_float() || (d.is_integer() && d.size() >= 4),
};
pub(crate) const BYTES: Types = Types {
    name: "int8 or uint8",
    contains: |d| matches!(d, DType::I8 | DType::U8),
};
pub(crate) const QUANTIZED: Types = Types {
    name: "int8, uint8, int16, uint16, int32 or a narrower type",
    contains: |d| {
        d.is_narrow()
            || matches!(
                d,
                DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32
            )
    },
};
pub(crate) const INDICES: Types = Types {
    name: "int32 or int64",
    contains: |d| matches!(d, DType::I32 | DType::I64),
};
pub(crate) const BOOL: Types = Types {
    name: "bool",
    contains: |d| d == DType::Bool,
};

impl Types {
    pub(crate) const fn new(name: &'static str, contains: fn(DType) -> bool) -> Types {
        Types { name, contains }
    }

    /// `DType` where `dtype` is known and not in the set.
    pub(crate) fn check(&self, i: usize, dtype: Option<DType>) -> Result<()> {
        match dtype {
            Some(d) if !(self.contains)(d) => Err(dtype_error(format!(
                "input {i} has an element type that the operator does not take"
            ))
            .with_expected(self.name)
            .with_got(d)),
            _ => Ok(()),
        }
    }
}

impl InferContext<'_> {
    /// `Shape` where one of the first `count` inputs is left out.
    pub(crate) fn require(&self, count: usize) -> Result<()> {
        (0..count).try_for_each(|i| self.input(i).map(|_| ()))
    }

    /// The element type of input `i`, which must be one of `types`.
    pub(crate) fn typed(&self, i: usize, types: &Types) -> Result<Option<DType>> {
        let dtype = self.dtype(i)?;
        types.check(i, dtype)?;
        Ok(dtype)
    }

    /// Like [`InferContext::typed`] for an input that may be left out.
    pub(crate) fn typed_optional(&self, i: usize, types: &Types) -> Result<Option<DType>> {
        match self.optional(i) {
            Some(_) => self.typed(i, types),
            None => Ok(None),
        }
    }

    /// The one element type of these inputs, as far as they are there.
    pub(crate) fn common_type(
        &self,
        which: impl IntoIterator<Item = usize>,
    ) -> Result<Option<DType>> {
        let mut common = None;
        for i in which {
            let Some(dtype) = self.optional(i).and_then(|f| f.fact.dtype) else {
                continue;
            };
            match common {
                None => common = Some(dtype),
                Some(c) if c != dtype => {
                    return Err(dtype_error(format!(
                        "input {i} has another element type than the others"
                    ))
                    .with_expected(c)
                    .with_got(dtype));
                }
                Some(_) => {}
            }
        }
        Ok(common)
    }

    /// The shape of an input that may be left out; `None` where it is, or its rank is unknown.
    pub(crate) fn shape_optional(&self, i: usize) -> Option<&Shape> {
        self.optional(i).and_then(|f| f.fact.shape.as_ref())
    }

    /// The shape of input `i`, of exactly `rank` dimensions.
    pub(crate) fn shape_of_rank(&self, i: usize, rank: usize) -> Result<Option<&Shape>> {
        let shape = self.shape_optional(i);
        match shape {
            Some(s) if s.rank() != rank => Err(shape_error(format!("input {i} has another rank"))
                .with_expected(format!("rank {rank}"))
                .with_got(s)),
            _ => Ok(shape),
        }
    }

    /// The shape of input `i`, of at least `rank` dimensions.
    pub(crate) fn shape_of_min_rank(&self, i: usize, rank: usize) -> Result<Option<&Shape>> {
        let shape = self.shape_optional(i);
        match shape {
            Some(s) if s.rank() < rank => {
                Err(shape_error(format!("the rank of input {i} is too low"))
                    .with_expected(format!("rank {rank} or more"))
                    .with_got(s))
            }
            _ => Ok(shape),
        }
    }

    /// How many elements input `i`, a vector, has; `None` where it is left out or that is not known.
    pub(crate) fn length(&self, i: usize) -> Result<Option<usize>> {
        Ok(self.shape_of_rank(i, 1)?.and_then(|s| s.0[0].known()))
    }

    /// `Shape` where input `i` is there, its shape known, and it cannot be a vector of `len`.
    pub(crate) fn vector(&self, i: usize, len: &Dim) -> Result<()> {
        if let Some(s) = self.shape_of_rank(i, 1)? {
            unify(&s.0[0], len, || format!("the length of input {i}"))?;
        }
        Ok(())
    }

    /// `Shape` where input `i` is there and known to have another number of elements than one.
    pub(crate) fn scalar(&self, i: usize) -> Result<()> {
        match self.shape_optional(i).and_then(Shape::elements) {
            Some(n) if n != 1 => Err(shape_error(format!("input {i} must be a scalar"))
                .with_expected("1 element")
                .with_got(format!("{n} elements"))),
            _ => Ok(()),
        }
    }
}

/// The elements of input `i` where they are not known as a value already.
pub(crate) fn partly_known<'a>(
    ctx: &InferContext,
    elements: &'a [Option<Vec<Dim>>],
    i: usize,
) -> Option<&'a [Dim]> {
    match ctx.value(i) {
        Some(_) => None,
        None => elements.get(i)?.as_deref(),
    }
}

/// The fact of input 0 under another shape, which is `shape` of its own and of what is known of the elements of input 1;
/// `None` where one of these is not known.
pub(crate) fn shaped_by_elements(
    ctx: &InferContext,
    elements: &[Option<Vec<Dim>>],
    shape: impl FnOnce(&Shape, &[Dim]) -> Result<Shape>,
) -> Result<Option<Fact>> {
    let (Some(x), Some(target)) = (ctx.shape(0)?, partly_known(ctx, elements, 1)) else {
        return Ok(None);
    };
    Ok(Some(fact(ctx.dtype(0)?, Some(shape(x, target)?))))
}

/// A fact of parts that may be unknown.
pub(crate) fn fact(dtype: Option<DType>, shape: Option<Shape>) -> Fact {
    Fact {
        dtype,
        shape,
        kind: Kind::default(),
    }
}

/// Both facts about one dimension; `Shape` where they contradict.
pub(crate) fn unify(got: &Dim, expected: &Dim, what: impl FnOnce() -> String) -> Result<Dim> {
    expected.unify(got).ok_or_else(|| {
        shape_error(format!("{} does not fit", what()))
            .with_expected(expected)
            .with_got(got)
    })
}

/// Both facts about one shape; `Shape` where they contradict.
pub(crate) fn unify_shapes(
    got: &Shape,
    expected: &Shape,
    what: impl Fn() -> String,
) -> Result<Shape> {
    let contradiction = || {
        shape_error(format!("{} does not fit", what()))
            .with_expected(expected)
            .with_got(got)
    };
    if got.rank() != expected.rank() {
        return Err(contradiction());
    }
    let dims = got.0.iter().zip(&expected.0);
    dims.map(|(g, e)| e.unify(g).ok_or_else(contradiction))
        .collect::<Result<Vec<_>>>()
        .map(Shape)
}

pub(crate) fn too_large() -> Error {
    shape_error("a dimension is too large")
}

/// `a + b`; `Shape` where both are known and the sum does not fit.
pub(crate) fn sum(a: &Dim, b: &Dim) -> Result<Dim> {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => a.checked_add(*b).map(Dim::Known).ok_or_else(too_large),
        _ => Ok(a.plus(b)),
    }
}

/// `a * b`; `Shape` where both are known and the product does not fit.
pub(crate) fn times(a: &Dim, b: &Dim) -> Result<Dim> {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => a.checked_mul(*b).map(Dim::Known).ok_or_else(too_large),
        _ => Ok(a.times(b)),
    }
}

/// The product of dimensions, symbolic where one is; `Shape` where it does not fit.
pub(crate) fn volume(dims: &[Dim]) -> Result<Dim> {
    dims.iter().try_fold(Dim::Known(1), |n, d| times(&n, d))
}

/// numpy broadcasting of two shapes; `Shape` where they cannot match.
pub(crate) fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    a.broadcast(b).ok_or_else(|| {
        shape_error("the shapes do not broadcast against each other")
            .with_expected(format!("a shape that fits {a}"))
            .with_got(b)
    })
}

/// `Shape` where `small` does not broadcast to `large` without enlarging it.
pub(crate) fn broadcasts_to(small: &Shape, large: &Shape, what: &str) -> Result<()> {
    let fits = large.broadcast(small).is_some_and(|b| {
        b.rank() == large.rank()
            && b.0.iter().zip(&large.0).all(|(b, l)| match (b, l) {
                (Dim::Known(b), Dim::Known(l)) => b == l,
                _ => true,
            })
    });
    if fits {
        return Ok(());
    }
    Err(
        shape_error(format!("{what} does not broadcast to the data"))
            .with_expected(format!("a shape that broadcasts to {large}"))
            .with_got(small),
    )
}

/// A size out of a tensor; `InvalidValue` where it is negative or too large.
pub(crate) fn size(v: i64, what: &str) -> Result<usize> {
    usize::try_from(v).map_err(|_| {
        value_error(format!("{what} is out of range"))
            .with_expected("0 or more")
            .with_got(v)
    })
}

/// Sizes out of a tensor; `InvalidValue` where one is negative or too large.
pub(crate) fn sizes(values: &[i64], what: &str) -> Result<Vec<usize>> {
    values.iter().map(|&v| size(v, what)).collect()
}

/// An error about the number of elements of something.
pub(crate) fn wrong_count(what: &str, expected: usize, got: usize) -> Error {
    shape_error(format!("{what} has the wrong length"))
        .with_expected(expected)
        .with_got(got)
}

/// The one output of an operator whose output is like its first input.
pub(crate) fn same_as_first(ctx: &InferContext) -> Result<Vec<Fact>> {
    Ok(vec![ctx.fact(0)?.clone()])
}

/// The first of `facts`, as many as the node has outputs, and at least one.
pub(crate) fn some_of<const N: usize>(ctx: &InferContext, facts: [Fact; N]) -> Vec<Fact> {
    facts.into_iter().take(ctx.outputs.max(1)).collect()
}
