//! Permissions of a caller.

use crate::options::{AllowedNumbers, ShellOptions, ShellPrincipal};
use crate::wire::{ShellFault, ShellFaultKind, ShellHello};
use crate::{SubscriberNumber, records::Viewer};
use std::collections::BTreeSet;

/// A caller with its permissions, merged from all matching entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserPermissions {
    pub(crate) uid: u32,
    any: bool,
    numbers: BTreeSet<SubscriberNumber>,
    operator: bool,
}

/// The label of a user in messages.
pub(crate) fn user_label(uid: u32) -> String {
    match uzers::get_user_by_uid(uid) {
        Some(user) => format!("user {} (uid {uid})", user.name().to_string_lossy()),
        None => format!("the user with uid {uid}"),
    }
}

/// All groups of a user. Reads the user database, which may be remote and slow.
fn groups(uid: u32, gid: u32) -> Vec<u32> {
    let mut groups = vec![gid];
    if let Some(user) = uzers::get_user_by_uid(uid)
        && let Some(more) = uzers::get_user_groups(user.name(), gid)
    {
        groups.extend(more.iter().map(uzers::Group::gid));
    }
    groups
}

impl UserPermissions {
    /// The permissions of a caller; `None` if no entry matches. May block.
    pub(crate) fn of_caller(options: &ShellOptions, uid: u32, gid: u32) -> Option<Self> {
        let by_group = options.users.iter().any(|user| matches!(user.principal, ShellPrincipal::Group(_)));
        let groups = if by_group { groups(uid, gid) } else { Vec::new() };
        Self::merge(options, uid, &groups)
    }

    fn merge(options: &ShellOptions, uid: u32, groups: &[u32]) -> Option<Self> {
        let matching: Vec<_> = options
            .users
            .iter()
            .filter(|user| match user.principal {
                ShellPrincipal::User(id) => id == uid,
                ShellPrincipal::Group(group) => groups.contains(&group),
            })
            .collect();
        if matching.is_empty() {
            return None;
        }
        let mut permissions = Self {
            uid,
            any: false,
            numbers: BTreeSet::new(),
            operator: matching.iter().any(|user| user.operator),
        };
        for user in matching {
            match &user.numbers {
                AllowedNumbers::Any => permissions.any = true,
                AllowedNumbers::Listed(numbers) => permissions.numbers.extend(numbers.iter().cloned()),
            }
        }
        Some(permissions)
    }

    /// Whether the user acts for many people, as the user of an ssh server does.
    pub(crate) fn acts_for_many(&self) -> bool {
        self.any
    }

    /// Checks a hello and returns the caller's view.
    pub(crate) fn authorize(&self, hello: &ShellHello) -> Result<Viewer, ShellFault> {
        let label = || user_label(self.uid);
        if hello.operator {
            if !self.operator {
                return Err(ShellFault::new(
                    ShellFaultKind::NotAllowed,
                    format!("{} is not an operator", label()),
                ));
            }
            return match hello.number {
                None => Ok(Viewer::Operator),
                Some(_) => Err(ShellFault::new(
                    ShellFaultKind::Invalid,
                    "act as an operator or as a number, not both",
                )),
            };
        }
        if let Some(number) = &hello.number {
            let number: SubscriberNumber = number.parse().map_err(|error: crate::ParseNumberError| {
                ShellFault::new(ShellFaultKind::Invalid, error.to_string())
            })?;
            if !self.any && !self.numbers.contains(&number) {
                let detail = format!("{} may not act as {number}; {}", label(), self.describe_numbers());
                return Err(ShellFault::new(ShellFaultKind::NotAllowed, detail));
            }
            return Ok(Viewer::Subscriber(number));
        }
        match (self.any, self.numbers.first(), self.numbers.len()) {
            (false, Some(number), 1) => Ok(Viewer::Subscriber(number.clone())),
            (false, None, _) if self.operator => Ok(Viewer::Operator),
            (false, None, _) => {
                Err(ShellFault::new(ShellFaultKind::NotAllowed, format!("{} has no number", label())))
            }
            _ => Err(ShellFault::new(
                ShellFaultKind::Invalid,
                format!("name the number with --as; {}", self.describe_numbers()),
            )),
        }
    }

