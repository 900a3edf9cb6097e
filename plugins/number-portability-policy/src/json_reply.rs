//! Responses of HTTP services.

use crate::source::Service;
use crate::{Attributes, Nothing, set};
use serde_json::Value;

/// The contents of a response.
pub(crate) struct Reply {
    pub(crate) attributes: Attributes,
    /// The name of a network.
    pub(crate) network: Option<String>,
}

/// Reads a response.
///
/// # Errors
/// The service does not know the number, or the response is not valid.
pub(crate) fn read(service: &Service, status: u16, body: &[u8]) -> Result<Reply, Nothing> {
    if service.unknown_status.contains(&status) {
        return Err(Nothing::Unknown(None));
    }
    if status != 200 {
        return Err(Nothing::Failed(format!("status {status}")));
    }
    let document: Value =
        serde_json::from_slice(body).map_err(|error| Nothing::Failed(format!("no JSON: {error}")))?;
    let mut attributes = Attributes::new();
    for (name, pointer) in &service.fields {
        if let Some(value) = document.pointer(pointer).and_then(text) {
            set(&mut attributes, name, &value);
        }
    }
    let network = service.network.as_deref().and_then(|pointer| document.pointer(pointer)).and_then(text);
    Ok(Reply { attributes, network })
}

/// A text, a number or a Boolean as the value of an attribute; Booleans become the values of `ported`.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(crate::yes_or_no(*is).to_owned()),
        _ => None,
    }
}
