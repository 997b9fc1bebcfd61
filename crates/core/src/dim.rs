//! Symbolic dimensions and shapes.

use std::fmt;
use std::sync::Arc;

/// One dimension of a value: a number, a name that the model gives it (`batch`), or not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    Known(usize),
    Symbol(Arc<str>),
    Unknown,
}

impl Dim {
    /// The number, if there is one.
    pub fn known(&self) -> Option<usize> {
        match self {
            Dim::Known(n) => Some(*n),
            _ => None,
        }
    }

    /// Applies `f` to a known dimension; anything else becomes `Unknown`.
    pub fn map(&self, f: impl FnOnce(usize) -> Option<usize>) -> Dim {
        self.known().and_then(f).map_or(Dim::Unknown, Dim::Known)
    }

    /// `self + other`; zero keeps a symbol.
    pub fn plus(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => a.checked_add(*b).map_or(Dim::Unknown, Dim::Known),
            (d, Dim::Known(0)) | (Dim::Known(0), d) => d.clone(),
            _ => Dim::Unknown,
        }
    }

    /// `self * other`; one keeps a symbol, zero stays zero.
    pub fn times(&self, other: &Dim) -> Dim {
        match (self, other) {
            (Dim::Known(a), Dim::Known(b)) => a.checked_mul(*b).map_or(Dim::Unknown, Dim::Known),
            (Dim::Known(0), _) | (_, Dim::Known(0)) => Dim::Known(0),
            (d, Dim::Known(1)) | (Dim::Known(1), d) => d.clone(),
            _ => Dim::Unknown,
        }
    }

    /// The dimension of two operands under numpy broadcasting; `None` where they cannot match.
    pub fn broadcast(&self, other: &Dim) -> Option<Dim> {
        Some(match (self, other) {
            (a, b) if a == b && *a != Dim::Unknown => a.clone(),
            (Dim::Known(1), d) | (d, Dim::Known(1)) => d.clone(),
            (Dim::Known(_), Dim::Known(_)) => return None,
            (Dim::Known(n), _) | (_, Dim::Known(n)) => Dim::Known(*n),
            _ => Dim::Unknown,
        })
    }

    /// The more precise of two facts about the same dimension; `None` where they contradict.
    pub fn unify(&self, other: &Dim) -> Option<Dim> {
        Some(match (self, other) {
            (Dim::Known(a), Dim::Known(b)) if a != b => return None,
            (Dim::Known(n), _) | (_, Dim::Known(n)) => Dim::Known(*n),
            (Dim::Symbol(s), _) | (_, Dim::Symbol(s)) => Dim::Symbol(s.clone()),
            _ => Dim::Unknown,
        })
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Dim::Known(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Symbol(s) => f.write_str(s),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// The dimensions of a value of known rank, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(pub Vec<Dim>);

impl Shape {
    /// A shape of numbers only.
    pub fn fixed(dims: &[usize]) -> Shape {
        Shape(dims.iter().map(|&d| Dim::Known(d)).collect())
    }

    /// A shape of `rank` unknown dimensions.
    pub fn unknown(rank: usize) -> Shape {
        Shape(vec![Dim::Unknown; rank])
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The numbers, if all dimensions are known.
    pub fn concrete(&self) -> Option<Vec<usize>> {
        self.0.iter().map(Dim::known).collect()
    }

    /// The number of elements, if all dimensions are known and it fits.
    pub fn elements(&self) -> Option<usize> {
        self.0
            .iter()
            .try_fold(1usize, |n, d| d.known().and_then(|d| n.checked_mul(d)))
    }

    /// numpy broadcasting of two shapes; `None` where they cannot match.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.rank().max(other.rank());
        let one = Dim::Known(1);
        let at = |s: &Shape, i: usize| -> Dim {
            let missing = rank - s.rank();
            if i < missing {
                one.clone()
            } else {
                s.0[i - missing].clone()
            }
        };
        (0..rank)
            .map(|i| at(self, i).broadcast(&at(other, i)))
            .collect::<Option<Vec<_>>>()
            .map(Shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}
