//! The attributes `#[keys(…)]` and `#[key(…)]`, and doc comments.

use proc_macro2::{Span, TokenStream as Code};
use quote::quote;
use syn::{Attribute, Error, Expr, Lit, Meta, RangeLimits};

/// Attributes of the form `name` and `name = value`.
pub(crate) struct Attributes(Vec<(String, Span, Option<Expr>)>);

impl Attributes {
    pub(crate) fn of(attributes: &[Attribute], name: &str) -> Result<Self, Error> {
        let mut found = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?.to_string();
                let value = if meta.input.peek(syn::Token![=]) { Some(meta.value()?.parse()?) } else { None };
                found.push((
                    name,
                    meta.path.get_ident().map_or_else(Span::call_site, syn::Ident::span),
                    value,
                ));
                Ok(())
            })?;
        }
        Ok(Self(found))
    }

    /// Refuses other attributes.
    pub(crate) fn only(&self, known: &str) -> Result<(), Error> {
        match self.0.iter().find(|(name, ..)| !known.split_whitespace().any(|one| one == name)) {
            Some((name, at, _)) => Err(Error::new(*at, format!("{name} is unknown; known are: {known}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, ..)| known == name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Expr> {
        self.0.iter().find(|(known, ..)| known == name)?.2.as_ref()
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. })) => Ok(Some(text.value())),
            Some(other) => Err(Error::new_spanned(other, "expected a text")),
        }
    }

    /// A literal as JSON.
    pub(crate) fn json(&self, name: &str) -> Result<Option<String>, Error> {
        self.value(name).map_or(Ok(None), crate::literal)
    }

    /// A range `first..=last`, `..=last` or `first..`.
    pub(crate) fn range(&self, name: &str) -> Result<Option<(Expr, Option<Expr>)>, Error> {
        match self.value(name) {
            None => Ok(None),
            Some(Expr::Range(range))
                if range.end.is_none() || matches!(range.limits, RangeLimits::Closed(_)) =>
            {
                let first = range.start.as_deref().cloned().unwrap_or_else(|| syn::parse_quote!(0));
                Ok(Some((first, range.end.as_deref().cloned())))
            }
            Some(other) => Err(Error::new_spanned(other, "expected a range such as 1..=10")),
        }
    }

    /// Whether the values of the key are those of its type.
    pub(crate) fn is_natural(&self) -> bool {
        let formats = ["format", "words", "range", "length", "size", "existing", "or_file"];
        !formats.iter().any(|one| self.has(one))
    }

    /// Whether a change takes effect while the daemon runs; `None`: as for the table around the key.
    pub(crate) fn is_live(&self) -> Option<bool> {
        if self.has("live") { Some(true) } else { self.has("restart").then_some(false) }
    }

    /// The effect of a change of the key.
    pub(crate) fn effect(&self) -> Code {
        for (name, constructor) in [("live", quote!(Live)), ("restart", quote!(Restart))] {
            if let Some(text) = self.value(name) {
                return quote!(Some(::configuration::Effect::#constructor(#text)));
            }
        }
        quote!(None)
    }
}

/// The doc comment as one paragraph.
pub(crate) fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `longestIdle`, `LongestIdle` and `longest_idle` as `longest-idle`.
pub(crate) fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for c in name.trim_start_matches("r#").chars() {
        if c == '_' || (c.is_uppercase() && !kebab.is_empty()) {
            kebab.push('-');
        }
        kebab.extend(c.to_lowercase().filter(|c| *c != '_'));
    }
    kebab
}
