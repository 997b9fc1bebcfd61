//! What the inputs and outputs of operators are called.

/// The inputs and outputs of an operator, in order. `docs/attributes.md` lists those of Kilim's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    pub inputs: &'static [Slot],
    pub outputs: &'static [Slot],
}

/// An input or an output of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub name: &'static str,
    pub presence: Presence,
}

/// Whether a node has an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Required,
    /// An input that may be left out, or an output that the last ones of a node may lack.
    Optional,
    /// Any number of them, in the last place.
    List,
}

impl Signature {
    /// What input `i` is called; `None` where a node has no such input. The first of a list `captures` is `captures.0`.
    pub fn input(&self, i: usize) -> Option<String> {
        name(self.inputs, i)
    }

    /// What output `i` is called; `None` where a node has no such output. The first of a list `parts` is `parts.0`.
    pub fn output(&self, i: usize) -> Option<String> {
        name(self.outputs, i)
    }

    /// Whether a node may have inputs that are there as `inputs` says, and so many outputs.
    pub fn fits(&self, inputs: &[bool], outputs: usize) -> bool {
        let required = |(i, slot): (usize, &Slot)| {
            slot.presence != Presence::Required || inputs.get(i) == Some(&true)
        };
        let known = |i: usize, there: bool| match slot(self.inputs, i).map(|s| s.presence) {
            Some(Presence::Required | Presence::List) => there,
            Some(Presence::Optional) => true,
            None => false,
        };
        let mut given = inputs.iter().enumerate();
        let least = self.outputs.iter();
        let least = least.filter(|s| s.presence == Presence::Required).count();
        given.all(|(i, &there)| known(i, there))
            && self.inputs.iter().enumerate().all(required)
            && outputs >= least
            && (outputs == 0 || slot(self.outputs, outputs - 1).is_some())
    }
}

/// Slot `i`; any behind the others where the last one is a list.
fn slot(slots: &'static [Slot], i: usize) -> Option<&'static Slot> {
    let list = slots.last().filter(|s| s.presence == Presence::List);
    slots.get(i).or(list)
}

fn name(slots: &'static [Slot], i: usize) -> Option<String> {
    let slot = slot(slots, i)?;
    Some(match slot.presence {
        Presence::List => format!("{}.{}", slot.name, i + 1 - slots.len()),
        _ => slot.name.to_string(),
    })
}

/// Writes [`Operator::signature`](crate::Operator::signature) in an implementation of `Operator`: the names of the inputs and of
/// the outputs, in order. A name behind `optional` may be left out; one behind `list`, the last, stands for any number. Builds for
/// WebAssembly have none of it.
///
/// ```
/// # use kilim_core::graph::Flow;
/// # use kilim_core::{Fact, InferContext, Operator, Reflect, Result};
/// #[derive(Reflect)]
/// struct Roll;
///
/// impl Operator for Roll {
/// #   fn name(&self) -> &str { "Roll" }
///     kilim_core::signature! { (data, optional shift) -> (output) }
/// #   fn flow(&self) -> Flow { Flow::OPAQUE }
/// #   fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> { Ok(vec![ctx.fact(0)?.clone()]) }
/// }
///
/// assert_eq!(Roll.signature().input(1).as_deref(), Some("shift"));
/// ```
#[macro_export]
macro_rules! signature {
    (@slot optional $name:ident) => {
        $crate::signature!(@slot $name, Optional)
    };
    (@slot list $name:ident) => {
        $crate::signature!(@slot $name, List)
    };
    (@slot $name:ident) => {
        $crate::signature!(@slot $name, Required)
    };
    (@slot $name:ident, $presence:ident) => {
        $crate::graph::Slot {
            name: stringify!($name),
            presence: $crate::graph::Presence::$presence,
        }
    };
    (($($($input:ident)+),*) -> ($($($output:ident)+),*)) => {
        #[cfg(not(target_arch = "wasm32"))]
        fn signature(&self) -> &'static $crate::graph::Signature {
            &$crate::graph::Signature {
                inputs: &[$($crate::signature!(@slot $($input)+)),*],
                outputs: &[$($crate::signature!(@slot $($output)+)),*],
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Operator;
    use crate::ops::{Concat, Loop, Split, Trilu};

    #[test]
    fn inputs_and_outputs_have_names() {
        let names = |s: &Signature| (0..4).map(|i| s.input(i)).collect::<Vec<_>>();
        let name = |text: &str| Some(text.to_string());
        let trilu = Trilu { upper: true };
        assert_eq!(
            names(trilu.signature()),
            [name("data"), name("k"), None, None]
        );
        let body = Default::default();
        let turns = Loop { body, carried: 1 };
        let wanted = ["trips", "condition", "values.0", "values.1"].map(name);
        assert_eq!(names(turns.signature()), wanted);
        let split = Split { axis: 0 };
        assert_eq!(split.signature().output(2), name("outputs.2"));
        assert_eq!(trilu.signature().output(1), None);
    }

    #[test]
    fn a_node_fits_or_does_not() {
        let trilu = Trilu { upper: true };
        for (inputs, outputs, fits) in [
            (&[true][..], 1, true),
            (&[true, true], 1, true),
            (&[true, false], 1, true),
            (&[false, true], 1, false),
            (&[], 1, false),
            (&[true, true, true], 1, false),
            (&[true, true, false], 1, false),
            (&[true], 0, false),
            (&[true], 2, false),
        ] {
            assert_eq!(
                trilu.signature().fits(inputs, outputs),
                fits,
                "{inputs:?} {outputs}"
            );
        }
        let concat = Concat { axis: 0 };
        assert!(concat.signature().fits(&[true; 9], 1));
        assert!(!concat.signature().fits(&[true, false], 1));
    }
}
