//! Which kernels there are for which operator.

use std::any::{Any, TypeId};
use std::collections::HashMap;

use kilim_core::backend::{ContextConfig, NodeSpec, Refusal};
use kilim_core::tuning::Choice;
use kilim_core::{Operator, Result};

use crate::kernel::{Build, Kernel, widen};

/// Whether a kernel can run a node; cheap.
pub type Accepts<T> = fn(&T, &NodeSpec) -> Result<(), Refusal>;
/// Makes the kernel for a node that it accepts.
pub type Builder<T> = fn(&T, &NodeSpec, &mut Build) -> Result<Box<dyn Kernel>>;

/// Makes a kernel of one type for a node that it accepts.
pub type Maker<T, K> = fn(&T, &NodeSpec, &mut Build) -> Result<K>;

/// The algorithms between which a kernel has a choice on a node that it accepts.
pub type Chooses<T> = fn(&T, &NodeSpec, &ContextConfig) -> Option<Choice>;

/// A kernel for some operator.
pub trait Candidate: Send + Sync {
    /// Whether the kernel can run a node; the reason where it cannot.
    fn accepts(&self, node: &NodeSpec) -> Result<(), Refusal>;
    /// Makes the kernel for a node that it accepts.
    ///
    /// # Errors
    /// What is wrong with the node's attributes or constants.
    fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>>;

    /// Makes the kernel for a node that it accepts in the place of `kernel`, which was that of the node in other sizes.
    ///
    /// # Errors
    /// What is wrong with the node's attributes or constants; the kernel is of no use then.
    fn renew(
        &self,
        node: &NodeSpec,
        build: &mut Build,
        kernel: &mut Box<dyn Kernel>,
    ) -> Result<()> {
        *kernel = self.build(node, build)?;
        Ok(())
    }

    /// The algorithms between which it has a choice on a node that it accepts.
    fn choice(&self, node: &NodeSpec, config: &ContextConfig) -> Option<Choice> {
        let _ = (node, config);
        None
    }
}

struct Typed<T> {
    accepts: Accepts<T>,
    build: Builder<T>,
}

/// A kernel that is all in one piece, so that one for other sizes takes its place in its memory.
struct InPlace<T, K> {
    accepts: Accepts<T>,
    make: Maker<T, K>,
}

/// A kernel with several algorithms.
struct Choosing<T> {
    kernel: Typed<T>,
    chooses: Chooses<T>,
}

/// The node's operator, which is a `T`: [`KernelRegistry`] keeps candidates by the type of their operator.
fn operator<'a, T: Operator>(node: &NodeSpec<'a>) -> &'a T {
    (node.op.downcast_ref()).expect("a candidate is asked about nodes of its operator only")
}

impl<T: Operator> Candidate for Typed<T> {
    fn accepts(&self, node: &NodeSpec) -> Result<(), Refusal> {
        (self.accepts)(operator(node), node)
    }

    fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
        (self.build)(operator(node), node, build)
    }
}

impl<T: Operator, K: Kernel + 'static> Candidate for InPlace<T, K> {
    fn accepts(&self, node: &NodeSpec) -> Result<(), Refusal> {
        (self.accepts)(operator(node), node)
    }

    fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
        Ok(Box::new((self.make)(operator(node), node, build)?))
    }

    fn renew(
        &self,
        node: &NodeSpec,
        build: &mut Build,
        kernel: &mut Box<dyn Kernel>,
    ) -> Result<()> {
        let made = (self.make)(operator(node), node, build)?;
        match kernel.in_place().and_then(|own| own.downcast_mut::<K>()) {
            Some(own) => *own = made,
            None => *kernel = Box::new(made),
        }
        Ok(())
    }
}

impl<T: Operator> Candidate for Choosing<T> {
    fn accepts(&self, node: &NodeSpec) -> Result<(), Refusal> {
        self.kernel.accepts(node)
    }

    fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
        self.kernel.build(node, build)
    }

    fn choice(&self, node: &NodeSpec, config: &ContextConfig) -> Option<Choice> {
        (self.chooses)(operator(node), node, config)
    }
}

/// A kernel, and whether it was told of the element types that cannot be computed with.
struct Entry {
    candidate: Box<dyn Candidate>,
    every_type: bool,
    source: &'static str,
}

/// A kernel that accepts a node.
pub struct Serving<'a> {
    /// Where kernels of its kind come from: [`KernelRegistry::begin`].
    pub source: &'static str,
    /// What makes it.
    pub candidate: &'a dyn Candidate,
}

/// Candidates for each operator, in order of preference.
#[derive(Default)]
pub struct KernelRegistry {
    candidates: HashMap<TypeId, Vec<Entry>>,
    source: &'static str,
}

impl KernelRegistry {
    /// Says where the kernels come from that are added from now on, in a word for people.
    pub fn begin(&mut self, source: &'static str) {
        self.source = source;
    }

    /// Adds a kernel for operator `T` behind those that are there. It is never asked about
    /// types that are only stored ([`kilim_core::DType::is_only_stored`]).
    pub fn add<T: Operator>(&mut self, accepts: Accepts<T>, build: Builder<T>) {
        self.push(TypeId::of::<T>(), Box::new(Typed { accepts, build }), false);
    }

    /// Like [`KernelRegistry::add`] for a kernel with several algorithms.
    pub fn add_with_choice<T: Operator>(
        &mut self,
        accepts: Accepts<T>,
        build: Builder<T>,
        chooses: Chooses<T>,
    ) {
        let kernel = Typed { accepts, build };
        let candidate = Box::new(Choosing { kernel, chooses });
        self.push(TypeId::of::<T>(), candidate, false);
    }

