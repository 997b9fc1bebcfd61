//! The derive of `kilim_core::Reflect`: an operator's attributes, in order, under frozen names.
//!
//! The code is the same for a struct and for each variant of an enum; [`parse`] reads the definition,
//! [`expand`] writes the implementation.

mod expand;
mod parse;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Implements `kilim_core::Reflect` for a struct or an enum without type parameters.
///
/// `visit` shows the name of the struct or of the variant, then every field in the order of the
/// definition. The name of a field is its Rust name, or `value` for the only field of a tuple. Fields,
/// variants and types take another one from `#[attribute(name = "...")]`, so that an item can be renamed in
/// Rust while backends in libraries see the old name. `#[attribute(hidden)]` on a field says that it
/// belongs to the operator's identity and has no form as an attribute, `#[attribute(absent)]` on a variant
/// without fields that it is shown like an optional value that is not there.
///
/// Tuples of several fields, equal names, and names that are not made of ASCII letters, digits and `_` are
/// compile errors, as is a digit at the beginning of a name.
#[proc_macro_derive(Reflect, attributes(attribute))]
pub fn derive_reflect(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match parse::Definition::new(&input) {
        Ok(definition) => expand::reflect(&definition).into(),
        Err(error) => error.to_compile_error().into(),
    }
}
