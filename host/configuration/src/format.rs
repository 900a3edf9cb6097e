//! Formats of values: the parser of a key, and its valid values.

use crate::{Keys, Section, Shape};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The largest integer of TOML.
pub const MAX_INTEGER: u64 = i64::MAX as u64;

/// The parser of a key's value.
pub trait KeyFormat<T> {
    /// Reads a key. `None` if it is missing, or if its value is invalid, which is reported.
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T>;

    /// The values.
    fn shape(&self) -> Shape;
}

/// A type whose values have a single written form.
pub trait KeyValue: Clone {
    /// Reads a key. `None` if it is missing, or if its value is invalid, which is reported.
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self>;

    /// The values.
    fn shape() -> Shape;

    /// The value of a missing key.
    fn empty() -> Self;

    /// Takes the new value if it is `live`, that is, takes effect while the daemon runs. In a table each key decides.
    fn take_live(&mut self, new: &Self, live: bool) {
        if live {
            self.clone_from(new);
        }
    }

    /// Reads a key that is empty if it is missing.
    fn read_or_empty(section: &Section<'_>, key: &'static str) -> Self {
        Self::read(section, key).unwrap_or_else(Self::empty)
    }
}

/// A type whose values can be in a list.
pub trait KeyItem: Clone {
    /// Reads a list.
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>>;

    /// The values of a list.
    fn list_shape() -> Shape;
}

/// An enum whose values are keywords.
pub trait Word: Copy + 'static {
    /// Word, value and meaning.
    const WORDS: &'static [(&'static str, Self, &'static str)];
}

/// The format of a [`KeyValue`].
#[derive(Debug, Clone, Copy)]
pub struct Natural;

impl<T: KeyValue> KeyFormat<T> for Natural {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T> {
        T::read(section, key)
    }

    fn shape(&self) -> Shape {
        T::shape()
    }
}

/// An integer within limits.
#[derive(Debug, Clone, Copy)]
pub struct Integer(pub u64, pub u64);

impl<T: TryFrom<u64>> KeyFormat<T> for Integer {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T> {
        section.number(key, self.0..=self.1).and_then(|number| number.try_into().ok())
    }

    fn shape(&self) -> Shape {
        let mut schema = json!({ "type": "integer", "minimum": self.0 });
        if self.1 < MAX_INTEGER {
            schema["maximum"] = self.1.into();
        }
        Shape::Value("integer", schema)
    }
}

/// An ASCII text within limits of its length.
#[derive(Debug, Clone, Copy)]
pub struct Ascii(pub usize, pub usize);

impl<T: From<String>> KeyFormat<T> for Ascii {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T> {
        let text = section.text(key)?;
        if (self.0..=self.1).contains(&text.len()) && text.is_ascii() {
            return Some(text.into());
        }
        let limits = if self.0 == 0 { "at most".to_owned() } else { format!("{} to", self.0) };
        section.error(key, format!("must be {limits} {} ASCII characters", self.1));
        None
    }

    fn shape(&self) -> Shape {
        let mut schema = json!({ "type": "string", "maxLength": self.1 });
        if self.0 > 0 {
            schema["minLength"] = self.0.into();
        }
        Shape::Value("string", schema)
    }
}

/// A size in octets.
#[derive(Debug, Clone, Copy)]
pub struct Size;

impl<T: TryFrom<u64>> KeyFormat<T> for Size {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T> {
        section.size(key).and_then(|size| size.try_into().ok())
    }

    fn shape(&self) -> Shape {
        let pattern = "^\\s*[0-9]+\\s*(B|KiB|MiB|GiB|TiB)?\\s*$";
        Shape::Value("size", json!({ "type": "string", "pattern": pattern, "examples": ["64MiB"] }))
    }
}

/// A regular file that exists. A relative path is relative to the folder of the configuration file.
#[derive(Debug, Clone, Copy)]
pub struct ExistingFile;

impl KeyFormat<PathBuf> for ExistingFile {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<PathBuf> {
        let path = PathBuf::read(section, key)?;
        if let Err(error) = crate::files::open_regular(&path) {
            section.error(key, format!("{}: {error}", path.display()));
        }
        Some(path)
    }

    fn shape(&self) -> Shape {
        PathBuf::shape()
    }
}

/// A host and a port.
#[derive(Debug, Clone, Copy)]
pub struct HostPort;

impl KeyFormat<String> for HostPort {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<String> {
        let text = section.text(key)?;
        let parts = text.rsplit_once(':');
        if !parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
            section.invalid(key, format!("is {text:?}"), "host:port");
        }
        Some(text)
    }

    fn shape(&self) -> Shape {
        let examples = ["smsc.example.net:2775"];
        Shape::Value("host port", json!({ "type": "string", "pattern": "^.+:[0-9]+$", "examples": examples }))
    }
}

/// Keywords: word, value and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Words<T: 'static>(pub &'static [(&'static str, T, &'static str)]);

impl<T> Words<T> {
    fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, ..)| *word).collect()
    }

    fn words(&self) -> Shape {
        Shape::Words(self.0.iter().map(|(word, _, doc)| (*word, *doc)).collect())
    }
}

