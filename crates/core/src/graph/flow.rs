//! How data goes through an operator: what a rewrite may rely on that knows nothing else of it.

/// Where the elements of an operator's outputs come from.
///
/// It also says what could be computed in place: an output may take the bytes of the first input where elements are
/// [`Mapped`](Elements::Mapped) or [`MappedAlongAxis`](Elements::MappedAlongAxis), and of any input where they are
/// [`Joined`](Elements::Joined), if shape and element type are those of the output. Whether it may is for a kernel to say,
/// which alone knows whether it reads elements again after it wrote others, and the planner gives no output the bytes of an
/// input that it reads: host kernels are handed slices that must not overlap, and WebGPU binds no buffer for reading and for
/// writing at once. What needs no kernel at all is [`super::Operator::is_view`] and
/// [`super::Operator::is_view_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Each is computed from the element at its place in the first input, and from all that the other inputs hold.
    Mapped,
    /// Each is computed from the element at its place in the first input and from the other inputs. These lie
    /// along an axis of the first, unless they have one element each.
    MappedAlongAxis,
    /// Each is computed from the elements at its place in all inputs, which are broadcast.
    Joined {
        /// The first two inputs can change places, and every bit of the result stays.
        commutes: bool,
    },
    /// Each is one of the elements of the inputs, whichever element type they have. The first input is the data.
    Moved,
    /// Each is one of the elements of the inputs, which are data all of them, whichever element type they have.
    MovedFromAll,
    /// The elements follow from the dimensions of the first input, and [`super::Operator::elements`] tells them.
    Measured,
    /// Anything else.
    Computed,
}

/// What becomes of the dimensions of an operator's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axes {
    /// Dimension `i` of every output is dimension `i` of the inputs, which may be shorter or longer; attributes or constants
    /// of the operator name its axes, so that they can be renumbered.
    Kept,
    /// The elements of the first input are the output's, in one order; the dimensions are others.
    Regrouped,
    /// Some dimensions of the first input go, and the others stay as they are.
    Removed,
    /// Anything else.
    Other,
}

/// Which floating-point type an operator computes in, and so what happens where its inputs are given in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// The operator computes in the type of its inputs. In another type the outputs have that type and are the same numbers but for rounding; shape
    /// inference says of a node whether its outputs follow.
    OfInputs,
    /// An attribute names the type; [`super::Operator::in_precision`] gives the operator that names another.
    Named,
    /// The operator rounds to a type, which is its purpose: the rounding has to stay.
    Rounding,
    /// The operator looks at the bits of its elements, which are others in another type.
    Bits,
}

/// How data goes through an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub elements: Elements,
    pub axes: Axes,
    pub precision: Precision,
}

impl Flow {
    /// Nothing is known.
    pub const OPAQUE: Flow = Flow::computed(Axes::Other);

    /// Elements of the first input become elements of the output, one by one.
    pub const MAPPED: Flow = Flow {
        elements: Elements::Mapped,
        axes: Axes::Kept,
        precision: Precision::OfInputs,
    };

    /// [`Flow::MAPPED`] with parameters along an axis.
    pub const MAPPED_ALONG_AXIS: Flow = Flow {
        elements: Elements::MappedAlongAxis,
        axes: Axes::Kept,
        precision: Precision::OfInputs,
    };

    /// Broadcast inputs are combined element by element.
    pub const fn joined(commutes: bool) -> Flow {
        Flow {
            elements: Elements::Joined { commutes },
            axes: Axes::Kept,
            precision: Precision::OfInputs,
        }
    }

    /// Elements only change their places.
    pub const fn moved(axes: Axes) -> Flow {
        Flow {
            elements: Elements::Moved,
            axes,
            precision: Precision::OfInputs,
        }
    }

    /// Elements of all inputs only change their places.
    pub const fn moved_from_all(axes: Axes) -> Flow {
        Flow {
            elements: Elements::MovedFromAll,
            axes,
            precision: Precision::OfInputs,
        }
    }

    /// Dimensions of the first input become elements.
    pub const MEASURED: Flow = Flow {
        elements: Elements::Measured,
        axes: Axes::Other,
        precision: Precision::OfInputs,
    };

    /// Elements are computed from several others.
    pub const fn computed(axes: Axes) -> Flow {
        Flow {
            elements: Elements::Computed,
            axes,
            precision: Precision::OfInputs,
        }
    }

    /// Replaces the precision, for operators that do not compute in that of their inputs.
    pub const fn with_precision(self, precision: Precision) -> Flow {
        Flow { precision, ..self }
    }

    /// Whether elements only change their places.
    pub fn moves(self) -> bool {
        matches!(self.elements, Elements::Moved | Elements::MovedFromAll)
    }

    /// Whether all inputs are data whose dimensions correspond, and not the first one alone.
    pub fn takes_several(self) -> bool {
        self.joins() || self.elements == Elements::MovedFromAll
    }

    /// Whether the first two inputs can change places.
    pub fn commutes(self) -> bool {
        self.elements == Elements::Joined { commutes: true }
    }

    /// Whether the dimensions of the first input tell the outputs.
    pub fn measures(self) -> bool {
        self.elements == Elements::Measured
    }

    /// Whether broadcast inputs are combined element by element.
    pub fn joins(self) -> bool {
        matches!(self.elements, Elements::Joined { .. })
    }
}
