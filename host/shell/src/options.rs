use crate::SubscriberNumber;
use model::PeerId;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Options of the shell server.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellOptions {
    /// Path of the socket.
    pub socket: PathBuf,
    /// Mode of the socket, such as 0o660.
    pub mode: u32,
    /// Group of the socket.
    pub group: Option<u32>,
    /// The peer that submits messages and receives messages for inboxes.
    pub peer: PeerId,
    /// Permissions. All entries that match a caller are merged.
    pub users: Vec<ShellUserOptions>,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections per user; per number for a user with any number.
    pub connections_per_user: usize,
    /// Timeout for idle connections; it does not apply to a connection that follows.
    pub idle: Duration,
    /// Timeout for the engine's answer to a submission; afterwards the caller gets a retryable error.
    pub submit_timeout: Duration,
    /// Messages per second and number; `None` for no limit.
    pub rate: Option<f64>,
    /// Maximum burst.
    pub burst: u32,
    /// Validity period of submitted messages.
    pub validity: Duration,
    /// Maximum number of segments of a text.
    pub max_segments: usize,
}

impl ShellOptions {
    /// Default options: access for owner and group, no users, two days of validity, ten segments, no rate limit.
    #[must_use]
    pub fn new(socket: PathBuf, peer: PeerId) -> Self {
        Self {
            socket,
            mode: 0o660,
            group: None,
            peer,
            users: Vec::new(),
            connections: 256,
            connections_per_user: 16,
            idle: Duration::from_secs(600),
            submit_timeout: Duration::from_secs(30),
            rate: None,
            burst: 1,
            validity: Duration::from_secs(2 * 86_400),
            max_segments: 10,
        }
    }

    /// The numbers whose messages are delivered to an inbox.
    #[must_use]
    pub fn inboxes(&self) -> InboxNumbers {
        let mut inboxes = InboxNumbers::default();
        for user in &self.users {
            match (&user.deliver, &user.numbers) {
                (InboxDelivery::Own, AllowedNumbers::These(numbers)) => {
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
            AllowedNumbers::These(numbers) => Some(numbers),
        });
        listed.flatten().cloned().collect()
    }

    /// Whether any user may read messages for this number.
    pub(crate) fn has_reader(&self, number: &[u8]) -> bool {
        self.users.iter().any(|user| match &user.numbers {
            AllowedNumbers::Any => true,
            AllowedNumbers::These(numbers) => numbers.iter().any(|listed| listed.digits() == number),
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
    /// Any number: for a user that acts for others, such as an ssh server with forced commands.
    Any,
    /// These numbers.
    These(BTreeSet<SubscriberNumber>),
}

/// Permissions of a user or group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellUserOptions {
    /// The user or group.
    pub principal: ShellPrincipal,
    /// The numbers that the user may act as.
    pub numbers: AllowedNumbers,
    /// Whether the user may list all messages, without text.
    pub operator: bool,
    /// Messages to deliver to the inbox.
    pub deliver: InboxDelivery,
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
        let these = |text: &str| AllowedNumbers::These(BTreeSet::from([text.parse().unwrap()]));
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
