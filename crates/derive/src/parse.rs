//! Definitions of structs and enums, with the frozen names of what is in them.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitStr, Member, Result, Type};

/// A struct or an enum.
pub struct Definition<'a> {
    pub ident: &'a Ident,
    pub name: String,
    pub body: Body<'a>,
}

/// What a definition consists of.
pub enum Body<'a> {
    Struct(Vec<Field<'a>>),
    Enum(Vec<Variant<'a>>),
}

/// A variant of an enum.
pub struct Variant<'a> {
    pub ident: &'a Ident,
    pub name: String,
    /// Shown like `Option::None`.
    pub absent: bool,
    pub fields: Vec<Field<'a>>,
}

/// A field of a struct or of a variant.
pub struct Field<'a> {
    /// What the field is called in Rust, `0` in a tuple.
    pub member: Member,
    pub name: String,
    pub hidden: bool,
    pub ty: &'a Type,
}

impl<'a> Definition<'a> {
    /// Reads a definition.
    ///
    /// # Errors
    /// Unions, type parameters, tuples of several fields, names that are taken twice or that are no
    /// identifiers, and unknown options of `#[attribute(...)]`.
    pub fn new(input: &'a DeriveInput) -> Result<Definition<'a>> {
        if let Some(parameter) = input.generics.params.first() {
            return Err(Error::new_spanned(
                parameter,
                "a type with attributes has no parameters",
            ));
        }
        let body = match &input.data {
            Data::Struct(data) => Body::Struct(fields(&data.fields)?),
            Data::Enum(data) => {
                let variants = data.variants.iter().map(Variant::new);
                let variants = variants.collect::<Result<Vec<_>>>()?;
                distinct(variants.iter().map(|v| (&v.name, v.ident.span())))?;
                Body::Enum(variants)
            }
            Data::Union(_) => {
                return Err(Error::new_spanned(
                    &input.ident,
                    "a union has no attributes",
                ));
            }
        };
        let options = Options::parse(&input.attrs)?;
        options.refuse(&[HIDDEN, ABSENT])?;
        Ok(Definition {
            ident: &input.ident,
            name: options.name_or(&input.ident),
            body,
        })
    }
}

impl<'a> Variant<'a> {
    fn new(variant: &'a syn::Variant) -> Result<Variant<'a>> {
        let options = Options::parse(&variant.attrs)?;
        options.refuse(&[HIDDEN])?;
        if !variant.fields.is_empty() {
            options.refuse(&[ABSENT])?;
        }
        Ok(Variant {
            ident: &variant.ident,
            name: options.name_or(&variant.ident),
            absent: options.has(ABSENT),
            fields: fields(&variant.fields)?,
        })
    }
}

fn fields(fields: &Fields) -> Result<Vec<Field<'_>>> {
    if let (Fields::Unnamed(_), 2..) = (fields, fields.len()) {
        return Err(Error::new_spanned(
            fields,
            "fields of a tuple have no names: use a struct",
        ));
    }
    let members = fields.members().zip(fields);
    let list = members.map(|(member, field)| {
        let options = Options::parse(&field.attrs)?;
        options.refuse(&[ABSENT])?;
        let name = match &member {
            Member::Named(ident) => options.name_or(ident),
            Member::Unnamed(_) => options.name.clone().unwrap_or("value".to_string()),
        };
        Ok(Field {
            member,
            name,
            hidden: options.has(HIDDEN),
            ty: &field.ty,
        })
    });
    let list = list.collect::<Result<Vec<_>>>()?;
    distinct(list.iter().map(|f| (&f.name, span(&f.member))))?;
    Ok(list)
}

fn span(member: &Member) -> Span {
    match member {
        Member::Named(ident) => ident.span(),
        Member::Unnamed(index) => index.span,
    }
}

/// An identifier as text, `type` for `r#type`.
fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.trim_start_matches("r#").to_string()
}

fn distinct<'a>(names: impl Iterator<Item = (&'a String, Span)>) -> Result<()> {
    let mut seen = Vec::new();
    for (name, span) in names {
        if seen.contains(&name) {
            return Err(Error::new(span, format!("the name `{name}` is taken")));
        }
        seen.push(name);
    }
    Ok(())
}

const HIDDEN: &str = "hidden";
const ABSENT: &str = "absent";

/// What `#[attribute(...)]` says.
#[derive(Default)]
struct Options {
    name: Option<String>,
    /// [`HIDDEN`] and [`ABSENT`], where they are given.
    flags: Vec<(&'static str, Span)>,
}

impl Options {
    fn parse(attributes: &[Attribute]) -> Result<Options> {
        let mut options = Options::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("attribute")) {
            attribute.parse_nested_meta(|meta| {
                let flag = [HIDDEN, ABSENT].into_iter().find(|f| meta.path.is_ident(f));
                if let Some(flag) = flag {
                    options.flags.push((flag, meta.path.span()));
                    return Ok(());
                }
                if !meta.path.is_ident("name") {
                    return Err(meta.error("`name = \"...\"`, `hidden` or `absent`"));
                }
                let text: LitStr = meta.value()?.parse()?;
                options.name = Some(checked(&text)?);
                Ok(())
            })?;
        }
        Ok(options)
    }

    fn name_or(&self, ident: &Ident) -> String {
        self.name.clone().unwrap_or_else(|| plain(ident))
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(f, _)| *f == flag)
    }

    /// An error where one of `flags` is given.
    fn refuse(&self, flags: &[&str]) -> Result<()> {
        match self.flags.iter().find(|(f, _)| flags.contains(f)) {
            Some((flag, span)) => Err(Error::new(*span, format!("nothing here is `{flag}`"))),
            None => Ok(()),
        }
    }
}

/// A name that can be part of `field.name`.
fn checked(text: &LitStr) -> Result<String> {
    let name = text.value();
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // Items of a list are numbered in the same place.
    match letters && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() {
        true => Ok(name),
        false => Err(Error::new(
            text.span(),
            "a name is made of ASCII letters, digits and `_`, no digit first",
        )),
    }
}
