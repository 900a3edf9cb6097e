//! Makes a case of a fault in the appliance, so that the author can repeat it.

use crate::case_details::{CaseChanges, CaseTlvs};
use crate::case_front_end::CaseRequest;
use crate::case_peer::{CaseCallback, CaseSubmission};
use crate::case_quality;
use crate::case_receipt::{CaseAcceptedSubmission, CaseEvent};
use crate::case_writer;
use crate::cases::{Case, ExpectedAnswer};
use crate::plugin_host::{
    CaseAddress, CaseAdvice, CaseAttempt, CaseErrorClass, CaseFirstLeg, CaseMessage, CasePeerState,
    CasePoolState, CaseQuestion, CaseSettlement, CaseSetup, CaseTable, CaseText, CounterPreset,
};
use capabilities::TableKind;
use hooks::{Binding, FailedQuestion, FaultDetails, HostAnswer};
use model::{Address, Directory, ErrorClass, Message, Timestamp};
use std::time::Duration;

/// The case of a fault, in the format of `cases.toml`: its question, the policy document, the time, and the host's answers as
/// far as they were recorded. It expects the fault, so it passes as long as the plugin fails.
#[must_use]
pub fn fault_case(details: &FaultDetails, directory: &Directory) -> String {
    let case = case(details, directory);
    let words =
        "# This case passes as long as the plugin fails. Replace `expect` by the answer that you want.\n";
    format!("\n{words}{}", case_writer::write(&case, &CaseSetup::default()))
}

fn case(details: &FaultDetails, directory: &Directory) -> Case {
    let name = format!("fault of {} {} at {}", details.by.plugin, details.by.version, details.at.0);
    let expected = ExpectedAnswer::Fault(details.fault.kind.name().to_owned());
    let asked = (&*details.binding, details.at, &details.question);
    asked_case(asked, &details.host_answers, directory, name, expected)
}

/// The case of a question with the host's answers to it.
pub(crate) fn asked_case(
    (binding, at, question_asked): (&Binding, Timestamp, &FailedQuestion),
    host_answers: &[HostAnswer],
    directory: &Directory,
    name: String,
    expected: ExpectedAnswer,
) -> Case {
    let mut setup = CaseSetup { policy: binding.policy.clone(), now: at.0, ..CaseSetup::default() };
    let mut attributes = Vec::new();
    for answer in host_answers {
        match answer {
            HostAnswer::Peer(name, Some(state)) => {
                let state = CasePeerState { links: state.links, queued: state.queued };
                setup.peers.insert(name.clone(), state);
            }
            HostAnswer::Pool(name, Some(state)) => {
                let hooks::PoolState { ready, busy, down, total } = *state;
                setup.pools.insert(name.clone(), CasePoolState { ready, busy, down, total });
            }
            HostAnswer::Counter { name, key, before, window } => {
                let known = |preset: &CounterPreset| preset.name == *name && preset.key == *key;
                let amount = u32::try_from(*before).unwrap_or(u32::MAX);
                if amount > 0 && !setup.counters.iter().any(known) {
                    let (name, key) = (name.clone(), key.clone());
                    setup.counters.push(CounterPreset { name, key, amount, window_ms: *window });
                }
            }
            HostAnswer::Table(table, key, value) => {
                let empty = || CaseTable { kind: TableKind::Prefix, rows: Default::default() };
                let rows = &mut setup.tables.entry(table.clone()).or_insert_with(empty).rows;
                rows.extend(value.as_ref().map(|value| (key.clone(), value.clone())));
            }
            HostAnswer::Quality { peer, dimension, value, window, figures } => {
                case_quality::add_answer(&mut setup, (peer, *window), (dimension, value), figures);
            }
            HostAnswer::Attribute(name, Some(value)) => attributes.push((name.clone(), value.clone())),
            HostAnswer::Peer(_, None) | HostAnswer::Pool(_, None) | HostAnswer::Attribute(_, None) => {}
        }
    }
    setup.grants.tables = setup.tables.keys().cloned().collect();
    // Names in the plugin's document must exist; the binding's other peers do not matter.
    let mut asked = question(question_asked, directory);
    if let CaseQuestion::Screen(message)
    | CaseQuestion::Submit(CaseSubmission { message, .. })
    | CaseQuestion::Route(message)
    | CaseQuestion::Next(message, _)
    | CaseQuestion::Receipt(message, ..)
    | CaseQuestion::Price(message, _) = &mut asked
    {
        message.attributes.extend(attributes);
    }
    Case {
        name,
        setup,
        questions: vec![asked],
        expected,
        sender: None,
        text: None,
        changes: CaseChanges::default(),
        note: None,
        advice: CaseAdvice::default(),
        wait: None,
    }
}

