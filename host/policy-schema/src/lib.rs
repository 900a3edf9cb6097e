//! The JSON Schema of a plugin's policy document, in a custom section of its component.
//!
//! A component (component model, binary format: preamble, then sections of an id, a size and contents) carries the schema in
//! the custom section [`SECTION`] at its outermost level. Run times ignore the section, and no call of the plugin is needed to
//! read it. The schema is a JSON object in UTF-8.
#![forbid(unsafe_code)]

use serde_json::Value;

/// The name of the custom section.
pub const SECTION: &str = "switchyard:policy-schema";

/// Maximum size of a schema, in octets.
pub const MAX_SCHEMA_OCTETS: usize = 256 << 10;

/// The preamble of a component: magic, version 13, layer 1.
const PREAMBLE: [u8; 8] = [0, b'a', b's', b'm', 13, 0, 1, 0];

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicySchemaError {
    /// The octets are not a component, or a section is truncated.
    #[error("the file is not a complete WebAssembly component; build it again")]
    Component,
    /// The component has a schema already.
    #[error("the component has a policy schema already; build it without one, and then add the schema")]
    Second,
    /// The schema is too long.
    #[error("the policy schema has {0} octets; the maximum is {MAX_SCHEMA_OCTETS}")]
    Size(usize),
    /// The schema is not JSON.
    #[error("the policy schema is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The schema is JSON, but not an object.
    #[error(
        "the policy schema is not a JSON object; it must be a JSON Schema such as {{\"type\": \"object\", …}}"
    )]
    NoObject,
}

/// The component with this schema, which is written without white space.
///
/// # Errors
/// If the schema is not a JSON object or is too long, or if the octets are not a component or have a schema already.
pub fn embed(component: &[u8], schema: &str) -> Result<Vec<u8>, PolicySchemaError> {
    let schema = parse(schema.as_bytes())?.to_string();
    if section(component)?.is_some() {
        return Err(PolicySchemaError::Second);
    }
    let mut contents = Vec::with_capacity(1 + SECTION.len() + schema.len());
    write_size(&mut contents, SECTION.len());
    contents.extend_from_slice(SECTION.as_bytes());
    contents.extend_from_slice(schema.as_bytes());
    let mut embedded = component.to_vec();
    embedded.push(0);
    write_size(&mut embedded, contents.len());
    embedded.extend_from_slice(&contents);
    Ok(embedded)
}

/// The schema of a component; `None` if it has none.
///
/// # Errors
/// If the octets are not a component, or the section is not a JSON object of at most [`MAX_SCHEMA_OCTETS`].
pub fn read(component: &[u8]) -> Result<Option<Value>, PolicySchemaError> {
    section(component)?.map(parse).transpose()
}

fn parse(schema: &[u8]) -> Result<Value, PolicySchemaError> {
    if schema.len() > MAX_SCHEMA_OCTETS {
        return Err(PolicySchemaError::Size(schema.len()));
    }
    match serde_json::from_slice(schema)? {
        schema @ Value::Object(_) => Ok(schema),
        _ => Err(PolicySchemaError::NoObject),
    }
}

/// The contents of the first section named [`SECTION`].
fn section(component: &[u8]) -> Result<Option<&[u8]>, PolicySchemaError> {
    let mut rest = component.strip_prefix(&PREAMBLE).ok_or(PolicySchemaError::Component)?;
    while let Some((id, after)) = rest.split_first() {
        let (contents, next) = sized(after).ok_or(PolicySchemaError::Component)?;
        if *id == 0
            && let Some((name, schema)) = sized(contents)
            && name == SECTION.as_bytes()
        {
            return Ok(Some(schema));
        }
        rest = next;
    }
    Ok(None)
}

/// Splits octets that begin with a size into the part of that size, and the rest.
fn sized(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut size = 0_usize;
    // An unsigned LEB128 number of 32 bits has at most five octets.
    for (index, octet) in octets.iter().take(5).enumerate() {
        size |= usize::from(octet & 0x7f) << (7 * index);
        if octet & 0x80 == 0 {
            return octets.get(index + 1..)?.split_at_checked(size);
        }
    }
    None
}

fn write_size(out: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        out.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A component with an empty type section and a custom section of another name.
    fn component() -> Vec<u8> {
        [&PREAMBLE[..], &[7, 1, 0], &[0, 5, 4, b'n', b'a', b'm', b'e']].concat()
    }

    #[test]
    fn an_embedded_schema_is_read_again() {
        assert_eq!(read(&component()).unwrap(), None);
        let schema = serde_json::json!({ "type": "object", "description": "x".repeat(300) });
        let embedded = embed(&component(), &schema.to_string()).unwrap();
        assert!(embedded.starts_with(&component()));
        assert_eq!(read(&embedded).unwrap(), Some(schema));
        assert!(matches!(embed(&embedded, "{}"), Err(PolicySchemaError::Second)));
    }

    #[test]
    fn only_a_json_object_is_a_schema() {
        assert!(matches!(embed(&component(), "{"), Err(PolicySchemaError::Json(_))));
        assert!(matches!(embed(&component(), "[]"), Err(PolicySchemaError::NoObject)));
        let long = format!("{{}}{}", " ".repeat(MAX_SCHEMA_OCTETS));
        assert!(matches!(embed(&component(), &long), Err(PolicySchemaError::Size(_))));
    }

    #[test]
    fn a_core_module_and_a_cut_component_are_refused() {
        assert!(matches!(read(b"\0asm\x01\0\0\0"), Err(PolicySchemaError::Component)));
        let embedded = embed(&component(), "{}").unwrap();
        for end in component().len() + 1..embedded.len() {
            assert!(matches!(read(&embedded[..end]), Err(PolicySchemaError::Component)), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&octets);
            let _ = read(&[&PREAMBLE[..], &octets].concat());
        }
    }
}
