use crate::Number;
use model::PeerId;
use std::collections::BTreeSet;
use std::path::PathBuf;
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
    pub fn inboxes(&self) -> BTreeSet<Number> {
        self.listed(|user| user.deliver)
    }

    fn listed(&self, which: impl Fn(&UserOptions) -> bool) -> BTreeSet<Number> {
        let listed = self.users.iter().filter(|user| which(user)).filter_map(|user| match &user.numbers {
            Numbers::Any => None,
            Numbers::These(numbers) => Some(numbers),
        });
        listed.flatten().cloned().collect()
    }

    /// All numbers that are named.
    pub(crate) fn numbers(&self) -> BTreeSet<Number> {
        self.listed(|_| true)
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
    /// Whether messages for its numbers are delivered to the inbox.
    pub deliver: bool,
}
