//! What a client asks for, the same whether it came as JSON or as XML-RPC.

use serde::Deserialize;

/// One or several.
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

/// One text for one number or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// Sender; the account's default where it is not given.
    pub(crate) from: Option<String>,
    /// Addressees.
    pub(crate) to: OneOrMany,
    /// The text ...
    pub(crate) text: Option<String>,
    /// ... or octets in hexadecimal.
    pub(crate) octets: Option<String>,
    /// How a text is coded, or what octets are.
    pub(crate) coding: Option<String>,
    /// A user data header in hexadecimal, its length octet included.
    pub(crate) udh: Option<String>,
    /// 0 to 3.
    pub(crate) priority: Option<u8>,
    /// Seconds.
    pub(crate) validity: Option<u64>,
    /// RFC 3339: not before.
    pub(crate) schedule: Option<String>,
    /// none, final, failure or all.
    pub(crate) report: Option<String>,
    /// At most five octets.
    pub(crate) service_type: Option<String>,
    /// The client's own word for it; comes back in reports.
    pub(crate) reference: Option<String>,
    /// What only SGIP knows.
    pub(crate) sgip: Option<SgipItem>,
}

/// Fields of an SGIP Submit (SGIP 1.2 §4.2.3.3).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SgipItem {
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
    fn what_is_wrong_with_the_addressees_is_said_without_names_of_ours() {
        let error = serde_json::from_str::<Item>(r#"{"to": 5, "text": "a"}"#).unwrap_err().to_string();
        assert!(error.contains("expected a text or a list of texts"), "{error}");
        assert!(!error.contains("OneOrMany"), "{error}");
    }
}
