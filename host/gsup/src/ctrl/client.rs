use super::{Reply, Subject, Subscriber, Variable, put_question};
use crate::ipa::{self, Frame, FrameError};
use bytes::BytesMut;
use std::collections::{HashMap, VecDeque};

/// What is asked for about each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ask {
    /// The IMSI alone, where the HLR can tell it alone.
    #[default]
    Imsi,
    /// Everything: also where the subscriber was last.
    Everything,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There is such a subscriber.
    Found(Subscriber),
    /// There is none.
    Unknown,
    /// The HLR could not tell; its words.
    Failed(String),
    /// Nothing came in time.
    Late,
}

/// What the owner must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An answer to the question with this mark.
    Answer {
        /// The owner's mark.
        token: u64,
        /// It.
        answer: Answer,
    },
    /// The connection cannot be read any further. The last event.
    Lost(FrameError),
}

#[derive(Debug)]
struct Question {
    token: u64,
    subject: Subject,
    variable: Variable,
    asked: u64,
}

/// One connection to an HLR's control interface. Any number of questions may be open at a time.
///
/// `now` is milliseconds from any fixed point.
#[derive(Debug)]
pub struct Client {
    ask: Ask,
    /// How long an answer may take, in milliseconds.
    patience: u64,
    /// The HLR does not know the short question: an old one.
    knows_no_imsi: bool,
    next_id: u32,
    questions: HashMap<u32, Question>,
    /// Ids in the order in which they were asked; those of answered questions among them.
    order: VecDeque<u32>,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    lost: bool,
}

impl Client {
    /// A connection that was made now. `patience`: how long an answer may take, in milliseconds.
    #[must_use]
    pub fn new(ask: Ask, patience: u64) -> Self {
        Self {
            ask,
            patience,
            knows_no_imsi: false,
            next_id: 1,
            questions: HashMap::new(),
            order: VecDeque::new(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            lost: false,
        }
    }

    /// Asks about a subscriber; `token` is the owner's mark for it.
    pub fn look_up(&mut self, now: u64, token: u64, subject: impl Into<Subject>) {
        let subject = subject.into();
        let variable = match (self.ask, &subject) {
            (Ask::Imsi, Subject::Number(_)) if !self.knows_no_imsi => Variable::Imsi,
            _ => Variable::Info,
        };
        self.put(Question { token, subject, variable, asked: now });
    }

    fn put(&mut self, question: Question) {
        let id = self.next_id;
        // Zero is not a number for a question.
        self.next_id = id.checked_add(1).unwrap_or(1);
        put_question(&mut self.output, id, &question.subject, question.variable);
        self.order.push_back(id);
        self.questions.insert(id, question);
    }

    /// Takes octets as they came off the socket, in any split.
    pub fn receive(&mut self, octets: &[u8]) {
        if self.lost {
            return;
        }
        self.input.extend_from_slice(octets);
        loop {
            match Frame::take(&mut self.input, ipa::MOST) {
                Ok(None) => return,
                Ok(Some(Frame::Ctrl(payload))) => self.handle(&payload),
                Ok(Some(_)) => {}
                Err(error) => {
                    self.lost = true;
                    self.events.push_back(Event::Lost(error));
                    return;
                }
            }
        }
    }

    fn handle(&mut self, payload: &[u8]) {
        match Reply::parse(payload) {
            Some(Reply::Value { id, value, .. }) => {
                if let Some(question) = self.questions.remove(&id) {
                    let subscriber = match question.variable {
                        Variable::Info => Subscriber::parse(value),
                        Variable::Imsi => value.trim().parse().ok().map(|imsi| Subscriber {
                            imsi,
                            msisdn: match &question.subject {
                                Subject::Number(number) => Some(number.as_str().to_owned()),
                                Subject::Imsi(_) => None,
                            },
                            vlr_number: None,
                        }),
                    };
                    let answer = subscriber.map_or_else(
                        || Answer::Failed("the answer has no IMSI of 6 to 15 digits".to_owned()),
                        Answer::Found,
                    );
                    self.answer(&question, answer);
                }
            }
            Some(Reply::Error { id: Some(id), text }) => {
                if let Some(question) = self.questions.remove(&id) {
                    self.refused(question, text);
                }
            }
            Some(Reply::Error { id: None, .. } | Reply::Trap { .. }) | None => {}
        }
        self.forget_answered();
    }

    fn refused(&mut self, question: Question, text: &str) {
        let says = |words: &str| text.to_ascii_lowercase().contains(words);
        if says("no such subscriber") {
            self.answer(&question, Answer::Unknown);
        } else if says("command not found") && question.variable == Variable::Imsi {
            self.knows_no_imsi = true;
            self.put(Question { variable: Variable::Info, ..question });
        } else {
            self.answer(&question, Answer::Failed(text.to_owned()));
        }
    }

    fn answer(&mut self, question: &Question, answer: Answer) {
        self.events.push_back(Event::Answer { token: question.token, answer });
    }

    fn forget_answered(&mut self) {
        while self.order.front().is_some_and(|id| !self.questions.contains_key(id)) {
            self.order.pop_front();
        }
    }

    /// The next thing that the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets for the HLR; whole frames, however much of them the owner writes at a time.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// How many questions are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.questions.len()
    }

    /// When [`Client::tick`] wants to be called, at the latest.
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let oldest = self.questions.get(self.order.front()?)?;
        Some(oldest.asked.saturating_add(self.patience))
    }

    /// Gives up what has waited too long.
    pub fn tick(&mut self, now: u64) {
        while self.next_tick().is_some_and(|due| due <= now) {
            let question = self.order.pop_front().and_then(|id| self.questions.remove(&id));
            if let Some(question) = question {
                self.answer(&question, Answer::Late);
            }
            self.forget_answered();
        }
    }

    /// The connection is gone: the marks of all open questions, in the order in which they were asked.
    pub fn close(&mut self) -> Vec<u64> {
        self.lost = true;
        let questions = &mut self.questions;
        self.order.drain(..).filter_map(|id| questions.remove(&id)).map(|question| question.token).collect()
    }
}
