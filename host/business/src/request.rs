//! The requests of the interface, common to JSON and XML-RPC.

use crate::problem::{Problem, ProblemKind};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};

/// One message, or several. Each message is read separately, so that an error in one does not hide errors in the next.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a message, or {\"messages\": [...]}")]
pub(crate) enum Submission {
    /// Several messages.
    Many(MessageList),
    /// One message.
    #[schema(value_type = SubmitItem)]
    One(Map<String, Value>),
}

/// Several messages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageList {
    /// The messages.
    #[schema(value_type = Vec<SubmitItem>)]
    messages: Vec<Value>,
}

impl Submission {
    /// The messages: objects in the form of [`SubmitItem`], which are not yet checked.
    pub(crate) fn into_items(self) -> Result<Vec<Value>, Problem> {
        match self {
            Self::Many(list) => Ok(list.messages),
            Self::One(item) if item.contains_key("messages") => {
                let detail = "messages: must be an array, and excludes other members";
                Err(Problem::new(ProblemKind::Invalid, detail))
            }
            Self::One(item) => Ok(vec![Value::Object(item)]),
        }
    }
}

/// One number or several.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(crate) enum OneOrMany {
    /// One number.
    One(String),
    /// Several numbers; each gets a separate message.
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
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Message)]
pub(crate) struct SubmitItem {
    /// The source address: at most 20 digits, or 11 ASCII characters; defaults to the account's.
    pub(crate) from: Option<String>,
    /// Destinations: 3 to 20 digits, with or without a leading +.
    #[schema(inline)]
    pub(crate) to: OneOrMany,
    /// The text; either this or `octets`.
    pub(crate) text: Option<String>,
    /// The octets of the body, in hexadecimal.
    pub(crate) octets: Option<String>,
    /// The coding of the text, or of the octets.
    #[schema(schema_with = coding_schema)]
    pub(crate) coding: Option<String>,
    /// A user data header in hexadecimal, including its length octet.
    pub(crate) udh: Option<String>,
    /// The message class, 0 to 3. For front ends only.
    #[serde(skip)]
    pub(crate) message_class: Option<u8>,
    /// A request for each DLR, in place of a push to the account's URL. For front ends only.
    #[serde(skip)]
    pub(crate) dlr_push: Option<hooks::FrontEndDlrPush>,
    /// The priority; the default is 0.
    #[schema(maximum = 3)]
    pub(crate) priority: Option<u8>,
    /// The validity period in seconds; defaults to the account's.
    #[schema(minimum = 1)]
    pub(crate) validity: Option<u64>,
    /// The delivery time (RFC 3339).
    #[schema(format = DateTime)]
    pub(crate) schedule: Option<String>,
    /// The requested DLRs.
    #[schema(schema_with = dlr_schema)]
    pub(crate) dlr: Option<String>,
    /// The service type: at most five ASCII characters.
    #[schema(max_length = 5)]
    pub(crate) service_type: Option<String>,
    /// SMPP TLVs for peers that accept them, at most 32: by tag in four hexadecimal digits, values in hexadecimal.
    #[serde(default)]
    #[schema(value_type = HashMap<String, String>, example = json!({ "1401": "423132333435" }))]
    pub(crate) tlvs: BTreeMap<String, String>,
    /// The client's own reference, returned in DLRs.
    #[schema(max_length = 100)]
    pub(crate) reference: Option<String>,
    /// Fields of SGIP.
    pub(crate) sgip: Option<SgipFieldsInput>,
}