    fn describe_numbers(&self) -> String {
        if self.any {
            return "it may act as any".to_owned();
        }
        let numbers: Vec<String> = self.numbers.iter().map(ToString::to_string).collect();
        if numbers.is_empty() {
            "it has no number".to_owned()
        } else {
            format!("it may act as {}", numbers.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{InboxDelivery, ShellUserOptions};
    use model::PeerId;

    fn number(text: &str) -> SubscriberNumber {
        text.parse().unwrap()
    }

    fn options() -> ShellOptions {
        let entry = |principal, numbers: &[&str], operator| ShellUserOptions {
            principal,
            numbers: AllowedNumbers::Listed(numbers.iter().map(|text| number(text)).collect()),
            operator,
            deliver: InboxDelivery::Nothing,
        };
        let any = ShellUserOptions {
            principal: ShellPrincipal::User(70),
            numbers: AllowedNumbers::Any,
            operator: false,
            deliver: InboxDelivery::Nothing,
        };
        ShellOptions {
            users: vec![
                entry(ShellPrincipal::User(10), &["+4912345"], false),
                entry(ShellPrincipal::User(20), &["+4912346", "+4912347"], false),
                entry(ShellPrincipal::Group(500), &["+4912348"], false),
                entry(ShellPrincipal::Group(600), &[], true),
                any,
            ],
            ..ShellOptions::new("/nowhere".into(), PeerId(1))
        }
    }

    fn authorize(
        uid: u32,
        groups: &[u32],
        number: Option<&str>,
        operator: bool,
    ) -> Result<Viewer, ShellFaultKind> {
        let hello = ShellHello { number: number.map(str::to_owned), operator };
        let permissions = UserPermissions::merge(&options(), uid, groups).ok_or(ShellFaultKind::Internal)?;
        permissions.authorize(&hello).map_err(|fault| fault.kind)
    }

    #[test]
    fn users_act_only_as_their_own_numbers() {
        let as_ = |text| Ok(Viewer::Subscriber(number(text)));
        assert_eq!(authorize(10, &[], None, false), as_("+4912345"));
        assert_eq!(authorize(10, &[], Some("+4912345"), false), as_("+4912345"));
        assert_eq!(authorize(10, &[], Some("+4912346"), false), Err(ShellFaultKind::NotAllowed));
        assert_eq!(authorize(10, &[], Some("4912345"), false), Err(ShellFaultKind::Invalid));
        assert_eq!(authorize(10, &[], None, true), Err(ShellFaultKind::NotAllowed));
        assert_eq!(authorize(20, &[], None, false), Err(ShellFaultKind::Invalid), "which of two");
        assert_eq!(authorize(20, &[], Some("+4912347"), false), as_("+4912347"));
        assert_eq!(authorize(70, &[], None, false), Err(ShellFaultKind::Invalid));
        assert_eq!(authorize(70, &[], Some("+4999999"), false), as_("+4999999"));
        assert_eq!(
            authorize(99, &[7], Some("+4912345"), false),
            Err(ShellFaultKind::Internal),
            "unknown user"
        );
    }

    #[test]
    fn matching_entries_are_merged() {
        assert_eq!(
            authorize(10, &[500], Some("+4912348"), false),
            Ok(Viewer::Subscriber(number("+4912348")))
        );
        assert_eq!(authorize(11, &[500], None, false), Ok(Viewer::Subscriber(number("+4912348"))));
        assert_eq!(authorize(11, &[600], None, false), Ok(Viewer::Operator));
        assert_eq!(authorize(10, &[600], None, false), Ok(Viewer::Subscriber(number("+4912345"))));
        assert_eq!(authorize(10, &[600], None, true), Ok(Viewer::Operator));
        assert_eq!(authorize(10, &[600], Some("+4912345"), true), Err(ShellFaultKind::Invalid));
    }
}
