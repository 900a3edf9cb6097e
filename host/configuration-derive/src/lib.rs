//! `#[derive(Keys)]` declares the keys of a table of the configuration, `#[derive(Word)]` the words of a keyword key.
//!
//! The crate `configuration` documents both.
#![forbid(unsafe_code)]

mod attributes;

use attributes::{Attributes, doc, kebab};
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, GenericArgument, PathArguments, Type};

/// The attributes of a key.
const KEY_ATTRIBUTES: &str = "added at_most check default default_as default_with example existing flatten format hint label \
     length live name named or_file range reference removed required restart secret size skip was words";

/// Declares the keys of a table; see the crate `configuration`.
#[proc_macro_derive(Keys, attributes(keys, key))]
pub fn derive_keys(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    table(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Declares the words of a keyword key; see the crate `configuration`.
#[proc_macro_derive(Word, attributes(word))]
pub fn derive_word(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    keyword(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn table(input: &DeriveInput) -> Result<Code, Error> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.span(), "Keys can be derived for structs only"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new(input.span(), "a table needs named fields"));
    };
    let own = Attributes::of(&input.attrs, "keys")?;
    own.only("check live restart")?;
    let effect = own.effect();
    let (mut reads, mut declarations, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for field in &fields.named {
        let (read, declaration) = key(field)?;
        reads.push(read);
        declarations.push(declaration);
        changes.push(change(field, &own)?);
    }
    let names = fields.named.iter().map(|field| &field.ident);
    let check = own.value("check").map(|check| quote!(#check(&mut table, section);));
    let table = &input.ident;
    Ok(quote! {
        impl ::configuration::Keys for #table {
            #[allow(unused_mut, clippy::redundant_closure_call)]
            fn read_keys(section: &::configuration::Section<'_>) -> Self {
                #(#reads)*
                let mut table = Self { #(#names),* };
                #check
                table
            }

            fn keys() -> ::std::vec::Vec<::configuration::Key> {
                let mut keys = ::std::vec::Vec::new();
                #(#declarations)*
                ::configuration::Key::inherit(keys, #effect)
            }

            fn take_live(&mut self, new: &Self, live: bool) {
                let _ = live;
                #(#changes)*
            }
        }
    })
}

/// The code that takes a new value of a key, if it takes effect while the daemon runs.
fn change(field: &Field, table: &Attributes) -> Result<Code, Error> {
    let attributes = Attributes::of(&field.attrs, "key")?;
    let (name, kind) = (&field.ident, &field.ty);
    let live = match attributes.is_live().or(table.is_live()) {
        Some(live) => quote!(#live),
        None => quote!(live),
    };
    Ok(if attributes.has("skip") {
        Code::new()
    } else if attributes.has("flatten") {
        quote!(<#kind as ::configuration::Keys>::take_live(&mut self.#name, &new.#name, #live);)
    } else if !attributes.is_natural() {
        quote!(if #live { self.#name.clone_from(&new.#name) })
    } else if let Some(kind) = argument_of(kind, "Option") {
        quote! {
            match (&mut self.#name, &new.#name) {
                (Some(old), Some(new)) => <#kind as ::configuration::KeyValue>::take_live(old, new, #live),
                _ if #live => self.#name.clone_from(&new.#name),
                _ => {}
            }
        }
    } else {
        quote!(<#kind as ::configuration::KeyValue>::take_live(&mut self.#name, &new.#name, #live);)
    })
}

/// The code that reads a key, and the code that declares it.
fn key(field: &Field) -> Result<(Code, Code), Error> {
    let attributes = Attributes::of(&field.attrs, "key")?;
    attributes.only(KEY_ATTRIBUTES)?;
    let (variable, whole) = (&field.ident, &field.ty);
    if attributes.has("skip") {
        let value =
            attributes.value("skip").map_or_else(|| quote!(Default::default()), |value| quote!(#value));
        return Ok((quote!(let #variable: #whole = #value;), Code::new()));
    }
    if attributes.has("flatten") {
        let read = quote!(let #variable = <#whole as ::configuration::Keys>::read_keys(section););
        let effect = attributes.effect();
        let keys = quote!(::configuration::Key::inherit(<#whole as ::configuration::Keys>::keys(), #effect));
        return Ok((read, quote!(keys.extend(#keys);)));
    }
    let name = match attributes.text("name")? {
        Some(name) => name,
        None => kebab(&variable.as_ref().map(ToString::to_string).unwrap_or_default()),
    };
    let optional = argument_of(whole, "Option");
    let kind = optional.unwrap_or(whole);
    let is_natural = attributes.is_natural();
    let (read_as, format) = format(&attributes)?;
    let json = attributes.json("default")?;
    let example = match (attributes.json("example")?, attributes.text("hint")?) {
        (Some(example), Some(hint)) => Some(format!("{example} ({hint})")),
        (example, _) => example,
    };
    let read = if attributes.has("or_file") {
        let file = format!("{name}-file");
        quote!(<#kind>::from(section.text_or_file(#name, #file)))
    } else if let Some(example) = &example {
        quote!(section.required_key::<#kind>(&#read_as, #name, #example))
    } else if let Some(default) = attributes.value("default_with") {
        quote!(section.key(&#read_as, #name).unwrap_or_else(|| #default))
    } else if let Some(json) = &json {
        quote!(section.key_or::<#kind>(&#read_as, #name, #json))
    } else if optional.is_some() {
        quote!(section.key::<#kind>(&#read_as, #name))
    } else if is_natural {
        quote!(<#kind as ::configuration::KeyValue>::read_or_empty(section, #name))
    } else {
        quote!(section.key::<#kind>(&#read_as, #name).unwrap_or_default())
    };
    let check = attributes.value("check").map(|check| {
        if attributes.has("or_file") {
            return quote!(if let Err(problem) = #check(&#variable) { section.error(#name, problem) });
        }
        let value = if optional.is_some() { quote!(#variable.as_ref()) } else { quote!(Some(&#variable)) };
        quote!(section.check(#name, #value, |value| #check(value));)
    });
    let doc = doc(&field.attrs);
    let set = |field: &str, value: Option<Code>| {
        let field = syn::Ident::new(field, variable.span());
        value.map(|value| quote!(key.#field = #value;))
    };
    let texts = ["label", "default_as", "added", "removed", "was", "reference"]
        .map(|one| attributes.text(one).map(|text| set(one, text.map(|text| quote!(Some(#text))))));
    let texts: Vec<_> = texts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let flags = ["named", "secret"].map(|one| set(one, attributes.has(one).then(|| quote!(true))));
    let default = set("default", json.map(|json| quote!(Some(#json))));
    let required = set("required", (example.is_some() || attributes.has("required")).then(|| quote!(true)));
    let effect = attributes.effect();
    let old_file = attributes.text("was")?.map(|old| format!("{old}-file"));
    let file_was = set("was", old_file.map(|old| quote!(Some(#old))));
    let file = attributes.has("or_file").then(|| {
        let (file, doc) = (format!("{name}-file"), format!("A file that contains it, instead of `{name}`."));
        quote! {
            let mut key = ::configuration::Key::file(#file, #doc);
            key.effect = #effect;
            #file_was
            keys.push(key);
        }
    });
    let shape = match (is_natural || attributes.has("or_file")) && attributes.has("secret") {
        true => quote!(::configuration::Shape::secret()),
        false => quote!(::configuration::KeyFormat::<#kind>::shape(&#format)),
    };
    let declaration = quote! {
        keys.push({
            let shape = #shape;
            let mut key = ::configuration::Key::new(#name, #doc, shape);
            #(#texts)* #(#flags)* #default #required
            key.effect = #effect;
            key
        });
        #file
    };
    Ok((quote!(let #variable: #whole = #read; #check), declaration))
}

/// The format with which a key is read, and the one that its declaration shows.
fn format(attributes: &Attributes) -> Result<(Code, Code), Error> {
    let same = |code: Code| Ok((code.clone(), code));
    if let Some(format) = attributes.value("format") {
        return same(quote!(#format));
    }
    if let Some(words) = attributes.value("words") {
        return same(quote!(::configuration::Words(#words)));
    }
    if let Some((first, last)) = attributes.range("range")? {
        let last = last.unwrap_or_else(|| syn::parse_quote!(::configuration::MAX_INTEGER));
        let shown = quote!(::configuration::Integer(#first, #last));
        return Ok(match attributes.value("at_most") {
            Some(most) => (quote!(::configuration::Integer(#first, #most as u64)), shown),
            None => (shown.clone(), shown),
        });
    }
    if let Some((first, last)) = attributes.range("length")? {
        return same(quote!(::configuration::Ascii(#first, #last)));
    }
    if attributes.has("size") {
        return same(quote!(::configuration::Size));
    }
    if attributes.has("existing") {
        return same(quote!(::configuration::ExistingFile));
    }
    same(quote!(::configuration::Natural))
}

/// The type argument of `name<argument>`.
fn argument_of<'a>(kind: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == name)?;
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            GenericArgument::Type(argument) => Some(argument),
            _ => None,
        },
        _ => None,
    }
}

fn keyword(input: &DeriveInput) -> Result<Code, Error> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.span(), "Word can be derived for enums only"));
    };
    let mut words = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new(variant.span(), "a word has no fields"));
        }
        let word = match variant.attrs.iter().find(|attribute| attribute.path().is_ident("word")) {
            Some(attribute) => attribute.parse_args::<syn::LitStr>()?.value(),
            None => kebab(&variant.ident.to_string()),
        };
        let (name, doc) = (&variant.ident, doc(&variant.attrs));
        words.push(quote!((#word, Self::#name, #doc)));
    }
    let kind = &input.ident;
    Ok(quote! {
        impl ::configuration::Word for #kind {
            const WORDS: &'static [(&'static str, Self, &'static str)] = &[#(#words),*];
        }

        impl ::configuration::KeyValue for #kind {
            fn read(section: &::configuration::Section<'_>, key: &'static str) -> Option<Self> {
                section.key(&::configuration::Words(<Self as ::configuration::Word>::WORDS), key)
            }

            fn shape() -> ::configuration::Shape {
                let words = ::configuration::Words(<Self as ::configuration::Word>::WORDS);
                ::configuration::KeyFormat::<Self>::shape(&words)
            }

            fn empty() -> Self {
                <Self as ::configuration::Word>::WORDS[0].1
            }
        }
    })
}

/// The words of a literal: `"30s"`, `1000`, `true`, or a list of them.
fn literal(value: &Expr) -> Result<Option<String>, Error> {
    Ok(match value {
        Expr::Lit(literal) => Some(match &literal.lit {
            syn::Lit::Str(text) => format!("{:?}", text.value()),
            syn::Lit::Int(number) => number.base10_digits().to_owned(),
            syn::Lit::Bool(flag) => flag.value.to_string(),
            other => return Err(Error::new(other.span(), "expected a text, an integer or a boolean")),
        }),
        Expr::Array(list) => {
            let items = list.elems.iter().map(literal).collect::<Result<Option<Vec<_>>, _>>()?;
            items.map(|items| format!("[{}]", items.join(", ")))
        }
        other => return Err(Error::new(other.span(), "expected a literal")),
    })
}
