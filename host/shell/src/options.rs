use crate::{ParseNumberError, SubscriberNumber};
use configuration::{Key, KeyFormat, KeyValue, Keys, Natural, Section, Shape, list_or_word};
use model::PeerId;
use ports::default_burst;
use rustc_hash::FxHashSet;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Options of the shell server.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct ShellOptions {
    /// The path of the socket.
    #[key(example = "/run/switchyard/sms.sock")]
    pub socket: PathBuf,
    /// The permissions of the socket, octal.
    #[key(format = Octal, default = "0660")]
    pub mode: u32,
    /// The group of the socket.
    #[key(format = GroupName)]
    pub group: Option<u32>,
    /// The peer that submits messages and receives messages for inboxes.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// Users who may connect. All entries that match a caller are merged.
    #[key(required)]
    pub users: Vec<ShellUserOptions>,
    /// Maximum number of connections.
    #[key(range = 1..=100_000, default = 256)]
    pub connections: usize,
    /// Maximum number of connections per user; per number for a user with any number.
    #[key(range = 1..=100_000, default = 16, live = "applies to the next requests")]
    pub connections_per_user: usize,
    /// Idle time after which a connection is closed; it does not apply to a connection that follows.
    #[key(default = "10m", live = "applies to the next requests")]
    pub idle: Duration,
    /// Maximum time that a request waits for the commit; afterwards the caller gets a retryable error.
    #[key(default = "30s", was = "patience", live = "applies to the next requests")]
    pub submit_timeout: Duration,
    /// Maximum messages per second and number.
    #[key(default_as = "no limit", live = "applies to the next requests")]
    pub rate: Option<f64>,
    /// Maximum burst.
    #[key(range = 1..=10_000_000, default_as = "a tenth of `rate`", default_with = default_burst(rate), live = "applies to the next requests")]
    pub burst: u32,
    /// The validity of messages.
    #[key(default = "2d", live = "applies to the next requests")]
    pub validity: Duration,
    /// Maximum number of segments of a text.
    #[key(range = 1..=255, default = 10, was = "parts", live = "applies to the next requests")]
    pub max_segments: usize,
}

impl ShellOptions {
    /// Default options: access for owner and group, no users, two days of validity, ten segments, no rate limit.
    #[must_use]
    pub fn new(socket: PathBuf, peer: PeerId) -> Self {
        Self { socket, peer, ..Self::defaults() }
    }

    fn check(&mut self, section: &Section<'_>) {
        if self.users.is_empty() && section.sections("users").is_empty() {
            section.error("users", "is missing; add a [[shell.users]] for each user or group");
        }
    }

    /// The numbers whose messages are delivered to an inbox.
    #[must_use]
    pub fn inboxes(&self) -> InboxNumbers {
        let mut inboxes = InboxNumbers::default();
        for user in &self.users {
            match (&user.deliver, &user.numbers) {
                (InboxDelivery::Own, AllowedNumbers::Listed(numbers)) => {
                    inboxes.numbers.extend(numbers.iter().map(|number| number.digits().into()));
                }
                (InboxDelivery::To(ranges), _) => {
                    for range in ranges {
                        if range.open {
                            inboxes.prefixes.push(range.digits.clone());
                        } else {
                            inboxes.numbers.insert(range.digits.clone());
                        }
                    }
                }
                (InboxDelivery::Own, AllowedNumbers::Any) | (InboxDelivery::Nothing, _) => {}
            }
        }
        inboxes
    }

    /// All configured numbers.
    pub(crate) fn numbers(&self) -> BTreeSet<SubscriberNumber> {
        let listed = self.users.iter().filter_map(|user| match &user.numbers {
            AllowedNumbers::Any => None,
            AllowedNumbers::Listed(numbers) => Some(numbers),
        });
        listed.flatten().cloned().collect()
    }

    /// Whether any user may read messages for this number.
    pub(crate) fn has_reader(&self, number: &[u8]) -> bool {
        self.users.iter().any(|user| match &user.numbers {
            AllowedNumbers::Any => true,
            AllowedNumbers::Listed(numbers) => numbers.iter().any(|listed| listed.digits() == number),
        })
    }
}

