//! What the caller at the other end of a socket may do.

use crate::options::{Numbers, Principal, ShellOptions};
use crate::wire::{Fault, Hello, Kind};
use crate::{Number, records::View};
use std::collections::BTreeSet;

/// Who calls, and what all entries that fit it allow together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) uid: u32,
    any: bool,
    numbers: BTreeSet<Number>,
    operator: bool,
}

/// How a user is called where people read it.
pub(crate) fn name_of(uid: u32) -> String {
    match uzers::get_user_by_uid(uid) {
        Some(user) => format!("user {} (uid {uid})", user.name().to_string_lossy()),
        None => format!("the user with uid {uid}"),
    }
}

/// All groups of a user; reads the system's data base, which may be far away.
fn groups(uid: u32, gid: u32) -> Vec<u32> {
    let mut groups = vec![gid];
    if let Some(user) = uzers::get_user_by_uid(uid)
        && let Some(more) = uzers::get_user_groups(user.name(), gid)
    {
        groups.extend(more.iter().map(uzers::Group::gid));
    }
    groups
}

impl Permit {
    /// What the caller with these credentials may do; `None`: nothing. May take its time.
    pub(crate) fn of(options: &ShellOptions, uid: u32, gid: u32) -> Option<Self> {
        let by_group = options.users.iter().any(|user| matches!(user.who, Principal::Group(_)));
        let groups = if by_group { groups(uid, gid) } else { Vec::new() };
        Self::among(options, uid, &groups)
    }

    fn among(options: &ShellOptions, uid: u32, groups: &[u32]) -> Option<Self> {
        let fitting: Vec<_> = options
            .users
            .iter()
            .filter(|user| match user.who {
                Principal::User(user) => user == uid,
                Principal::Group(group) => groups.contains(&group),
            })
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let mut permit = Self {
            uid,
            any: false,
            numbers: BTreeSet::new(),
            operator: fitting.iter().any(|user| user.operator),
        };
        for user in fitting {
            match &user.numbers {
                Numbers::Any => permit.any = true,
                Numbers::These(numbers) => permit.numbers.extend(numbers.iter().cloned()),
            }
        }
        Some(permit)
    }

    /// Whether it stands for more than one person, as the user of an ssh server does.
    pub(crate) fn is_for_many(&self) -> bool {
        self.any
    }

    /// As whom the caller is to be seen.
    pub(crate) fn admit(&self, hello: &Hello) -> Result<View, Fault> {
        let who = || name_of(self.uid);
        if hello.operator {
            if !self.operator {
                return Err(Fault::new(Kind::NotAllowed, format!("{} is no operator", who())));
            }
            return match hello.number {
                None => Ok(View::Operator),
                Some(_) => {
                    Err(Fault::new(Kind::Invalid, "be an operator, or act as a number, not both at once"))
                }
            };
        }
        if let Some(number) = &hello.number {
            let number: Number = number
                .parse()
                .map_err(|error: crate::ParseNumberError| Fault::new(Kind::Invalid, error.to_string()))?;
            if !self.any && !self.numbers.contains(&number) {
                let detail = format!("{} may not act as {number}; {}", who(), self.may());
                return Err(Fault::new(Kind::NotAllowed, detail));
            }
            return Ok(View::Subscriber(number));
        }
        match (self.any, self.numbers.first(), self.numbers.len()) {
            (false, Some(number), 1) => Ok(View::Subscriber(number.clone())),
            (false, None, _) if self.operator => Ok(View::Operator),
            (false, None, _) => Err(Fault::new(Kind::NotAllowed, format!("{} has no number", who()))),
            _ => Err(Fault::new(Kind::Invalid, format!("say as which number, with --as; {}", self.may()))),
        }
    }

    fn may(&self) -> String {
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
    use crate::options::{Deliver, UserOptions};
    use model::PeerId;

    fn number(text: &str) -> Number {
        text.parse().unwrap()
    }

    fn options() -> ShellOptions {
        let entry = |who, numbers: &[&str], operator| UserOptions {
            who,
            numbers: Numbers::These(numbers.iter().map(|text| number(text)).collect()),
            operator,
            deliver: Deliver::Nothing,
        };
        let any = UserOptions {
            who: Principal::User(70),
            numbers: Numbers::Any,
            operator: false,
            deliver: Deliver::Nothing,
        };
        ShellOptions {
            users: vec![
                entry(Principal::User(10), &["+4912345"], false),
                entry(Principal::User(20), &["+4912346", "+4912347"], false),
                entry(Principal::Group(500), &["+4912348"], false),
                entry(Principal::Group(600), &[], true),
                any,
            ],
            ..ShellOptions::new("/nowhere".into(), PeerId(1))
        }
    }

    fn admit(uid: u32, groups: &[u32], number: Option<&str>, operator: bool) -> Result<View, Kind> {
        let hello = Hello { number: number.map(str::to_owned), operator };
        let permit = Permit::among(&options(), uid, groups).ok_or(Kind::Internal)?;
        permit.admit(&hello).map_err(|fault| fault.kind)
    }

    #[test]
    fn one_may_act_as_ones_own_numbers_only() {
        let as_ = |text| Ok(View::Subscriber(number(text)));
        assert_eq!(admit(10, &[], None, false), as_("+4912345"));
        assert_eq!(admit(10, &[], Some("+4912345"), false), as_("+4912345"));
        assert_eq!(admit(10, &[], Some("+4912346"), false), Err(Kind::NotAllowed));
        assert_eq!(admit(10, &[], Some("4912345"), false), Err(Kind::Invalid));
        assert_eq!(admit(10, &[], None, true), Err(Kind::NotAllowed));
        assert_eq!(admit(20, &[], None, false), Err(Kind::Invalid), "which of two");
        assert_eq!(admit(20, &[], Some("+4912347"), false), as_("+4912347"));
        assert_eq!(admit(70, &[], None, false), Err(Kind::Invalid));
        assert_eq!(admit(70, &[], Some("+4999999"), false), as_("+4999999"));
        assert_eq!(admit(99, &[7], Some("+4912345"), false), Err(Kind::Internal), "a stranger");
    }

    #[test]
    fn entries_that_fit_count_together() {
        assert_eq!(admit(10, &[500], Some("+4912348"), false), Ok(View::Subscriber(number("+4912348"))));
        assert_eq!(admit(11, &[500], None, false), Ok(View::Subscriber(number("+4912348"))));
        assert_eq!(admit(11, &[600], None, false), Ok(View::Operator));
        assert_eq!(admit(10, &[600], None, false), Ok(View::Subscriber(number("+4912345"))));
        assert_eq!(admit(10, &[600], None, true), Ok(View::Operator));
        assert_eq!(admit(10, &[600], Some("+4912345"), true), Err(Kind::Invalid));
    }
}
