use crate::Error;
use api::QualityGrant;
use std::collections::HashSet;

/// The window of a grant, in milliseconds.
const WINDOW_MS: std::ops::RangeInclusive<u64> = 10_000..=86_400_000;
/// Leading digits of a destination.
const DIGITS: std::ops::RangeInclusive<u8> = 1..=8;
/// Maximum number of entries of `digits` and of `attributes`.
const MAX_DIMENSIONS: usize = 4;
/// Maximum length of an attribute's name, in octets.
const MAX_NAME: usize = 64;

/// Checks a grant.
///
/// # Errors
/// The key, the mistake, and the valid values.
pub fn check_quality_grant(grant: &QualityGrant) -> Result<(), Error> {
    let fail = |what: String| Err(Error::QualityGrant(what));
    if !WINDOW_MS.contains(&grant.window_ms) {
        return fail(format!(
            "window-ms is {}; it is {} to {}",
            grant.window_ms,
            WINDOW_MS.start(),
            WINDOW_MS.end()
        ));
    }
    if grant.digits.len() > MAX_DIMENSIONS || grant.attributes.len() > MAX_DIMENSIONS {
        return fail(format!("digits and attributes have at most {MAX_DIMENSIONS} entries each"));
    }
    if let Some(digits) = grant.digits.iter().find(|digits| !DIGITS.contains(digits)) {
        return fail(format!(
            "digits has {digits}; it has numbers from {} to {}",
            DIGITS.start(),
            DIGITS.end()
        ));
    }
    let is_letter =
        |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet);
    let is_name = |name: &str| !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_letter);
    if let Some(name) = grant.attributes.iter().find(|name| !is_name(name)) {
        return fail(format!(
            "attributes has {name:?}; the name of an attribute has 1 to {MAX_NAME} of a-z, 0-9, dot, hyphen and underscore"
        ));
    }
    let (mut digits, mut names) = (HashSet::new(), HashSet::new());
    if !grant.digits.iter().all(|one| digits.insert(one))
        || !grant.attributes.iter().all(|one| names.insert(one))
    {
        return fail("an entry of digits or attributes occurs twice; keep one".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_grant_is_refused_with_the_reason() {
        let grant = |window_ms, digits: &[u8], attributes: &[&str]| QualityGrant {
            window_ms,
            digits: digits.to_vec(),
            attributes: attributes.iter().copied().map(str::to_owned).collect(),
        };
        assert!(check_quality_grant(&grant(60_000, &[1, 8], &["campaign", "a.b-c_9"])).is_ok());
        for (grant, expected) in [
            (grant(9_999, &[], &[]), "window-ms is 9999; it is 10000 to 86400000"),
            (grant(86_400_001, &[], &[]), "window-ms is 86400001"),
            (grant(60_000, &[0], &[]), "digits has 0"),
            (grant(60_000, &[9], &[]), "digits has 9"),
            (grant(60_000, &[1, 2, 3, 4, 5], &[]), "at most 4 entries"),
            (grant(60_000, &[2, 2], &[]), "twice"),
            (grant(60_000, &[], &["Campaign"]), "attributes has \"Campaign\""),
            (grant(60_000, &[], &[""]), "attributes has \"\""),
        ] {
            let error = check_quality_grant(&grant).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
