use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

/// One name, or a list of names: `"acme"` or `["acme", "bolt"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names(pub Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text in quotes or a list of them")
            }

            fn visit_str<E: Error>(self, one: &str) -> Result<Names, E> {
                Ok(Names(vec![one.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut many: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = many.next_element()? {
                    names.push(name);
                }
                if names.is_empty() {
                    return Err(A::Error::custom("an empty list; it takes at least one text in quotes"));
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Document {
        name: Names,
    }

    #[test]
    fn one_or_many() {
        let read = |text| crate::read::<Document>(text).map(|document| document.name.0);
        assert_eq!(read("name = \"a\"").unwrap(), ["a"]);
        assert_eq!(read("name = [\"a\", \"b\"]").unwrap(), ["a", "b"]);
        assert!(read("name = []").unwrap_err().contains("at least one"));
        let error = read("\nname = 7").unwrap_err();
        assert!(error.contains("line 2") && error.contains("a list of them"), "{error}");
    }
}
