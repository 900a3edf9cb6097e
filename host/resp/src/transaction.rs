use crate::{RespLimits, resp_reply::RespReply};

/// Memory overhead of a word.
const WORD_OVERHEAD: usize = 32;

/// Commands between `MULTI` and `EXEC`. Only their names and arity were checked.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    commands: Vec<Vec<Box<[u8]>>>,
    octets: usize,
    failed: bool,
}

impl Transaction {
    /// Marks the transaction as failed; it is not executed.
    pub(crate) fn fail(&mut self) {
        *self = Self { failed: true, ..Self::default() };
    }

    /// Queues a command and returns the reply.
    pub(crate) fn queue(&mut self, words: &[&[u8]], limits: &RespLimits) -> RespReply {
        self.octets += words.iter().map(|word| word.len() + WORD_OVERHEAD).sum::<usize>();
        if self.octets > limits.octets || self.commands.len() >= limits.pipelined.max(1) {
            self.fail();
            return RespReply::error("ERR the transaction exceeds the limits");
        }
        if !self.failed {
            self.commands.push(words.iter().map(|word| Box::from(*word)).collect());
        }
        RespReply::Status("QUEUED".into())
    }

    /// The commands to execute; `None` if the transaction failed.
    pub(crate) fn commands(self) -> Option<Vec<Vec<Box<[u8]>>>> {
        (!self.failed).then_some(self.commands)
    }
}
