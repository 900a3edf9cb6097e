use crate::Number;
use model::PeerId;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The door and who may come in.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellOptions {
    /// Where the socket is made.
    pub socket: PathBuf,
    /// Its mode, such as 0o660.
    pub mode: u32,
    /// The group that it is given to.
    pub group: Option<u32>,
    /// The peer that submissions come from, and that takes what is for an inbox.
    pub peer: PeerId,
    /// Who may do what. All entries that fit a caller count together.
    pub users: Vec<UserOptions>,
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time of one user; of one number, where a user may act as any.
    pub connections_per_user: usize,
    /// How long a connection may say nothing; one that follows may be silent for ever.
    pub idle: Duration,
    /// How long a submission waits for the engine before the caller is told to repeat it.
    pub patience: Duration,
    /// Messages a second of one number; `None`: no limit.
    pub rate: Option<f64>,
    /// How many may come at once.
    pub burst: u32,
    /// Validity of what is submitted.
    pub validity: Duration,
    /// Short messages that a text may take.
    pub parts: usize,
}

impl ShellOptions {
    /// A door at this path, with the defaults: for owner and group, nobody may come in yet, two days' validity, ten parts, no
    /// rate.
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
            patience: Duration::from_secs(30),
            rate: None,
            burst: 1,
            validity: Duration::from_secs(2 * 86_400),
            parts: 10,
        }
    }

    /// Numbers of which messages are delivered to the inbox.
    #[must_use]
    pub fn inboxes(&self) -> Inboxes {
        let mut inboxes = Inboxes::default();
        for user in &self.users {
            match (&user.deliver, &user.numbers) {
                (Deliver::Own, Numbers::These(numbers)) => {
                    inboxes.numbers.extend(numbers.iter().map(|number| number.digits().into()));
                }
                (Deliver::To(ranges), _) => {
                    for range in ranges {
                        if range.open {
                            inboxes.prefixes.push(range.digits.clone());
                        } else {
                            inboxes.numbers.insert(range.digits.clone());
                        }
                    }
                }
                (Deliver::Own, Numbers::Any) | (Deliver::Nothing, _) => {}
            }
        }
        inboxes
    }

    /// All numbers that are named.
    pub(crate) fn numbers(&self) -> BTreeSet<Number> {
        let listed = self.users.iter().filter_map(|user| match &user.numbers {
            Numbers::Any => None,
            Numbers::These(numbers) => Some(numbers),
        });
        listed.flatten().cloned().collect()
    }

    /// Whether there is anybody who may read what is for this number.
    pub(crate) fn has_reader(&self, number: &[u8]) -> bool {
        self.users.iter().any(|user| match &user.numbers {
            Numbers::Any => true,
            Numbers::These(numbers) => numbers.iter().any(|one| one.digits() == number),
        })
    }
}

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Principal {
    /// A user of the system.
    User(u32),
    /// All members of a group of the system.
    Group(u32),
}

/// As which numbers somebody may act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbers {
    /// Any: of a user that acts for others who have been told apart before, as an ssh server's forced commands do.
    Any,
    /// These.
    These(BTreeSet<Number>),
}

/// What somebody may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOptions {
    /// Who.
    pub who: Principal,
    /// As which numbers.
    pub numbers: Numbers,
    /// Whether all messages may be seen, without their texts.
    pub operator: bool,
    /// Which messages are delivered to the inbox.
    pub deliver: Deliver,
}

/// Which messages an entry has delivered to the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deliver {
    /// None: they go where routes lead.
    Nothing,
    /// Those for the numbers of the entry.
    Own,
    /// Those for these numbers: of an entry that may act as any.
    To(Vec<NumberRange>),
}

/// A number, or all numbers with the same beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    digits: Box<[u8]>,
    /// Other digits may follow.
    open: bool,
}

/// Neither a number nor the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a number, such as +16195550123, nor the beginning of numbers: 3 to 20 digits with a plus sign in front and a \
     star behind, such as +1619555*"
)]
pub struct ParseNumberRangeError(pub String);

impl FromStr for NumberRange {
    type Err = ParseNumberRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, open) = text.strip_suffix('*').map_or((text, false), |number| (number, true));
        let number: Number = number.parse().map_err(|_| ParseNumberRangeError(text.to_owned()))?;
        Ok(Self { digits: number.digits().into(), open })
    }
}

/// The numbers of which messages are delivered to the inbox.
#[derive(Debug, Clone, Default)]
pub struct Inboxes {
    numbers: FxHashSet<Box<[u8]>>,
    prefixes: Vec<Box<[u8]>>,
}

impl Inboxes {
    /// Whether a number, by its digits, is one of them.
    #[must_use]
    pub fn has(&self, digits: &[u8]) -> bool {
        self.numbers.contains(digits) || self.prefixes.iter().any(|prefix| digits.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_act_as_any_number_has_inboxes_for_those_that_are_named() {
        let entry =
            |numbers, deliver| UserOptions { who: Principal::User(7), numbers, operator: false, deliver };
        let these = |text: &str| Numbers::These(BTreeSet::from([text.parse().unwrap()]));
        let ranges = ["+16195550123", "+1619556*"].map(|text| text.parse().unwrap());
        let options = ShellOptions {
            users: vec![
                entry(these("+4912345"), Deliver::Own),
                entry(these("+4912346"), Deliver::Nothing),
                entry(Numbers::Any, Deliver::To(ranges.to_vec())),
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
            assert_eq!(inboxes.has(digits.as_bytes()), has, "{digits}");
        }
        for bad in ["*", "+*", "+12*", "1619555*", "+1619**", "+161955501234567890123*", ""] {
            assert!(bad.parse::<NumberRange>().is_err(), "{bad}");
        }
    }
}