fn one_of<const N: usize>(names: [&'static str; N], description: &str) -> Object {
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    names.description(Some(description)).build()
}

fn coding_schema() -> Object {
    one_of(
        ["auto", "ascii", "gsm", "ucs2", "gbk", "binary"],
        "The coding of the text, or of the octets; the default is `auto`.",
    )
}

fn dlr_schema() -> Object {
    one_of(["none", "final", "failure", "all"], "The requested DLRs; the default is `final`.")
}

/// Fields of an SGIP Submit (SGIP 1.2 §4.2.3.3). CMPP and SMGP also use the service and the LinkID.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SgipFields)]
pub(crate) struct SgipFieldsInput {
    /// The number to charge.
    #[schema(max_length = 21)]
    pub(crate) charge_number: Option<String>,
    /// The code of the business.
    #[schema(max_length = 5)]
    pub(crate) corp_id: Option<String>,
    /// The code of the service.
    #[schema(max_length = 10)]
    pub(crate) service_type: Option<String>,
    /// The kind of the fee.
    #[schema(maximum = 4)]
    pub(crate) fee_type: Option<u8>,
    /// The fee.
    #[schema(max_length = 6)]
    pub(crate) fee_value: Option<String>,
    /// The fee given to the subscriber.
    #[schema(max_length = 6)]
    pub(crate) given_value: Option<String>,
    /// Whether a fee is collected on behalf of another.
    #[schema(maximum = 1)]
    pub(crate) agent_flag: Option<u8>,
    /// The reason for the message (SGIP MorelatetoMTFlag).
    #[schema(maximum = 3)]
    pub(crate) mo_related: Option<u8>,
    /// The priority in the network.
    #[schema(maximum = 9)]
    pub(crate) priority: Option<u8>,
    /// The requested report: 3 for a fee record; the other values follow from `dlr`.
    #[schema(maximum = 3)]
    pub(crate) report_flag: Option<u8>,
    /// The LinkID of the subscriber's message to which this one replies. SGIP allows at most 8 characters.
    #[schema(max_length = 20)]
    pub(crate) link_id: Option<String>,
}

/// A request for the states of several messages.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Ids {
    /// Message ids.
    pub(crate) ids: Vec<String>,
}

/// The parameters of a fetch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Fetch {
    /// Maximum number of items; the default is 100.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) max: Option<u32>,
    /// Maximum seconds to wait for the first item; the default is 0.
    #[param(maximum = 60)]
    pub(crate) wait: Option<u32>,
    /// A batch to acknowledge first.
    pub(crate) acknowledge: Option<String>,
}

/// Acknowledges a batch.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Acknowledgement {
    /// The name of the batch.
    pub(crate) batch: String,
    /// Acknowledges only these items, and offers the others again.
    #[serde(default, deserialize_with = "list")]
    #[schema(value_type = Vec<String>, required = false)]
    pub(crate) ids: Option<Vec<String>>,
}

/// Reads a list. Null is an error, because it must not acknowledge all items.
fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    Vec::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, from_value, json};

    #[test]
    fn destination_errors_do_not_name_internal_types() {
        let error = from_str::<SubmitItem>(r#"{"to": 5, "text": "a"}"#).unwrap_err().to_string();
        assert!(error.contains("expected a text or a list of texts"), "{error}");
        assert!(!error.contains("OneOrMany"), "{error}");
    }

    #[test]
    fn a_submission_is_one_message_or_a_list() {
        let items = |body: Value| {
            let read = from_value::<Submission>(body).map_err(|error| error.to_string())?;
            read.into_items().map_err(|problem| problem.detail)
        };
        assert_eq!(items(json!({ "to": 5 })), Ok(vec![json!({ "to": 5 })]));
        assert_eq!(items(json!({ "messages": [1, {}] })), Ok(vec![json!(1), json!({})]));
        for wrong in [json!({ "messages": 1 }), json!({ "messages": [], "to": "123" }), json!([])] {
            assert!(items(wrong).unwrap_err().contains("must be "));
        }
    }

    #[test]
    fn only_a_missing_list_acknowledges_all_items() {
        let ids = |body: Value| from_value::<Acknowledgement>(body).map(|request| request.ids).ok();
        assert_eq!(ids(json!({ "batch": "1" })), Some(None));
        assert_eq!(ids(json!({ "batch": "1", "ids": [] })), Some(Some(Vec::new())));
        assert_eq!(ids(json!({ "batch": "1", "ids": null })), None);
        assert_eq!(ids(json!({ "ids": [] })), None);
    }
}
