//! Compiles the Rust in the documents: each is the documentation of an item here.

macro_rules! compiled {
    ($($name:ident: $text:expr;)*) => {
        $(
            #[doc = $text]
            pub struct $name;
        )*
    };
}

compiled! {
    Readme: include_str!("../../README.md");
    Run: include_str!("../../docs/guide/run.md");
    Operators: include_str!("../../docs/guide/operators.md");
}
