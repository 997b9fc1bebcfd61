//! Symbolic dimensions and shapes.

use std::fmt;
use std::sync::Arc;

/// One dimension of a value: a number, a name that the model gives it (`batch`), a sum of such names and a number
/// (`past + seq`, `past + 1`), or not known yet.
///
/// A symbol whose name reads like a sum is equal to none. [`Dim::plus`] and [`Dim::minus`] make sums; two are equal where their
/// symbols and numbers are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    Known(usize),
    Symbol(Arc<str>),
    Sum(Arc<Sum>),
    Unknown,
}

/// Symbols and a number that are added up: at least one symbol, and another or a number that is not 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// Sorted; one that is added twice is there twice.
    symbols: Vec<Arc<str>>,
    number: usize,
}

/// A sum of more symbols is not known: shapes of hostile models could make it ever longer.
const MOST_SYMBOLS: usize = 8;

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

    /// Whether both are the same dimension: equal, and neither is unknown.
    pub fn same(&self, other: &Dim) -> bool {
        self == other && *self != Dim::Unknown
    }

    /// The names that it is made of, those that are added twice twice.
    pub fn symbols(&self) -> &[Arc<str>] {
        match self {
            Dim::Symbol(s) => std::slice::from_ref(s),
            Dim::Sum(sum) => &sum.symbols,
            Dim::Known(_) | Dim::Unknown => &[],
        }
    }

    /// `self + other`, a sum where one is a symbol; `Unknown` where the sum is too long or its number too large.
    pub fn plus(&self, other: &Dim) -> Dim {
        let added = || {
            let (mut sum, other) = (self.terms()?, other.terms()?);
            sum.number = sum.number.checked_add(other.number)?;
            for symbol in other.symbols {
                let at = sum.symbols.partition_point(|s| *s < symbol);
                sum.symbols.insert(at, symbol);
            }
            Some(Dim::from(sum))
        };
        added().unwrap_or(Dim::Unknown)
    }

    /// `self - other`, where every symbol of `other` is one of `self` and the number is no larger; otherwise `Unknown`.
    pub fn minus(&self, other: &Dim) -> Dim {
        let left = || {
            let (mut sum, other) = (self.terms()?, other.terms()?);
            sum.number = sum.number.checked_sub(other.number)?;
            for symbol in &other.symbols {
                let at = sum.symbols.iter().position(|own| own == symbol)?;
                sum.symbols.remove(at);
            }
            Some(Dim::from(sum))
        };
        left().unwrap_or(Dim::Unknown)
    }

    /// The dimension as a sum, which may have no symbol; `None` where it is unknown.
    fn terms(&self) -> Option<Sum> {
        let (symbols, number) = match self {
            Dim::Known(n) => (Vec::new(), *n),
            Dim::Symbol(s) => (vec![s.clone()], 0),
            Dim::Sum(sum) => return Some(Sum::clone(sum)),
            Dim::Unknown => return None,
        };
        Some(Sum { symbols, number })
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
            (a, b) if a.same(b) => a.clone(),
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
            (Dim::Unknown, d) | (d, _) => d.clone(),
        })
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Self {
        Dim::Known(n)
    }
}

