use policy_values::digits_of;
use serde::Deserialize;

/// Normalization of numbers for look-ups: to international form, without a plus sign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Numbers {
    /// Prefixes to remove from internationally dialled numbers: "00", "011". The longest match is removed.
    #[serde(default)]
    strip: Vec<String>,
    /// Prefix to remove from national numbers before the country code is added: "0".
    national: Option<String>,
    /// The country code to add: "49".
    country_code: Option<String>,
}

impl Numbers {
    /// Checks the section.
    ///
    /// # Errors
    /// The mistake in the section, and the correction.
    pub fn check(&self) -> Result<(), String> {
        let digits = |what: &str, text: &str, most: usize| match text.len() {
            length if (1..=most).contains(&length) && text.bytes().all(|octet| octet.is_ascii_digit()) => {
                Ok(())
            }
            _ => Err(format!(
                "[numbers] has {what} {text:?}: it takes 1 to {most} digits, without a plus sign"
            )),
        };
        for prefix in &self.strip {
            digits("`strip` with", prefix, 8)?;
        }
        match (&self.national, &self.country_code) {
            (Some(national), Some(code)) => {
                digits("`national` =", national, 8)?;
                digits("`country-code` =", code, 4)
            }
            (None, None) => Ok(()),
            _ => Err("[numbers] needs `national` and `country-code` together: a national number, which begins with \
                      `national`, gets the country code instead of it"
                .to_owned()),
        }
    }

    /// The normalized number; `None` if it is not a number of 1 to 15 digits.
    #[must_use]
    pub fn normalize(&self, msisdn: &str) -> Option<String> {
        let digits = digits_of(msisdn)?;
        let international = (!msisdn.starts_with('+'))
            .then(|| {
                self.strip
                    .iter()
                    .filter_map(|prefix| digits.strip_prefix(prefix.as_str()))
                    .min_by_key(|rest| rest.len())
            })
            .flatten();
        let normalized = match (international, &self.national, &self.country_code) {
            (Some(rest), _, _) => rest.to_owned(),
            (None, Some(national), Some(code)) if !msisdn.starts_with('+') => {
                match digits.strip_prefix(national.as_str()) {
                    Some(rest) if !rest.is_empty() => format!("{code}{rest}"),
                    _ => digits.to_owned(),
                }
            }
            _ => digits.to_owned(),
        };
        (1..=15).contains(&normalized.len()).then_some(normalized)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn german() -> Numbers {
        Numbers {
            strip: vec!["00".to_owned(), "0011".to_owned()],
            national: Some("0".to_owned()),
            country_code: Some("49".to_owned()),
        }
    }

    #[test]
    fn numbers_are_normalized() {
        for (written, normalized) in [
            ("49151234567", Some("49151234567")),
            ("+49151234567", Some("49151234567")),
            ("0049151234567", Some("49151234567")),
            ("001149151234567", Some("49151234567")),
            ("0151234567", Some("49151234567")),
            // After a plus sign, no dialling prefix is removed.
            ("+0151", Some("0151")),
            ("0", Some("0")),
            ("00", None),
            ("", None),
            ("ACME", None),
            ("1234567890123456", None),
        ] {
            assert_eq!(german().normalize(written).as_deref(), normalized, "{written:?}");
        }
        assert_eq!(Numbers::default().normalize("0151").as_deref(), Some("0151"));
    }

    #[test]
    fn an_incomplete_rule_is_refused() {
        german().check().unwrap();
        Numbers::default().check().unwrap();
        let half = Numbers { country_code: None, ..german() };
        assert!(half.check().unwrap_err().contains("together"));
        let plus = Numbers { country_code: Some("+49".to_owned()), ..german() };
        assert!(plus.check().unwrap_err().contains("without a plus"));
        let empty = Numbers { strip: vec![String::new()], ..german() };
        assert!(empty.check().is_err());
    }

    proptest! {
        #[test]
        fn a_normalized_number_is_digits(written in "[+0-9a]{0,24}") {
            if let Some(normalized) = german().normalize(&written) {
                prop_assert!((1..=15).contains(&normalized.len()));
                prop_assert!(normalized.bytes().all(|octet| octet.is_ascii_digit()));
            }
        }
    }
}
