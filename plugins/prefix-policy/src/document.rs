//! The document format; `policies/routes.toml` is a commented example.

use crate::{Action, LegRule, Reject, Target};
use pace_policy::{BucketEntry, PaceRule, TableNames, WindowEntry, read_limits};
use policy_values::{AttributeConditions, Names};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// A route. The longest matching prefix decides; of several routes with the same prefix, the first whose conditions match.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Route>"))]
    pub(crate) route: Vec<toml::Spanned<Route>>,
    /// The target of messages without a matching route. Without it, the next router of the chain decides.
    #[cfg_attr(test, schemars(with = "Option<Default>"))]
    pub(crate) default: Option<toml::Spanned<Default>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Route {
    /// The first digits of destinations, without a plus sign; "" is every destination.
    #[cfg_attr(test, schemars(schema_with = "policy_values::schema::prefixes"))]
    pub(crate) prefix: Names,
    /// Condition: the account or peer that submitted the message. Default: any.
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("x-switchyard" = "account")))]
    pub(crate) accounts: Vec<String>,
    /// Condition: the source address, with a star as a wildcard at the end. Default: any.
    #[serde(default)]
    pub(crate) sources: Vec<String>,
    /// Condition: attributes that a lookup, a screen or the account sets, such as `{ mcc = "262", mnc = ["01", "06"] }`, with a star as
    /// a wildcard at the end of a value. Default: any.
    #[serde(default)]
    pub(crate) attributes: AttributeConditions,
    /// The peers to send to.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 255)))]
    legs: Vec<LegRule>,
    /// The destination is a number of the home network: the resolver finds the subscriber.
    #[serde(default)]
    home: bool,
    /// Refuse the message, for this reason.
    reject: Option<Reject>,
    /// The pace buckets that the message uses.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 8)))]
    pace_buckets: Vec<BucketEntry>,
    /// The send windows that the message uses; it is sent only while all are open.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 4)))]
    send_windows: Vec<WindowEntry>,
    /// The reason of the decision, for the trace of the message.
    note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Default {
    /// The peers to send to.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 255)))]
    legs: Vec<LegRule>,
    /// The destination is a number of the home network: the resolver finds the subscriber.
    #[serde(default)]
    home: bool,
    /// Refuse the message, for this reason.
    reject: Option<Reject>,
    /// The pace buckets that the message uses.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 8)))]
    pace_buckets: Vec<BucketEntry>,
    /// The send windows that the message uses; it is sent only while all are open.
    #[serde(default)]
    #[cfg_attr(test, schemars(length(max = 4)))]
    send_windows: Vec<WindowEntry>,
    /// The reason of the decision, for the trace of the message.
    note: Option<String>,
}

impl Route {
    /// The target and its limits. Fails if keys contradict each other.
    pub(crate) fn target(&mut self, tables: &mut TableNames) -> Result<Target, String> {
        let limits = read_limits(&self.pace_buckets, &self.send_windows, tables)?;
        target(std::mem::take(&mut self.legs), self.home, self.reject, limits, self.note.take())
    }
}

impl Default {
    /// The target and its limits. Fails if keys contradict each other.
    pub(crate) fn target(self, tables: &mut TableNames) -> Result<Target, String> {
        let limits = read_limits(&self.pace_buckets, &self.send_windows, tables)?;
        target(self.legs, self.home, self.reject, limits, self.note)
    }
}

fn target(
    legs: Vec<LegRule>,
    home: bool,
    reject: Option<Reject>,
    limits: Vec<PaceRule>,
    note: Option<String>,
) -> Result<Target, String> {
    let action = match (legs.is_empty(), home, reject) {
        (false, false, None) => Action::Forward(legs),
        (true, true, None) => Action::Home,
        (true, false, Some(reason)) => Action::Reject(reason),
        (true, false, None) => return Err("needs `legs`, `home = true` or `reject`".to_owned()),
        _ => return Err("has more than one of `legs`, `home` and `reject`; keep one".to_owned()),
    };
    if let Action::Forward(legs) = &action {
        if legs.len() > 255 {
            return Err("has more than 255 legs".to_owned());
        }
        legs.iter().try_for_each(LegRule::check)?;
    }
    if matches!(action, Action::Reject(_)) && !limits.is_empty() {
        return Err(
            "has `reject`, and `pace-buckets` or `send-windows`: a refused message is not sent".to_owned()
        );
    }
    Ok(Target { action, limits, note })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("prefix-router");
    }
}
