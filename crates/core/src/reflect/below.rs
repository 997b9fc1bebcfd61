//! The contents of types that tensors are made of, and that stand below [`Reflect`] for that reason.

use super::{Reflect, Visitor};
use crate::dtype::DType;
use crate::narrow::{Narrowing, Overflow, PowerRounding};

/// An enum without fields, by its variants: their names here are frozen.
macro_rules! variants {
    ($type:ident { $($variant:ident),* $(,)? }) => {
        impl Reflect for $type {
            fn visit(&self, visitor: &mut dyn Visitor) {
                visitor.name(match self {
                    $(Self::$variant => stringify!($variant),)*
                });
            }
        }

        crate::in_tests! {
            impl ::kilim_core::testing::Schematic for $type {
                fn schema() -> ::kilim_core::testing::Schema {
                    let record = |name| ::kilim_core::testing::Record {
                        name,
                        absent: false,
                        fields: Vec::new(),
                    };
                    let names = [$(stringify!($variant)),*];
                    ::kilim_core::testing::Schema::Enum(names.into_iter().map(record).collect())
                }

                fn build(content: &::kilim_core::testing::Content) -> Self {
                    [$(Self::$variant),*][content.variant()]
                }
            }
        }
    };
}

variants!(DType {
    F32,
    F64,
    F16,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    I4,
    U4,
    I2,
    U2,
    C64,
    C128,
    String,
});
variants!(Overflow { Saturate, Special });
variants!(PowerRounding { Up, Down, Nearest });

impl Reflect for Narrowing {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.name("Narrowing");
        visitor.field("overflow", &self.overflow);
        visitor.field("rounding", &self.rounding);
    }
}

crate::in_tests! {
    impl ::kilim_core::testing::Schematic for Narrowing {
        fn schema() -> ::kilim_core::testing::Schema {
            ::kilim_core::testing::Schema::Struct(::kilim_core::testing::Record {
                name: "Narrowing",
                absent: false,
                fields: vec![
                    ("overflow", Overflow::schema(), false),
                    ("rounding", PowerRounding::schema(), false),
                ],
            })
        }

        fn build(content: &::kilim_core::testing::Content) -> Self {
            Narrowing {
                overflow: content.field(0),
                rounding: content.field(1),
            }
        }
    }
}
