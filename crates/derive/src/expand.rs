//! The implementation that is written for a definition.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use crate::parse::{Body, Definition, Field, Variant};

/// `Reflect` for a definition, and what the tests of `kilim_core` make its values with.
pub fn reflect(definition: &Definition) -> TokenStream {
    let ident = definition.ident;
    let (visit, schema, build) = match &definition.body {
        Body::Struct(fields) => (
            visit_struct(&definition.name, fields),
            schema_of_struct(&definition.name, fields),
            build_value(quote!(Self), fields),
        ),
        Body::Enum(variants) => (
            visit_enum(variants),
            schema_of_enum(variants),
            build_enum(variants),
        ),
    };
    quote! {
        #[automatically_derived]
        impl ::kilim_core::Reflect for #ident {
            fn visit(&self, visitor: &mut dyn ::kilim_core::reflect::Visitor) {
                #visit
            }
        }

        ::kilim_core::in_tests! {
            #[automatically_derived]
            impl ::kilim_core::testing::Schematic for #ident {
                fn schema() -> ::kilim_core::testing::Schema {
                    use ::kilim_core::testing::{Record, Schema};
                    #schema
                }

                fn build(content: &::kilim_core::testing::Content) -> Self {
                    #build
                }
            }
        }
    }
}

fn show(field: &Field, value: impl ToTokens) -> TokenStream {
    let name = &field.name;
    match field.hidden {
        true => quote!(visitor.hidden(#name, #value);),
        false => quote!(visitor.field(#name, #value);),
    }
}

fn visit_struct(name: &str, fields: &[Field]) -> TokenStream {
    let shown = fields.iter().map(|field| {
        let member = &field.member;
        show(field, quote!(&self.#member))
    });
    quote! {
        visitor.name(#name);
        #(#shown)*
    }
}

fn visit_enum(variants: &[Variant]) -> TokenStream {
    let names = variants.iter().map(|variant| {
        let Variant { ident, name, .. } = variant;
        match variant.absent {
            true => quote! {
                Self::#ident { .. } => return visitor.leaf(::kilim_core::reflect::Leaf::Absent),
            },
            false => quote!(Self::#ident { .. } => #name,),
        }
    });
    let (plain, full): (Vec<_>, Vec<_>) = variants.iter().partition(|v| v.fields.is_empty());
    let shown = full.iter().map(|Variant { ident, fields, .. }| {
        let bound = (0..fields.len()).map(|i| format_ident!("field_{i}"));
        let patterns = fields.iter().zip(bound.clone()).map(|(field, bound)| {
            let member = &field.member;
            quote!(#member: #bound)
        });
        let shown = fields
            .iter()
            .zip(bound)
            .map(|(field, bound)| show(field, bound));
        quote!(Self::#ident { #(#patterns),* } => { #(#shown)* })
    });
    let rest = (!plain.is_empty()).then(|| quote!(_ => {}));
    let fields = (!full.is_empty()).then(|| quote!(match self { #(#shown)* #rest }));
    quote! {
        visitor.name(match self { #(#names)* });
        #fields
    }
}

fn schema_of_fields(name: &str, absent: bool, fields: &[Field]) -> TokenStream {
    let fields = fields.iter().map(
        |Field {
             name, ty, hidden, ..
         }| {
            quote!((#name, <#ty as ::kilim_core::testing::Schematic>::schema(), #hidden))
        },
    );
    quote!(Record { name: #name, absent: #absent, fields: ::std::vec![#(#fields),*] })
}

fn schema_of_struct(name: &str, fields: &[Field]) -> TokenStream {
    let record = schema_of_fields(name, false, fields);
    quote!(Schema::Struct(#record))
}

fn schema_of_enum(variants: &[Variant]) -> TokenStream {
    let records = variants
        .iter()
        .map(|v| schema_of_fields(&v.name, v.absent, &v.fields));
    quote!(Schema::Enum(::std::vec![#(#records),*]))
}

fn build_value(path: TokenStream, fields: &[Field]) -> TokenStream {
    let values = fields.iter().enumerate().map(|(i, field)| {
        let member = &field.member;
        quote!(#member: content.field(#i))
    });
    quote!(#path { #(#values),* })
}

fn build_enum(variants: &[Variant]) -> TokenStream {
    let arms = variants.iter().enumerate().map(|(i, variant)| {
        let ident = variant.ident;
        let value = build_value(quote!(Self::#ident), &variant.fields);
        quote!(#i => #value,)
    });
    quote! {
        match content.variant() {
            #(#arms)*
            other => panic!("there is no variant {other}"),
        }
    }
}
