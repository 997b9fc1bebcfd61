//! What a kernel is made with, and the constants that kernels of a session have packed.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Result, Settings, TensorInfo};

/// What a kernel is made with.
pub struct Build<'a> {
    /// What the session asks of the backend.
    pub settings: &'a Settings,
    /// The algorithm that the kernel is to have, one of those that [`super::Choices::choice`] names for the node; `None` where
    /// the node has no choice.
    pub algorithm: Option<&'a CStr>,
    inputs: &'a [Option<TensorInfo<'a>>],
    /// The names of inputs that are constants of the session.
    keys: &'a [Option<u64>],
    packs: &'a Packs,
    packed: HashSet<usize>,
}

impl<'a> Build<'a> {
    pub(crate) fn new(
        (settings, packs): (&'a Settings, &'a Packs),
        algorithm: Option<&'a CStr>,
        inputs: &'a [Option<TensorInfo<'a>>],
        keys: &'a [Option<u64>],
    ) -> Build<'a> {
        Build {
            settings,
            algorithm,
            inputs,
            keys,
            packs,
            packed: HashSet::new(),
        }
    }

    /// An input in the form `T` that the kernel wants, which `make` makes of its elements: their bytes, row-major, at an address of
    /// any alignment. A constant of the session is packed at most once in each form, for all of its kernels and for runs at the same
    /// time; forms that differ are types that differ. `None` where the elements are not known. [`super::Kernel::run`] is given
    /// `None` in the place of an input that was packed.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn pack<T: Any + Send + Sync>(
        &mut self,
        input: usize,
        make: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<Option<Arc<T>>> {
        let tensor = self.inputs.get(input).and_then(Option::as_ref);
        let elements = tensor.and_then(|tensor| tensor.data);
        let form = match self.keys.get(input).copied().flatten() {
            Some(key) => self.packs.form(key, elements, make)?,
            None => elements.map(make).transpose()?.map(Arc::new),
        };
        if form.is_some() {
            self.packed.insert(input);
        }
        Ok(form)
    }

    /// Whether the kernel has an input in a form of its own.
    pub(crate) fn has_packed(&self, input: usize) -> bool {
        self.packed.contains(&input)
    }
}

type Form = Arc<dyn Any + Send + Sync>;

/// The constants that kernels of a session have packed.
#[derive(Default)]
pub(crate) struct Packs(Mutex<Constants>);

#[derive(Default)]
struct Constants {
    forms: HashMap<(u64, TypeId), Form>,
    /// Constants that have at least one form.
    packed: HashSet<u64>,
    /// Constants whose elements a stage reads where Kilim has them.
    raw: HashSet<u64>,
}

impl Packs {
    fn lock(&self) -> MutexGuard<'_, Constants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn form<T: Any + Send + Sync>(
        &self,
        key: u64,
        elements: Option<&[u8]>,
        make: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<Option<Arc<T>>> {
        let mut constants = self.lock();
        let place = (key, TypeId::of::<T>());
        if let Some(form) = constants.forms.get(&place).cloned() {
            return Ok(form.downcast().ok());
        }
        let Some(made) = elements.map(make).transpose()?.map(Arc::new) else {
            return Ok(None);
        };
        constants.forms.insert(place, made.clone());
        constants.packed.insert(key);
        Ok(Some(made))
    }

    /// Whether a constant has a form.
    pub(crate) fn holds(&self, key: u64) -> bool {
        self.lock().packed.contains(&key)
    }

    /// Notes that a stage reads the elements of a constant where Kilim has them.
    pub(crate) fn keep_raw(&self, key: u64) {
        self.lock().raw.insert(key);
    }

    /// Whether nothing reads the elements of a constant any more.
    pub(crate) fn is_packed(&self, key: u64) -> bool {
        let constants = self.lock();
        constants.packed.contains(&key) && !constants.raw.contains(&key)
    }
}
