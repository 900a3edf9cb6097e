//! The actions of rules whose conditions hold.

use crate::document::{ActionKeyword, ReasonKeyword, ReportKeyword, RuleEntry};
use pace_policy::{PaceRule, TableNames};

/// Maximum length of an attribute's name and of its value, in octets.
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 255;
/// Maximum length of a replacement, in octets.
const MAX_REPLACEMENT: usize = 160;

/// The reason of a rejected message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The content is not allowed.
    Prohibited,
    /// The source is not allowed.
    InvalidSource,
    /// The destination is not allowed.
    InvalidDestination,
    /// The account may not send this.
    NotAuthorised,
    /// There is no route.
    NoRoute,
    /// The sender may submit it again.
    TryLater,
}

/// The state in the DLR of a dropped message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// It is delivered.
    Delivered,
    /// It cannot be delivered.
    Undeliverable,
    /// It is rejected.
    Rejected,
}

/// The verdict on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass.
    Pass,
    /// Refuse it.
    Reject(Reason),
    /// Keep it in quarantine.
    Quarantine,
    /// Accept it, and do not deliver it.
    Drop(Report),
}

/// The action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// This verdict; no further rule is evaluated.
    Decide(Verdict),
    /// Only set the tags; evaluation continues.
    Tag,
    /// Replace the words and links that the rule found with this text; evaluation continues.
    Replace(String),
    /// The message uses a pace bucket or a send window; evaluation continues.
    Pace(Box<PaceRule>),
}

impl Action {
    /// Reads the action of a rule.
    ///
    /// # Errors
    /// The correction.
    pub(crate) fn read(entry: &RuleEntry, tables: &mut TableNames) -> Result<Self, String> {
        let RuleEntry { then, reason, report, with, tags, bucket, window, .. } = entry;
        for (is_given, key, action) in [
            (reason.is_some() && *then != ActionKeyword::Reject, "reason", "reject"),
            (report.is_some() && *then != ActionKeyword::Drop, "report", "drop"),
            (with.is_some() && *then != ActionKeyword::Replace, "with", "replace"),
            (bucket.is_some() && *then != ActionKeyword::Pace, "bucket", "pace"),
            (window.is_some() && *then != ActionKeyword::Pace, "window", "pace"),
        ] {
            if is_given {
                return Err(format!("`{key}` goes with `then = \"{action}\"`"));
            }
        }
        if !tags.is_empty() && matches!(then, ActionKeyword::Reject | ActionKeyword::Drop) {
            return Err(
                "`tags` are for messages that go on: pass, tag, replace, pace or quarantine".to_owned()
            );
        }
        for (name, value) in tags {
            check_tag(name, value)?;
        }
        Ok(match then {
            ActionKeyword::Pass => Self::Decide(Verdict::Pass),
            ActionKeyword::Quarantine => Self::Decide(Verdict::Quarantine),
            ActionKeyword::Reject => Self::Decide(Verdict::Reject(reason.unwrap_or_default().into())),
            ActionKeyword::Drop => Self::Decide(Verdict::Drop(report.unwrap_or_default().into())),
            ActionKeyword::Tag if tags.is_empty() => {
                return Err(
                    "`then = \"tag\"` needs `tags`, such as `tags = { spam = \"likely\" }`".to_owned()
                );
            }
            ActionKeyword::Tag => Self::Tag,
            ActionKeyword::Pace => {
                if bucket.is_none() && window.is_none() {
                    return Err("`then = \"pace\"` needs `bucket` or `window`".to_owned());
                }
                Self::Pace(Box::new(PaceRule::read(bucket.as_ref(), window.as_ref(), tables)?))
            }
            ActionKeyword::Replace => match with {
                None => return Err("`then = \"replace\"` needs `with`, such as `with = \"***\"`".to_owned()),
                Some(with) if with.len() > MAX_REPLACEMENT => {
                    return Err(format!(
                        "`with` has {} octets; the maximum is {MAX_REPLACEMENT}",
                        with.len()
                    ));
                }
                Some(with) => Self::Replace(with.clone()),
            },
        })
    }
}

fn check_tag(name: &str, value: &str) -> Result<(), String> {
    let is_allowed =
        |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet);
    if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(format!(
            "the tag {name:?}: a name has 1 to {MAX_NAME} of a-z, 0-9, dot, hyphen and underscore"
        ));
    }
    if value.len() > MAX_VALUE {
        return Err(format!(
            "the tag {name:?}: its value has {} octets; the maximum is {MAX_VALUE}",
            value.len()
        ));
    }
    Ok(())
}

impl From<ReasonKeyword> for Reason {
    fn from(keyword: ReasonKeyword) -> Self {
        match keyword {
            ReasonKeyword::Prohibited => Self::Prohibited,
            ReasonKeyword::InvalidSource => Self::InvalidSource,
            ReasonKeyword::InvalidDestination => Self::InvalidDestination,
            ReasonKeyword::NotAuthorised => Self::NotAuthorised,
            ReasonKeyword::NoRoute => Self::NoRoute,
            ReasonKeyword::TryLater => Self::TryLater,
        }
    }
}

impl From<ReportKeyword> for Report {
    fn from(keyword: ReportKeyword) -> Self {
        match keyword {
            ReportKeyword::Delivered => Self::Delivered,
            ReportKeyword::Undeliverable => Self::Undeliverable,
            ReportKeyword::Rejected => Self::Rejected,
        }
    }
}