    /// Like [`KernelRegistry::add`] for a kernel that moves elements without looking at them, or
    /// itself says which types it takes.
    pub fn add_for_every_type<T: Operator>(&mut self, accepts: Accepts<T>, build: Builder<T>) {
        self.push(TypeId::of::<T>(), Box::new(Typed { accepts, build }), true);
    }

    /// Like [`KernelRegistry::add`] for a kernel that gives itself as [`Kernel::in_place`] and has no memory of its own: for other
    /// sizes nothing is allocated.
    pub fn add_in_place<T: Operator, K: Kernel + 'static>(
        &mut self,
        accepts: Accepts<T>,
        make: Maker<T, K>,
    ) {
        self.push(
            TypeId::of::<T>(),
            Box::new(InPlace { accepts, make }),
            false,
        );
    }

    /// Like [`KernelRegistry::add_in_place`] for types as of [`KernelRegistry::add_for_every_type`].
    pub fn add_in_place_for_every_type<T: Operator, K: Kernel + 'static>(
        &mut self,
        accepts: Accepts<T>,
        make: Maker<T, K>,
    ) {
        self.push(TypeId::of::<T>(), Box::new(InPlace { accepts, make }), true);
    }

    #[inline(never)]
    fn push(&mut self, operator: TypeId, candidate: Box<dyn Candidate>, every_type: bool) {
        let candidates = self.candidates.entry(operator).or_default();
        candidates.push(Entry {
            candidate,
            every_type,
            source: self.source,
        });
    }

    /// Whether there is a kernel for `node`; else the reason of the last one that refuses it.
    pub fn supports(&self, node: &NodeSpec) -> Result<(), Refusal> {
        self.choose(node).map(|_| ()).or_else(|refusal| {
            match widen::Widened::new(node, widen::Constants::Small) {
                Some(Ok(wide)) => self.choose(&wide.node(node)).map(|_| ()),
                _ => Err(refusal),
            }
        })
    }

    /// Whether there is a kernel for `node` in its own element types, without widening; else the reason of
    /// the last one that refuses it.
    pub fn supports_as_it_is(&self, node: &NodeSpec) -> Result<(), Refusal> {
        self.choose(node).map(|_| ())
    }

    /// Makes the first kernel that accepts `node`. Where none takes `float16` or `bfloat16`, the
    /// node is widened to `float32`.
    ///
    /// # Errors
    /// `Unsupported` with the reason of the last kernel that refuses the node.
    pub fn build(&self, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
        let refusal = match self.choose(node) {
            Ok(candidate) => return candidate.build(node, build),
            Err(refusal) => refusal,
        };
        match widen::Widened::new(node, widen::Constants::All(build)) {
            Some(wide) => {
                let wide = wide?;
                let spec = wide.node(node);
                let widened = std::mem::take(&mut build.packed);
                let kernel = self.choose(&spec).map_err(refused)?.build(&spec, build)?;
                let kernel = wide.around(kernel, node, build)?;
                build.packed.extend(widened);
                Ok(Box::new(kernel))
            }
            None => Err(refused(refusal)),
        }
    }

    /// Makes the kernel that [`KernelRegistry::build`] makes in the place of `kernel`, which was that of the node in other sizes.
    ///
    /// # Errors
    /// Those of [`KernelRegistry::build`]; the kernel is of no use then.
    pub fn renew(
        &self,
        node: &NodeSpec,
        build: &mut Build,
        kernel: &mut Box<dyn Kernel>,
    ) -> Result<()> {
        match self.choose(node) {
            Ok(candidate) => candidate.renew(node, build, kernel),
            Err(_) => {
                *kernel = self.build(node, build)?;
                Ok(())
            }
        }
    }

    /// See [`kilim_core::Backend::choice`].
    pub fn choice(&self, node: &NodeSpec, config: &ContextConfig) -> Option<Choice> {
        self.choose(node).ok()?.choice(node, config)
    }

    /// Every kernel that accepts `node` in its own element types, in order of preference: the first is the one that
    /// [`KernelRegistry::build`] makes.
    pub fn serving<'a>(&'a self, node: &'a NodeSpec) -> impl Iterator<Item = Serving<'a>> {
        self.asked(node).flatten()
    }

    fn choose(&self, node: &NodeSpec) -> Result<&dyn Candidate, Refusal> {
        let mut refusal = None;
        for answer in self.asked(node) {
            match answer {
                Ok(serving) => return Ok(serving.candidate),
                Err(r) => refusal = Some(r),
            }
        }
        Err(refusal
            .unwrap_or_else(|| Refusal::new(format!("there is no kernel for {}", node.op.name()))))
    }

    /// The answers of all kernels for the operator of `node`, in order of preference.
    fn asked<'a, 'n>(
        &'a self,
        node: &'n NodeSpec,
    ) -> impl Iterator<Item = Result<Serving<'a>, Refusal>> + use<'a, 'n> {
        let mut tensors = node.inputs.iter().flatten().chain(node.outputs);
        let stored = tensors.find(|s| s.dtype.is_only_stored());
        let entries = self.candidates.get(&(node.op as &dyn Any).type_id());
        entries.into_iter().flatten().map(move |entry| {
            if let Some(spec) = stored.filter(|_| !entry.every_type) {
                let why = format!("{} of {}", node.op.name(), spec.dtype);
                return Err(Refusal::new(why));
            }
            entry.candidate.accepts(node)?;
            Ok(Serving {
                source: entry.source,
                candidate: entry.candidate.as_ref(),
            })
        })
    }
}

fn refused(refusal: Refusal) -> kilim_core::Error {
    kilim_core::error::unsupported(refusal.reason)
}

/// Takes every node of an operator: an `accepts` for [`KernelRegistry::add`].
pub fn any<T>(_: &T, _: &NodeSpec) -> Result<(), Refusal> {
    Ok(())
}