/// The user or group of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellPrincipal {
    /// A user id of the system.
    User(u32),
    /// A group id of the system; applies to all members.
    Group(u32),
}

/// The numbers that a user may act as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedNumbers {
    /// Any number, for a user that acts for others, for example an ssh server with forced commands.
    Any,
    /// These numbers.
    Listed(BTreeSet<SubscriberNumber>),
}

/// Permissions of a user or group; exactly one of `user`, `uid`, `group` and `gid` must be set.
#[derive(Debug, Clone, PartialEq, Eq, Keys)]
#[keys(check = Self::check)]
pub struct ShellUserOptions {
    /// The user or group.
    #[key(flatten)]
    pub principal: ShellPrincipal,
    /// Whether the user sees all messages, without their texts.
    #[key(default = false)]
    pub operator: bool,
    /// Numbers that the user may send from and read; `any` for all.
    pub numbers: AllowedNumbers,
    /// Whether messages to these numbers are delivered to the inbox; with `numbers = "any"`, the numbers to which that
    /// applies.
    #[key(default = false)]
    pub deliver: InboxDelivery,
}

impl ShellUserOptions {
    fn check(&mut self, section: &Section<'_>) {
        let has_none = matches!(&self.numbers, AllowedNumbers::Listed(numbers) if numbers.is_empty());
        let problem = match (&self.deliver, &self.numbers) {
            (InboxDelivery::To(_), AllowedNumbers::Listed(_)) => {
                "lists numbers only with numbers = \"any\"; otherwise write deliver = true"
            }
            (InboxDelivery::Own, AllowedNumbers::Any) => {
                "must list numbers or prefixes if numbers = \"any\": deliver = [\"+16195550123\", \"+1619556*\"]"
            }
            (InboxDelivery::Own, _) if has_none => "needs numbers = [...]: messages to these go to the inbox",
            _ => "",
        };
        if !problem.is_empty() {
            section.error("deliver", problem);
        }
        if !self.operator && has_none && !section.has("numbers") {
            section.error("numbers", "is missing; write for example numbers = [\"+16195550123\"]");
        }
    }
}

impl Keys for ShellPrincipal {
    fn read_keys(section: &Section<'_>) -> Self {
        let id = |key| section.key::<u32>(&Natural, key);
        let user = section.text("user").and_then(|name| {
            let user = uzers::get_user_by_name(&name);
            if user.is_none() {
                section.error("user", format!("{name:?} is not a user of this system"));
            }
            user.map(|user| user.uid())
        });
        let user = user.or(id("uid")).map(Self::User);
        let group = section.key(&GroupName, "group").or(id("gid")).map(Self::Group);
        let count = ["user", "group", "uid", "gid"].into_iter().filter(|key| section.has(key)).count();
        if count != 1 {
            section.error("user", "exactly one of user, uid, group and gid must be set");
        }
        user.or(group).unwrap_or(Self::User(u32::MAX))
    }

    fn keys() -> Vec<Key> {
        let keys = [
            ("user", "A user name.", String::shape()),
            ("uid", "A user ID.", u32::shape()),
            ("group", "A group name.", String::shape()),
            ("gid", "A group ID.", u32::shape()),
        ];
        keys.map(|(name, doc, shape)| Key::new(name, doc, shape)).into()
    }

    fn take_live(&mut self, new: &Self, live: bool) {
        if live {
            self.clone_from(new);
        }
    }
}

/// Octal permissions.
struct Octal;

impl KeyFormat<u32> for Octal {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<u32> {
        let parse = |text: &str| u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
        section.parsed(key, parse, "octal, such as \"0660\"")
    }

    fn shape(&self) -> Shape {
        Shape::Value("octal", json!({ "type": "string", "pattern": "^[0-7]+$" }))
    }
}

/// The name of a group of the system, as its id.
struct GroupName;

impl KeyFormat<u32> for GroupName {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<u32> {
        let name = section.text(key)?;
        let group = uzers::get_group_by_name(&name);
        if group.is_none() {
            section.error(key, format!("{name:?} is not a group of this system"));
        }
        group.map(|group| group.gid())
    }

