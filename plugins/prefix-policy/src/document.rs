//! The document format; `policies/routes.toml` is a commented example.

use crate::{Action, LegRule, Reject, Target};
use policy_values::Names;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) route: Vec<toml::Spanned<Route>>,
    pub(crate) default: Option<toml::Spanned<Default>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Route {
    pub(crate) prefix: Names,
    #[serde(default)]
    pub(crate) accounts: Vec<String>,
    #[serde(default)]
    pub(crate) sources: Vec<String>,
    #[serde(default)]
    legs: Vec<LegRule>,
    #[serde(default)]
    home: bool,
    reject: Option<Reject>,
    note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Default {
    #[serde(default)]
    legs: Vec<LegRule>,
    #[serde(default)]
    home: bool,
    reject: Option<Reject>,
    note: Option<String>,
}

impl Route {
    /// Takes the target; an error if it is contradictory.
    pub(crate) fn target(&mut self) -> Result<Target, String> {
        target(std::mem::take(&mut self.legs), self.home, self.reject, self.note.take())
    }
}

impl Default {
    /// Takes the target; an error if it is contradictory.
    pub(crate) fn target(self) -> Result<Target, String> {
        target(self.legs, self.home, self.reject, self.note)
    }
}

fn target(
    legs: Vec<LegRule>,
    home: bool,
    reject: Option<Reject>,
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
    Ok(Target { action, note })
}