fn question(question: &FailedQuestion, directory: &Directory) -> CaseQuestion {
    match question {
        FailedQuestion::Screen(asked) => CaseQuestion::Screen(message(asked, directory)),
        FailedQuestion::Route(asked) => CaseQuestion::Route(message(asked, directory)),
        FailedQuestion::LookUp(number) => CaseQuestion::LookUp(CaseAddress {
            ton: u8::from(number.international),
            npi: 1,
            value: number.text().to_owned(),
        }),
        FailedQuestion::Resolve(number) => CaseQuestion::Resolve(number.clone()),
        FailedQuestion::Next(asked) => {
            let (asked, attempt) = &**asked;
            let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let attempt = CaseAttempt {
                number: attempt.number,
                leg: attempt.leg.0,
                legs: attempt.leg.1,
                peer: directory.name(attempt.peer).to_string(),
                class: match attempt.class {
                    ErrorClass::Temporary | ErrorClass::ThisMessage => CaseErrorClass::Temporary,
                    ErrorClass::Permanent | ErrorClass::UnknownSubscriber | ErrorClass::NumberMoved => {
                        CaseErrorClass::Permanent
                    }
                    ErrorClass::Absent => CaseErrorClass::Absent,
                    ErrorClass::MemoryFull => CaseErrorClass::MemoryFull,
                    ErrorClass::Throttled | ErrorClass::QueueFull => CaseErrorClass::Throttled,
                },
                code: attempt.code,
                age_ms: milliseconds(attempt.age),
                left_ms: milliseconds(attempt.left),
            };
            CaseQuestion::Next(message(asked, directory), attempt)
        }
        FailedQuestion::Receipt(asked) => {
            let (asked, submission, event) = &**asked;
            let peer = directory.name(submission.peer).to_string();
            let submission = CaseAcceptedSubmission::of(*submission, peer);
            CaseQuestion::Receipt(message(asked, directory), submission, CaseEvent::of(*event))
        }
        FailedQuestion::Price(asked) => {
            let (asked, leg) = &**asked;
            let leg = leg
                .as_ref()
                .map(|leg| CaseFirstLeg { peer: directory.name(leg.peer).to_string(), cost: leg.cost });
            CaseQuestion::Price(message(asked, directory), leg)
        }
        FailedQuestion::Submit(submission) => CaseQuestion::Submit(CaseSubmission {
            message: message(&submission.message, directory),
            peer: submission.peer.to_string(),
            number: submission.ticket.attempt,
            wants_receipts: submission.want_dlr,
        }),
        FailedQuestion::Callback(request) => CaseQuestion::Callback(CaseCallback::of(request)),
        FailedQuestion::Read(request) => CaseQuestion::Read(CaseRequest::of(request)),
        FailedQuestion::Settle(settlements) => CaseQuestion::Settle(
            settlements
                .iter()
                .map(|one| CaseSettlement {
                    serial: one.serial,
                    message: one.message.0,
                    account: one.account.to_string(),
                    amount: one.amount,
                    captured: one.captured,
                    at: one.at.0,
                })
                .collect(),
        ),
    }
}

fn address(address: &Address) -> CaseAddress {
    CaseAddress { ton: address.ton, npi: address.npi, value: address.text().into_owned() }
}

fn message(message: &Message, directory: &Directory) -> CaseMessage {
    let service_type = String::from_utf8_lossy(&message.service_type).into_owned();
    let changes = message.routed.changes.as_deref();
    let attributes = changes.map(CaseChanges::of).unwrap_or_default().attributes;
    CaseMessage {
        origin: directory.name(message.origin).to_string(),
        source: address(&message.source),
        destination: address(&message.destination),
        service_type: Some(service_type).filter(|text| !text.is_empty()),
        data_coding: message.text.data_coding,
        priority: message.priority.level(),
        text: CaseText { octets: message.text.octets.to_vec(), udhi: message.text.udhi },
        wants_receipt: message.dlr_request.any(),
        esm_class: message.esm_class,
        protocol_id: message.protocol_id,
        tlvs: CaseTlvs::read(&message.tlvs),
        attributes,
    }
}