impl<T: Copy> KeyFormat<T> for Words<T> {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<T> {
        let text = section.text(key)?;
        let found = self.0.iter().find(|(word, ..)| *word == text).map(|(_, value, _)| *value);
        if found.is_none() {
            section.invalid(key, format!("is {text:?}"), format!("one of: {}", self.names().join(", ")));
        }
        found
    }

    fn shape(&self) -> Shape {
        self.words()
    }
}

impl<T: Copy> KeyFormat<Vec<T>> for Words<T> {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<Vec<T>> {
        let mut values = Vec::new();
        for text in section.texts(key)? {
            match self.0.iter().find(|(word, ..)| *word == text) {
                Some((_, value, _)) => values.push(*value),
                None => {
                    let allowed = format!("any of: {}", self.names().join(", "));
                    section.invalid(key, format!("has {text:?}"), allowed);
                }
            }
        }
        Some(values)
    }

    fn shape(&self) -> Shape {
        Shape::List(Box::new(self.words()))
    }
}

impl<T: Keys> KeyValue for T {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        section.has(key).then(|| T::read_table(&section.section(key)))
    }

    fn shape() -> Shape {
        Shape::Table(T::keys())
    }

    fn empty() -> Self {
        T::defaults()
    }

    fn read_or_empty(section: &Section<'_>, key: &'static str) -> Self {
        T::read_table(&section.section(key))
    }

    fn take_live(&mut self, new: &Self, live: bool) {
        Keys::take_live(self, new, live);
    }
}

impl<T: Keys> KeyItem for T {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.has(key).then(|| section.sections(key).iter().map(T::read_table).collect())
    }

    fn list_shape() -> Shape {
        Shape::Tables(T::keys())
    }
}

impl<T: KeyItem> KeyValue for Vec<T> {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        T::read_list(section, key)
    }

    fn shape() -> Shape {
        T::list_shape()
    }

    fn empty() -> Self {
        Vec::new()
    }
}

impl KeyItem for String {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.texts(key)
    }

    fn list_shape() -> Shape {
        Shape::List(Box::new(String::shape()))
    }
}

impl KeyItem for u8 {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        let numbers = section.numbers(key, 0..=u64::from(u8::MAX))?;
        Some(numbers.into_iter().filter_map(|number| u8::try_from(number).ok()).collect())
    }

    fn list_shape() -> Shape {
        let schema = json!({ "type": "integer", "minimum": 0, "maximum": u8::MAX });
        Shape::List(Box::new(Shape::Value("integer", schema)))
    }
}

impl KeyItem for Duration {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.durations(key)
    }

    fn list_shape() -> Shape {
        Shape::List(Box::new(Duration::shape()))
    }
}

/// Implements [`KeyValue`] for types whose values the section reads.
macro_rules! values {
    ($($kind:ty, $empty:expr, |$section:ident, $key:ident| $read:expr, $name:literal, $schema:tt;)*) => {
        $(impl KeyValue for $kind {
            fn read($section: &Section<'_>, $key: &'static str) -> Option<Self> {
                $read
            }

            fn shape() -> Shape {
                Shape::Value($name, json!($schema))
            }

            fn empty() -> Self {
                $empty
            }
        })*
    };
}

values! {
    String, String::new(), |section, key| section.text(key), "string", { "type": "string" };
    bytes::Bytes, bytes::Bytes::new(), |section, key| section.text(key).map(Into::into), "string", { "type": "string" };
    bool, false, |section, key| section.flag(key), "true or false", { "type": "boolean" };
    u64, 0, |section, key| section.number(key, 0..=MAX_INTEGER), "integer", { "type": "integer", "minimum": 0 };
    u32, 0, |section, key| Integer(0, u64::from(u32::MAX)).read(section, key), "integer", { "type": "integer", "minimum": 0, "maximum": (u32::MAX) };
    f64, 0.0, |section, key| section.rate(key), "number", { "type": "number", "exclusiveMinimum": 0 };
    Duration, Duration::ZERO, |section, key| section.duration(key), "duration",
        { "type": "string", "pattern": "^\\s*[0-9]+\\s*(ms|s|m|min|h|d)\\s*$", "examples": ["30s", "5m", "2d"] };
    PathBuf, PathBuf::new(), |section, key| section.text(key).map(|path| section.base().join(path)), "file path", { "type": "string" };
    SocketAddr, SocketAddr::from(([127, 0, 0, 1], 0)), |section, key| section.parsed(key, |text| text.parse().ok(), "address:port such as \"127.0.0.1:2775\""),
        "listen address", { "type": "string", "examples": ["127.0.0.1:2775", "[::1]:2775"] };
}

impl KeyItem for SocketAddr {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.items(key, |text| {
            text.parse().map_err(|_| format!("{text:?} must be address:port such as \"127.0.0.1:6379\""))
        })
    }

    fn list_shape() -> Shape {
        Shape::List(Box::new(Self::shape()))
    }
}

/// The values of a key that is a list of texts, or a keyword.
#[must_use]
pub fn list_or_word(word: &'static str, meaning: &'static str) -> Shape {
    let list = Shape::List(Box::new(Shape::Value("string", json!({ "type": "string" }))));
    Shape::Either(Box::new(list), Box::new(Shape::Words(vec![(word, meaning)])))
}
