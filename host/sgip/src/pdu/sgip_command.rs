/// An SGIP command (SGIP 1.2 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum SgipCommand {
    Bind = 1,
    Unbind = 2,
    Submit = 3,
    Deliver = 4,
    Report = 5,
    AddSp = 6,
    ModifySp = 7,
    DeleteSp = 8,
    QueryRoute = 9,
    AddTeleSeg = 0xA,
    ModifyTeleSeg = 0xB,
    DeleteTeleSeg = 0xC,
    AddSmg = 0xD,
    ModifySmg = 0xE,
    DeleteSmg = 0xF,
    CheckUser = 0x10,
    UserReport = 0x11,
    Trace = 0x1000,
}

/// Set in the ids of answers.
const ANSWER: u32 = 0x8000_0000;

impl SgipCommand {
    /// All commands.
    pub const ALL: [Self; 18] = [
        Self::Bind,
        Self::Unbind,
        Self::Submit,
        Self::Deliver,
        Self::Report,
        Self::AddSp,
        Self::ModifySp,
        Self::DeleteSp,
        Self::QueryRoute,
        Self::AddTeleSeg,
        Self::ModifyTeleSeg,
        Self::DeleteTeleSeg,
        Self::AddSmg,
        Self::ModifySmg,
        Self::DeleteSmg,
        Self::CheckUser,
        Self::UserReport,
        Self::Trace,
    ];

    /// The command id.
    #[must_use]
    pub fn id(self) -> u32 {
        self as u32
    }

    /// The command id of its answer.
    #[must_use]
    pub fn answer_id(self) -> u32 {
        self as u32 | ANSWER
    }

    /// The command of an id, and whether the id is that of its answer.
    #[must_use]
    pub fn of(id: u32) -> Option<(Self, bool)> {
        let command = Self::ALL.into_iter().find(|command| command.id() == id & !ANSWER)?;
        Some((command, id & ANSWER != 0))
    }
}
