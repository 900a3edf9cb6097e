use crate::{Limits, reply::Reply};

/// What a word costs beside its octets: its place and that of its memory.
const WORD: usize = 32;

/// Commands between `MULTI` and `EXEC`, as they came. They were found to be commands, and nothing more.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    commands: Vec<Vec<Box<[u8]>>>,
    octets: usize,
    failed: bool,
}

impl Transaction {
    /// One that is not carried out any more.
    pub(crate) fn fail(&mut self) {
        *self = Self { failed: true, ..Self::default() };
    }

    /// Keeps a command for later; the answer to it.
    pub(crate) fn keep(&mut self, words: &[&[u8]], limits: &Limits) -> Reply {
        self.octets += words.iter().map(|word| word.len() + WORD).sum::<usize>();
        if self.octets > limits.octets || self.commands.len() >= limits.pipelined.max(1) {
            self.fail();
            return Reply::error("ERR too much for one transaction");
        }
        if !self.failed {
            self.commands.push(words.iter().map(|word| Box::from(*word)).collect());
        }
        Reply::Status("QUEUED".into())
    }

    /// What is to be carried out; `None` if something was wrong.
    pub(crate) fn commands(self) -> Option<Vec<Vec<Box<[u8]>>>> {
        (!self.failed).then_some(self.commands)
    }
}