    fn shape(&self) -> Shape {
        String::shape()
    }
}

impl KeyValue for AllowedNumbers {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        if section.is_text(key) {
            let any = |text: &str| (text == "any").then_some(Self::Any);
            return section.parsed(key, any, "a list of numbers, or \"any\"");
        }
        let parse = |text: &str| text.parse().map_err(|error: ParseNumberError| error.to_string());
        Some(Self::Listed(section.items(key, parse)?.into_iter().collect()))
    }

    fn shape() -> Shape {
        list_or_word("any", "Any number.")
    }

    fn empty() -> Self {
        Self::Listed(BTreeSet::new())
    }
}

impl KeyValue for InboxDelivery {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        if section.is_list(key) {
            let parse = |text: &str| text.parse().map_err(|error: ParseNumberRangeError| error.to_string());
            return section.items(key, parse).map(Self::To);
        }
        section.flag(key).map(|own| if own { Self::Own } else { Self::Nothing })
    }

    fn shape() -> Shape {
        Shape::Either(Box::new(bool::shape()), Box::new(Vec::<String>::shape()))
    }

    fn empty() -> Self {
        Self::Nothing
    }
}

/// Messages to deliver to the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxDelivery {
    /// None: routing applies.
    Nothing,
    /// Messages for the numbers of the entry.
    Own,
    /// Messages for these numbers; for an entry with any number.
    To(Vec<NumberRange>),
}

/// A number, or all numbers with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    digits: Box<[u8]>,
    /// Whether further digits may follow.
    open: bool,
}

/// Neither a number nor a number prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a number, such as +16195550123, nor a number prefix: 3 to 20 digits with a leading plus sign and a \
     final star, such as +1619555*"
)]
pub struct ParseNumberRangeError(pub String);

impl FromStr for NumberRange {
    type Err = ParseNumberRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, open) = text.strip_suffix('*').map_or((text, false), |number| (number, true));
        let number: SubscriberNumber = number.parse().map_err(|_| ParseNumberRangeError(text.to_owned()))?;
        Ok(Self { digits: number.digits().into(), open })
    }
}

/// The numbers whose messages are delivered to an inbox.
#[derive(Debug, Clone, Default)]
pub struct InboxNumbers {
    numbers: FxHashSet<Box<[u8]>>,
    prefixes: Vec<Box<[u8]>>,
}

impl InboxNumbers {
    /// Whether a number, given as digits, is in the set.
    #[must_use]
    pub fn contains(&self, digits: &[u8]) -> bool {
        self.numbers.contains(digits) || self.prefixes.iter().any(|prefix| digits.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_with_any_number_has_inboxes_for_the_listed_ranges() {
        let entry = |numbers, deliver| ShellUserOptions {
            principal: ShellPrincipal::User(7),
            numbers,
            operator: false,
            deliver,
        };
        let these = |text: &str| AllowedNumbers::Listed(BTreeSet::from([text.parse().unwrap()]));
        let ranges = ["+16195550123", "+1619556*"].map(|text| text.parse().unwrap());
        let options = ShellOptions {
            users: vec![
                entry(these("+4912345"), InboxDelivery::Own),
                entry(these("+4912346"), InboxDelivery::Nothing),
                entry(AllowedNumbers::Any, InboxDelivery::To(ranges.to_vec())),
            ],
            ..ShellOptions::new("/nowhere".into(), PeerId(1))
        };
        let inboxes = options.inboxes();
        for (digits, has) in [
            ("4912345", true),
            ("4912346", false),
            ("16195550123", true),
            ("161955501234", false),
            ("16195560000", true),
            ("1619556", true),
            ("1619557", false),
        ] {
            assert_eq!(inboxes.contains(digits.as_bytes()), has, "{digits}");
        }
        for bad in ["*", "+*", "+12*", "1619555*", "+1619**", "+161955501234567890123*", ""] {
            assert!(bad.parse::<NumberRange>().is_err(), "{bad}");
        }
    }
}
