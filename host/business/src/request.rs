//! Request types, common to JSON and XML-RPC.

use serde::Deserialize;

/// One value or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// A text for one or several destinations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitItem {
    /// The source address; defaults to the account's.
    pub(crate) from: Option<String>,
    /// Destinations.
    pub(crate) to: OneOrMany,
    /// The text; either this or `octets`.
    pub(crate) text: Option<String>,
    /// The octets, in hexadecimal.
    pub(crate) octets: Option<String>,
    /// The coding of the text, or of the octets.
    pub(crate) coding: Option<String>,
    /// A user data header in hexadecimal, including its length octet.
    pub(crate) udh: Option<String>,
    /// 0 to 3.
    pub(crate) priority: Option<u8>,
    /// Seconds.
    pub(crate) validity: Option<u64>,
    /// The delivery time, RFC 3339.
    pub(crate) schedule: Option<String>,
    /// The DLRs requested: none, final, failure or all.
    pub(crate) dlr: Option<String>,
    /// At most five octets.
    pub(crate) service_type: Option<String>,
    /// The client's own reference, returned in DLRs.
    pub(crate) reference: Option<String>,
    /// SGIP-specific fields.
    pub(crate) sgip: Option<SgipFieldsInput>,
}

/// Fields of an SGIP Submit (SGIP 1.2 §4.2.3.3).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SgipFieldsInput {
    pub(crate) charge_number: Option<String>,
    pub(crate) corp_id: Option<String>,
    pub(crate) service_type: Option<String>,
    pub(crate) fee_type: Option<u8>,
    pub(crate) fee_value: Option<String>,
    pub(crate) given_value: Option<String>,
    pub(crate) agent_flag: Option<u8>,
    pub(crate) mo_related: Option<u8>,
    pub(crate) priority: Option<u8>,
    pub(crate) report_flag: Option<u8>,
    pub(crate) link_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_errors_do_not_name_internal_types() {
        let error = serde_json::from_str::<SubmitItem>(r#"{"to": 5, "text": "a"}"#).unwrap_err().to_string();
        assert!(error.contains("expected a text or a list of texts"), "{error}");
        assert!(!error.contains("OneOrMany"), "{error}");
    }
}
