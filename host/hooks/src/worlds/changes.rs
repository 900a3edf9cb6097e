//! Common types of screens, lookups and routers: changes of a message, and reasons to refuse it.

use super::pace::{add_pace_bucket, add_send_window};
use crate::bindings::guest::switchyard::hooks::types as wit;
use crate::fault::Fault;
use model::{Directory, MessageChanges, RejectReason};

/// The reason in host types.
pub(crate) fn reject_reason(reason: wit::RejectReason) -> RejectReason {
    match reason {
        wit::RejectReason::NoRoute => RejectReason::NoRoute,
        wit::RejectReason::InvalidDestination => RejectReason::InvalidDestination,
        wit::RejectReason::InvalidSource => RejectReason::InvalidSource,
        wit::RejectReason::Prohibited => RejectReason::Prohibited,
        wit::RejectReason::NotAuthorised => RejectReason::NotAuthorised,
        wit::RejectReason::TryLater => RejectReason::TryLater,
    }
}

/// The changes in host types; `None` if there are none.
pub(crate) fn convert_changes(
    changes: Vec<wit::Change>,
    directory: &Directory,
) -> Result<Option<Box<MessageChanges>>, Fault> {
    if changes.is_empty() {
        return Ok(None);
    }
    let mut converted = MessageChanges::default();
    for change in changes {
        match change {
            wit::Change::SetTlv(tlv) => {
                if MessageChanges::FIXED_TAGS.contains(&tlv.tag) {
                    return Err(Fault::verdict(format!(
                        "TLV {:#06x} set: the appliance makes its value itself",
                        tlv.tag
                    )));
                }
                if tlv.value.len() > usize::from(u16::MAX) {
                    let length = tlv.value.len();
                    return Err(Fault::verdict(format!(
                        "TLV {:#06x} with a value of {length} octets; the maximum is 65535",
                        tlv.tag
                    )));
                }
                converted.change_tlv(tlv.tag, Some(tlv.value.into()));
            }
            wit::Change::RemoveTlv(tag) => converted.change_tlv(tag, None),
            wit::Change::SetAttribute(attribute) => add_attribute(&mut converted, attribute)?,
            wit::Change::UsePaceBucket(bucket) => add_pace_bucket(&mut converted, bucket, directory)?,
            wit::Change::UseSendWindow(window) => add_send_window(&mut converted, window, directory)?,
        }
        if converted.len() > MessageChanges::MAX {
            return Err(Fault::verdict(format!("more than {} changes of a message", MessageChanges::MAX)));
        }
    }
    Ok(Some(Box::new(converted)))
}

/// Adds an attribute in host types.
pub(crate) fn add_attribute(to: &mut MessageChanges, attribute: wit::Attribute) -> Result<(), Fault> {
    let wit::Attribute { name, value } = attribute;
    if !MessageChanges::is_attribute_name(&name) {
        let name: String = name.chars().take(64).collect();
        return Err(Fault::verdict(format!(
            "attribute {name:?}: a name has 1 to 64 of a-z, 0-9, dot, hyphen and underscore"
        )));
    }
    if value.len() > MessageChanges::MAX_ATTRIBUTE {
        let (length, most) = (value.len(), MessageChanges::MAX_ATTRIBUTE);
        return Err(Fault::verdict(format!(
            "attribute {name} with a value of {length} octets; the maximum is {most}"
        )));
    }
    to.set_attribute(name.into(), value.into());
    Ok(())
}