impl From<Sum> for Dim {
    fn from(sum: Sum) -> Self {
        match (&sum.symbols[..], sum.number) {
            ([], n) => Dim::Known(n),
            ([one], 0) => Dim::Symbol(one.clone()),
            (all, _) if all.len() > MOST_SYMBOLS => Dim::Unknown,
            _ => Dim::Sum(Arc::new(sum)),
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.symbols.join(" + "))?;
        match self.number {
            0 => Ok(()),
            n => write!(f, " + {n}"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Symbol(s) => f.write_str(s),
            Dim::Sum(sum) => write!(f, "{sum}"),
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

#[cfg(test)]
mod tests {
    use super::{Dim, MOST_SYMBOLS, Shape};
    use std::collections::HashSet;

    fn symbol(name: &str) -> Dim {
        Dim::Symbol(name.into())
    }

    #[test]
    fn equal_sums_are_equal_dimensions() {
        let (past, seq) = (symbol("past"), symbol("seq"));
        let sum = past.plus(&seq);
        assert_eq!(sum, seq.plus(&past));
        assert_eq!(sum.to_string(), "past + seq");
        let longer = sum.plus(&1.into()).plus(&past);
        assert_eq!(longer.to_string(), "past + past + seq + 1");
        assert_eq!(longer, past.plus(&1.into()).plus(&sum));
        assert_ne!(longer, sum.plus(&1.into()));
        assert_eq!(HashSet::from([sum.clone(), seq.plus(&past)]).len(), 1);
        assert!(sum.same(&seq.plus(&past)) && !Dim::Unknown.same(&Dim::Unknown));
    }

    #[test]
    fn a_name_that_reads_like_a_sum_is_none() {
        let sum = symbol("past").plus(&1.into());
        let named = symbol("past + 1");
        assert_eq!(sum.to_string(), named.to_string());
        assert_ne!(sum, named);
        assert_eq!(sum.broadcast(&named), Some(Dim::Unknown));
    }

    #[test]
    fn sums_of_nothing_are_what_is_added() {
        let past = symbol("past");
        assert_eq!(past.plus(&0.into()), past);
        assert_eq!(Dim::from(0).plus(&past), past);
        assert_eq!(Dim::from(2).plus(&3.into()), Dim::Known(5));
        assert_eq!(past.plus(&Dim::Unknown), Dim::Unknown);
        assert_eq!(Dim::Unknown.plus(&0.into()), Dim::Unknown);
        assert_eq!(past.plus(&1.into()).times(&1.into()), past.plus(&1.into()));
    }

    #[test]
    fn differences_leave_what_was_added() {
        let (past, seq) = (symbol("past"), symbol("seq"));
        let sum = past.plus(&seq).plus(&3.into());
        assert_eq!(sum.minus(&past), seq.plus(&3.into()));
        assert_eq!(sum.minus(&past).minus(&3.into()), seq);
        assert_eq!(past.plus(&2.into()).minus(&past), Dim::Known(2));
        assert_eq!(past.minus(&past), Dim::Known(0));
        let open = [
            past.minus(&seq),
            past.minus(&1.into()),
            seq.minus(&sum),
            sum.minus(&Dim::Unknown),
            Dim::from(1).minus(&2.into()),
        ];
        assert_eq!(open, [const { Dim::Unknown }; 5]);
    }

    #[test]
    fn long_and_large_sums_are_unknown() {
        let one = symbol("n");
        let mut sum = one.clone();
        for _ in 1..MOST_SYMBOLS {
            sum = sum.plus(&one);
        }
        assert!(matches!(sum, Dim::Sum(_)));
        assert_eq!(sum.plus(&one), Dim::Unknown);
        let large = one.plus(&usize::MAX.into());
        assert_eq!(large.plus(&1.into()), Dim::Unknown);
    }

    #[test]
    fn sums_broadcast_and_unify_as_symbols_do() {
        let sum = symbol("past").plus(&symbol("seq"));
        assert_eq!(sum.broadcast(&1.into()), Some(sum.clone()));
        assert_eq!(sum.broadcast(&7.into()), Some(Dim::Known(7)));
        assert_eq!(sum.broadcast(&symbol("all")), Some(Dim::Unknown));
        assert_eq!(Dim::Unknown.unify(&sum), Some(sum.clone()));
        assert_eq!(sum.unify(&7.into()), Some(Dim::Known(7)));
        assert_eq!(sum.unify(&Dim::Unknown), Some(sum.clone()));
        let shape = Shape(vec![2.into(), sum]);
        assert_eq!(
            (shape.to_string(), shape.concrete()),
            ("[2, past + seq]".into(), None)
        );
    }
}
