//! Generates `docs/reference/status-map.md` from the functions that map codes.

use super::{deliver_status, submit_status};
use cmpp::Cmpp;
use model::{DlrState, ErrorClass, Refusal, RejectReason};
use sgip::{Dialect, ResultCode};
use smgp::Smgp;
use smpp::CommandStatus;
use sp_session::SpProtocol;
use std::fmt::Write as _;

const HEAD: &str = "# Error codes\n\n\
    Generated from `host/links` and the protocol crates (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
    ## Refused submissions\n\n\
    The code that a submitter gets if the daemon refuses its message. The column *peer* is the command_status for an MO message or a \
    DLR of an SMPP peer. An SP that speaks SGIP 1.3 gets 33 instead of 88.\n\n\
    | refusal | SMPP | SGIP | CMPP 3.0 | CMPP 2.0 | SMGP | peer |\n|---|---|---|---|---|---|---|\n";

const CLASSES: &str = "\n## Refusals by peers\n\n\
    The error class that the daemon gives to a peer's refusal. `error-classes` of a peer or gateway overrides single codes.\n\n\
    | class | what follows |\n|---|---|\n";

const SMPP: &str = "\n### SMPP command_status\n\nCodes that are not listed are permanent.\n\n| code | name | class |\n|---|---|---|\n";

const SGIP: &str = "\n### SGIP result\n\n\
    Codes that are not listed are permanent.\n\n| code | meaning | class in 1.2 | class in 1.3 |\n|---|---|---|---|\n";

const STATES: &str = "\n## States of delivery\n\n\
    What an SP or ESME is told. An SGIP Report has the operator's error code instead of the second number, if there is one.\n\n\
    | state | SMPP message_state | SGIP State / ErrorCode | SMPP, CMPP and SMGP `stat` |\n|---|---|---|---|\n";

const WORDS: &str = "\n### Words of CMPP and SMGP gateways\n\nWhat is read. Any other word is `Undeliverable`.\n\n\
    | word | state | |\n|---|---|---|\n";

const READ_WORDS: [&str; 28] = [
    "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "MI:", "MC:", "IC:", "CC:",
    "DC:", "SC:", "MJ:", "MK:", "ML:", "MM:", "MN:", "CB:", "DB:", "MB:", "IB:", "SB:", "CA:", "DA:", "MA:",
    "IA:", "SA:",
];

const REFUSALS: [Refusal; 21] = [
    Refusal::QueueFull,
    Refusal::Throttled,
    Refusal::QuotaExceeded,
    Refusal::Rejected(RejectReason::NoRoute),
    Refusal::Rejected(RejectReason::InvalidDestination),
    Refusal::Rejected(RejectReason::InvalidSource),
    Refusal::Rejected(RejectReason::Prohibited),
    Refusal::Rejected(RejectReason::NotAuthorised),
    Refusal::Rejected(RejectReason::TryLater),
    Refusal::Rejected(RejectReason::Fault),
    Refusal::Rejected(RejectReason::OptedOut),
    Refusal::Rejected(RejectReason::NoCredit),
    Refusal::Rejected(RejectReason::PriceTooHigh),
    Refusal::BadSchedule,
    Refusal::Expired,
    Refusal::UnknownMessage,
    Refusal::WrongState,
    Refusal::Internal,
    Refusal::ShuttingDown,
    Refusal::KeyReused,
    Refusal::KeysFull { retry_after: 0 },
];

/// The error classes with their consequences.
const MEANINGS: [(ErrorClass, &str); 6] = [
    (ErrorClass::Temporary, "the message is retried by its schedule"),
    (ErrorClass::Permanent, "this leg is not retried"),
    (ErrorClass::Throttled, "the peer waits, not the message; the daemon learns the peer's rate"),
    (ErrorClass::QueueFull, "as for a throttling peer"),
    (ErrorClass::Absent, "the message waits until the subscriber is reachable"),
    (ErrorClass::MemoryFull, "the message waits until the handset has memory"),
];

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Temporary => "temporary",
        ErrorClass::Permanent => "permanent",
        ErrorClass::Throttled => "throttled",
        ErrorClass::QueueFull => "queue-full",
        ErrorClass::Absent => "absent",
        ErrorClass::MemoryFull => "memory-full",
        ErrorClass::ThisMessage => "this-message",
        ErrorClass::UnknownSubscriber => "unknown-subscriber",
        ErrorClass::NumberMoved => "number-moved",
    }
}

