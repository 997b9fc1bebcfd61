//! Lists that one kind of index looks into.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

/// Declares the type of the indices of one kind of list, and the list's.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $(#[$list_doc:meta])* $list:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);

        impl From<usize> for $name {
            fn from(at: usize) -> Self {
                $name(at)
            }
        }

        impl From<$name> for usize {
            fn from(index: $name) -> usize {
                index.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        $(#[$list_doc])*
        pub type $list<T> = Indexed<$name, T>;
    };
}

index! {
    /// A backend of a session, in the order of preference.
    BackendIndex,
    /// Something for each backend of a session.
    PerBackend
}

index! {
    /// A tensor of one backend's share of a stage.
    TensorIndex,
    /// Something for each tensor of one backend's share of a stage.
    PerTensor
}

index! {
    /// A node of one backend's share of a stage, with its kernel.
    KernelIndex,
    /// Something for each node of one backend's share of a stage.
    PerKernel
}

index! {
    /// A run of nodes of one backend's share of a stage between which no other backend works.
    PartIndex,
    /// Something for each such run of nodes.
    PerPart
}

/// The indices of a range, in order.
pub fn each<I: From<usize> + Into<usize>>(range: Range<I>) -> impl Iterator<Item = I> {
    (range.start.into()..range.end.into()).map(I::from)
}

/// A `Vec` that is indexed by `I` alone.
///
/// ```compile_fail,E0277
/// use kilim_core::ids::{BackendIndex, PerTensor};
/// let names = PerTensor::from(vec!["x"]);
/// names[BackendIndex(0)];
/// ```
pub struct Indexed<I, T> {
    items: Vec<T>,
    index: PhantomData<fn() -> I>,
}

impl<I: From<usize>, T> Indexed<I, T> {
    /// A list without items.
    pub const fn new() -> Self {
        Indexed {
            items: Vec::new(),
            index: PhantomData,
        }
    }

    /// The index behind the last item.
    pub fn end(&self) -> I {
        I::from(self.items.len())
    }

    /// Adds an item at the end, and gives its index.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from(self.items.len() - 1)
    }

    /// All indices, in order.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = I> + Clone + use<I, T> {
        (0..self.items.len()).map(I::from)
    }

    /// All items with their indices, in order.
    pub fn entries(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::from(i), t))
    }

    /// All items with their indices, in order, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        let items = self.items.iter_mut().enumerate();
        items.map(|(i, t)| (I::from(i), t))
    }

    /// The index of the first item for which `is` says true.
    pub fn position(&self, is: impl FnMut(&T) -> bool) -> Option<I> {
        self.items.iter().position(is).map(I::from)
    }
}

impl<I: Into<usize>, T> Indexed<I, T> {
    /// The item at an index, if there is one.
    pub fn get(&self, index: I) -> Option<&T> {
        self.items.get(index.into())
    }

    /// The item at an index, if there is one, to be changed.
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.items.get_mut(index.into())
    }
}

impl<I, T> Default for Indexed<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for Indexed<I, T> {
    fn clone(&self) -> Self {
        self.items.clone().into()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for Indexed<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<I, T> From<Vec<T>> for Indexed<I, T> {
    fn from(items: Vec<T>) -> Self {
        Indexed {
            items,
            index: PhantomData,
        }
    }
}

impl<I, T, const N: usize> From<[T; N]> for Indexed<I, T> {
    fn from(items: [T; N]) -> Self {
        Vec::from(items).into()
    }
}

impl<I, T> FromIterator<T> for Indexed<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<I, T> IntoIterator for Indexed<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, I, T> IntoIterator for &'a Indexed<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut Indexed<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

impl<I, T> Deref for Indexed<I, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<I, T> DerefMut for Indexed<I, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<I: Into<usize>, T> Index<I> for Indexed<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        &self.items[index.into()]
    }
}

impl<I: Into<usize>, T> IndexMut<I> for Indexed<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.items[index.into()]
    }
}

impl<I: Into<usize>, T> Index<Range<I>> for Indexed<I, T> {
    type Output = [T];

    fn index(&self, range: Range<I>) -> &[T] {
        &self.items[range.start.into()..range.end.into()]
    }
}
