//! ENUM: domain names of numbers, and the `tel:` URIs in their records (RFC 6116, RFC 4769, RFC 4694).

/// A naming authority pointer, as the host delivers it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Naptr {
    /// Its flags: `u` for a URI.
    pub flags: String,
    /// Its services, such as `E2U+pstn:tel`.
    pub services: String,
    /// Its substitution expression, such as `!^.*$!tel:+49151;npdi!`.
    pub regexp: String,
}

/// The facts about a number in a `tel:` URI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TelUri {
    /// A database of ported numbers was queried (`npdi`).
    pub is_dipped: bool,
    /// The routing number (`rn`), without a plus sign, hyphens and dots. Only ported numbers have one.
    pub rn: Option<String>,
    /// The name of the service provider (`spn`).
    pub spn: Option<String>,
}

/// The domain name of an international number: its digits from the last to the first, and the apex (RFC 6116 §3.2).
pub(crate) fn domain(number: &str, apex: &str) -> String {
    let mut name = String::with_capacity(2 * number.len() + apex.len());
    for digit in number.chars().rev() {
        name.push(digit);
        name.push('.');
    }
    name + apex
}

/// The URI of the first record, in their order, that describes a number of the telephone network.
pub(crate) fn tel_uri(number: &str, records: &[Naptr]) -> Option<TelUri> {
    records
        .iter()
        .filter(|record| is_pstn(record))
        .find_map(|record| parse(&substitute(number, &record.regexp)?))
}

/// Whether a record has the flag of a URI and a service `E2U+pstn` (RFC 4769 §5.1).
fn is_pstn(record: &Naptr) -> bool {
    let services = record.services.to_ascii_lowercase();
    let mut parts = services.split('+');
    record.flags.eq_ignore_ascii_case("u")
        && parts.next() == Some("e2u")
        && parts.any(|service| service.split(':').next() == Some("pstn"))
}

/// Applies a substitution expression to the number with its plus sign. Only expressions that match every number are supported,
/// as ENUM uses them: `^.*$`, `^(.*)$` and `^\+(.*)$`.
fn substitute(number: &str, expression: &str) -> Option<String> {
    let delimiter = expression.chars().next()?;
    let mut parts = expression.get(delimiter.len_utf8()..)?.split(delimiter);
    let (pattern, replacement) = (parts.next()?, parts.next()?);
    let group = match pattern {
        "^.*$" | ".*" => None,
        "^(.*)$" => Some(format!("+{number}")),
        r"^\+(.*)$" => Some(number.to_owned()),
        _ => return None,
    };
    match group {
        Some(group) => Some(replacement.replace(r"\1", &group)),
        None => (!replacement.contains('\\')).then(|| replacement.to_owned()),
    }
}

/// Parses a `tel:` URI (RFC 3966).
fn parse(uri: &str) -> Option<TelUri> {
    let scheme = uri.get(..4)?;
    if !scheme.eq_ignore_ascii_case("tel:") {
        return None;
    }
    let mut parameters = uri.get(4..)?.split(';');
    // The number itself; it may be another form of the queried number.
    parameters.next().filter(|number| !number.is_empty())?;
    let mut found = TelUri::default();
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match &*name.to_ascii_lowercase() {
            "npdi" => found.is_dipped = true,
            "rn" => {
                let visual = |c: &char| !matches!(c, '+' | '-' | '.' | '(' | ')');
                let digits: String = value.chars().filter(visual).map(|c| c.to_ascii_uppercase()).collect();
                let is_number = digits.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '*' | '#'));
                if !is_number {
                    return None;
                }
                found.rn = (!digits.is_empty()).then_some(digits);
            }
            "spn" => found.spn = (!value.is_empty()).then(|| percent_decoded(value)),
            _ => {}
        }
    }
    Some(found)
}

fn percent_decoded(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let escaped = match (first, others) {
            (b'%', [high, low, ..]) => {
                let digit = |octet: u8| char::from(octet).to_digit(16);
                digit(*high).zip(digit(*low)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            }
            _ => None,
        };
        octets.push(escaped.unwrap_or(*first));
        rest = others.get(if escaped.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(services: &str, regexp: &str) -> Naptr {
        Naptr { flags: "u".to_owned(), services: services.to_owned(), regexp: regexp.to_owned() }
    }

    fn uri(regexp: &str) -> Option<TelUri> {
        tel_uri("4915112345", &[record("E2U+pstn:tel", regexp)])
    }

    #[test]
    fn the_domain_has_the_digits_backwards() {
        assert_eq!(domain("4912", "e164.arpa"), "2.1.9.4.e164.arpa");
    }

    #[test]
    fn routing_number_and_provider_are_read() {
        let ported = TelUri {
            is_dipped: true,
            rn: Some("49D0034915112345".to_owned()),
            spn: Some("O2 Germany".to_owned()),
        };
        assert_eq!(uri("!^.*$!tel:+4915112345;npdi;rn=+49-d003-4915112345;spn=O2%20Germany!"), Some(ported));
        let dipped = TelUri { is_dipped: true, ..TelUri::default() };
        assert_eq!(uri(r"!^(.*)$!tel:\1;npdi!"), Some(dipped.clone()));
        assert_eq!(uri(r"/^\+(.*)$/TEL:+\1;NPDI/"), Some(dipped));
        assert_eq!(uri("!^.*$!tel:+4915112345!"), Some(TelUri::default()));
    }

    #[test]
    fn records_that_say_nothing_of_a_telephone_number_are_left_out() {
        for regexp in [
            "",
            "!",
            "!^.*$!",
            "!^.*$!sip:a@example.org!",
            "!^.*$!tel:!",
            "!^49.*$!tel:+49;npdi!",
            r"!^.*$!tel:\1!",
            "!^.*$!tel:+49;rn=x!",
        ] {
            assert_eq!(uri(regexp), None, "{regexp}");
        }
        let good = "!^.*$!tel:+49;npdi!";
        for services in ["E2U+sip", "pstn", "E2U", "E2M+pstn", "E2U+pstnx"] {
            assert_eq!(tel_uri("49", &[record(services, good)]), None, "{services}");
        }
        let other = Naptr { flags: "s".to_owned(), ..record("E2U+pstn:tel", good) };
        assert_eq!(tel_uri("49", &[other]), None);
        let both = [record("E2U+sip", "!^.*$!sip:a@b!"), record("E2U+sip+pstn:tel", good)];
        assert!(tel_uri("49", &both).is_some_and(|found| found.is_dipped));
    }

    proptest! {
        #[test]
        fn no_record_panics(services in "\\PC{0,20}", regexp in "\\PC{0,40}|!\\^\\.\\*\\$!tel:\\PC{0,30}!") {
            let _ = tel_uri("49", &[record(&services, &regexp)]);
        }
    }
}