fn page() -> String {
    let mut text = HEAD.to_owned();
    for refusal in REFUSALS {
        let (submit, deliver) = (submit_status(refusal), deliver_status(refusal));
        let _ = writeln!(
            text,
            "| `{}` | {submit} | {} | {} | {} | {} | {deliver} |",
            refusal.name(),
            ResultCode::of(refusal),
            Cmpp::status_of(refusal, 0x30),
            Cmpp::status_of(refusal, 0x20),
            Smgp::status_of(refusal, 0x30),
        );
    }
    text.push_str(CLASSES);
    for (class, meaning) in MEANINGS {
        let _ = writeln!(text, "| `{}` | {meaning} |", class_name(class));
    }
    text.push_str(SMPP);
    for code in 1..=0x1FF {
        let status = CommandStatus(code);
        if status.class() != ErrorClass::Permanent {
            let _ = writeln!(text, "| 0x{code:02X} | {} | {} |", status.name(), class_name(status.class()));
        }
    }
    text.push_str(SGIP);
    for code in 1..=u8::MAX {
        let result = ResultCode(code);
        let classes = [Dialect::V12, Dialect::V13].map(|dialect| result.class(dialect));
        if classes != [ErrorClass::Permanent; 2] {
            let [first, second] = classes.map(class_name);
            let _ = writeln!(text, "| {code} | {} | {first} | {second} |", result.meaning(Dialect::V12));
        }
    }
    statuses::<Cmpp>(&mut text, "CMPP Result");
    statuses::<Smgp>(&mut text, "SMGP Status");
    text.push_str(STATES);
    for state in (0..=9).filter_map(DlrState::from_octet) {
        let word = String::from_utf8_lossy(sp_session::word_of(state));
        let _ = writeln!(text, "| {state:?} | {} | {} | {word} |", state as u8, sgip_state(state));
    }
    text.push_str(WORDS);
    for word in READ_WORDS {
        let state = sp_session::state_of(word.as_bytes());
        let ends = if sp_session::is_final(state) { "final" } else { "another report follows" };
        let _ = writeln!(text, "| `{word}` | {state:?} | {ends} |");
    }
    text
}

/// Appends the results of a gateway that are not permanent or have a meaning.
fn statuses<P: SpProtocol>(text: &mut String, title: &str) {
    let _ = writeln!(
        text,
        "\n### {title}\n\nCodes that are not listed are permanent.\n\n| code | meaning | class |\n|---|---|---|"
    );
    for code in 1..=255 {
        let (meaning, class) = (P::status_text(code), P::class(code));
        if class != ErrorClass::Permanent {
            let _ = writeln!(text, "| {code} | {meaning} | {} |", class_name(class));
        }
    }
}

/// The State of an SGIP Report.
fn sgip_state(state: DlrState) -> &'static str {
    match state {
        DlrState::Delivered | DlrState::Accepted => "0",
        DlrState::Scheduled | DlrState::Enroute => "1",
        DlrState::Expired => "2 / 25",
        DlrState::Rejected => "2 / 30",
        DlrState::Undeliverable => "2 / 28",
        _ => "2 / 32",
    }
}

#[test]
fn status_map_is_up_to_date() {
    testkit::reference_page::check("docs/reference/status-map.md", &page());
}

#[test]
fn every_class_in_the_tables_is_explained() {
    let smpp = (1..=0x1FF).map(|code| CommandStatus(code).class());
    let sgip = (1..=u8::MAX)
        .flat_map(|code| [Dialect::V12, Dialect::V13].map(|dialect| ResultCode(code).class(dialect)));
    let sp = (1..=255).flat_map(|code| [Cmpp::class(code), Smgp::class(code)]);
    for class in smpp.chain(sgip).chain(sp) {
        assert!(MEANINGS.iter().any(|(explained, _)| *explained == class), "{class:?}");
    }
    let reasons = REFUSALS.iter().filter(|refusal| matches!(refusal, Refusal::Rejected(_))).count();
    let known = (0..=u8::MAX).filter_map(RejectReason::from_octet).count();
    assert_eq!(reasons, known, "a reason is missing in the table");
}
