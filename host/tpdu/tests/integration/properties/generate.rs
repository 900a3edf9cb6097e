//! Generators.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tpdu::{
    Alphabet, Command, CommandType, Deliver, DeliverReport, FailureCause, FromMs, Parameters, StatusReport,
    Submit, SubmitReport, TimeStamp, ToMs, TpAddress, TpStatus, UserData, Validity,
};

fn number() -> impl Strategy<Value = TpAddress> {
    let ton = prop::sample::select(vec![0_u8, 1, 2, 3, 4, 6, 7]);
    (ton, 0..16_u8, "[0-9*#abc]{0,20}").prop_map(|(ton, npi, digits)| TpAddress {
        ton,
        npi,
        value: digits.as_bytes().into(),
    })
}

fn name() -> impl Strategy<Value = TpAddress> {
    (0..16_u8, vec(0..0x80_u8, 0..=11)).prop_map(|(npi, septets)| TpAddress {
        ton: 5,
        npi,
        value: septets.into(),
    })
}

pub(crate) fn address() -> impl Strategy<Value = TpAddress> {
    prop_oneof![number(), name()]
}

/// Any time from 1990 to 2089 in any zone.
pub(crate) fn time() -> impl Strategy<Value = TimeStamp> {
    let span = 631_238_400_000_u64..3_786_825_600_000;
    (span, -79..80_i8).prop_map(|(ms, quarters)| TimeStamp::at(ms, quarters).expect("within the years"))
}

pub(crate) fn validity() -> impl Strategy<Value = Validity> {
    let bcd = |limit: u8| (0..limit).prop_map(|number| ((number % 10) << 4) | (number / 10));
    let flags = || prop::sample::select(vec![0_u8, 0x40]);
    let clock = (flags(), bcd(100), bcd(60), bcd(60), any::<[u8; 3]>());
    prop_oneof![
        Just(Validity::None),
        any::<u8>().prop_map(Validity::Relative),
        time().prop_map(Validity::Absolute),
        (flags(), any::<[u8; 6]>())
            .prop_map(|(first, [a, b, c, d, e, f])| { Validity::Enhanced([first | 1, a, b, c, d, e, f]) }),
        (flags(), 1..=255_u8).prop_map(|(first, seconds)| Validity::Enhanced([
            first | 2,
            seconds,
            0,
            0,
            0,
            0,
            0
        ])),
        clock.prop_map(|(first, hours, minutes, seconds, [a, b, c])| {
            Validity::Enhanced([first | 3, hours, minutes, seconds, a, b, c])
        }),
    ]
}

/// Octets in SMPP form that fit into one short message; with a header if the flag is set.
pub(crate) fn text(alphabet: Alphabet) -> impl Strategy<Value = (bool, Vec<u8>)> {
    let most: u8 = if alphabet == Alphabet::Gsm7 { 0x7F } else { 0xFF };
    let units = vec(0..=most, 0..=160);
    (option::of(vec(any::<u8>(), 0..=139)), units).prop_map(move |(header, mut units)| {
        let mut octets = Vec::new();
        if let Some(header) = &header {
            octets.push(header.len() as u8);
            octets.extend(header);
        }
        let room = if alphabet == Alphabet::Gsm7 {
            160 - (octets.len() * 8).div_ceil(7)
        } else {
            140 - octets.len()
        };
        units.truncate(room);
        octets.extend(units);
        (header.is_some(), octets)
    })
}

pub(crate) fn user_data(data_coding: u8) -> impl Strategy<Value = UserData> {
    let alphabet = Alphabet::of(data_coding);
    text(alphabet).prop_map(move |(udhi, octets)| UserData::pack(alphabet, udhi, &octets).expect("it fits"))
}

fn coded() -> impl Strategy<Value = (u8, UserData)> {
    any::<u8>().prop_flat_map(|data_coding| (Just(data_coding), user_data(data_coding)))
}

/// Parameters with at most `most` octets of user data.
fn parameters(most: usize) -> impl Strategy<Value = Parameters> {
    let coded = option::of(any::<u8>())
        .prop_flat_map(|coding| (Just(coding), option::of(user_data(coding.unwrap_or(0)))));
    (option::of(any::<u8>()), coded).prop_map(move |(protocol_id, (data_coding, user_data))| Parameters {
        protocol_id,
        data_coding,
        user_data: user_data.filter(|data| data.octets.len() <= most),
    })
}

fn submit() -> impl Strategy<Value = Submit> {
    (any::<[bool; 3]>(), any::<[u8; 2]>(), address(), validity(), coded()).prop_map(
        |(
            [reject_duplicates, reply_path, status_report_request],
            [message_reference, protocol_id],
            destination,
            validity,
            (data_coding, user_data),
        )| {
            Submit {
                reject_duplicates,
                reply_path,
                status_report_request,
                message_reference,
                destination,
                protocol_id,
                data_coding,
                validity,
                user_data,
            }
        },
    )
}

fn deliver() -> impl Strategy<Value = Deliver> {
    (any::<[bool; 4]>(), any::<u8>(), address(), time(), coded()).prop_map(
        |(
            [more_messages, loop_prevention, status_report_indication, reply_path],
            protocol_id,
            originator,
            service_centre_time,
            (data_coding, user_data),
        )| {
            Deliver {
                more_messages,
                loop_prevention,
                status_report_indication,
                reply_path,
                originator,
                protocol_id,
                data_coding,
                service_centre_time,
                user_data,
            }
        },
    )
}

fn status_report() -> impl Strategy<Value = StatusReport> {
    (any::<[bool; 3]>(), any::<[u8; 2]>(), address(), [time(), time()], parameters(131)).prop_map(
        |(
            [more_messages, loop_prevention, about_command],
            [message_reference, status],
            recipient,
            [service_centre_time, discharge_time],
            parameters,
        )| {
            StatusReport {
                more_messages,
                loop_prevention,
                about_command,
                message_reference,
                recipient,
                service_centre_time,
                discharge_time,
                status: TpStatus(status),
                parameters,
            }
        },
    )
}

fn cause() -> impl Strategy<Value = Option<FailureCause>> {
    option::of(any::<u8>().prop_map(FailureCause))
}

fn command() -> impl Strategy<Value = Command> {
    (any::<[bool; 2]>(), any::<[u8; 4]>(), address(), vec(any::<u8>(), 0..=146)).prop_map(
        |(
            [status_report_request, udhi],
            [message_reference, protocol_id, kind, message_number],
            destination,
            data,
        )| Command {
            status_report_request,
            udhi,
            message_reference,
            protocol_id,
            kind: CommandType(kind),
            message_number,
            destination,
            data: data.into(),
        },
    )
}

/// A TPDU from a handset, and whether it belongs in an RP-ERROR.
pub(crate) fn from_ms() -> impl Strategy<Value = (FromMs, bool)> {
    let report = (cause(), parameters(140)).prop_map(|(cause, parameters)| {
        (FromMs::DeliverReport(DeliverReport { cause, parameters }), cause.is_some())
    });
    prop_oneof![
        submit().prop_map(|submit| (FromMs::Submit(submit), false)),
        report,
        command().prop_map(|command| (FromMs::Command(command), false)),
    ]
}

/// A TPDU from a service centre, and whether it belongs in an RP-ERROR.
pub(crate) fn to_ms() -> impl Strategy<Value = (ToMs, bool)> {
    let report = (cause(), time(), parameters(140)).prop_map(|(cause, service_centre_time, parameters)| {
        let report = SubmitReport { cause, service_centre_time, parameters };
        (ToMs::SubmitReport(report), cause.is_some())
    });
    prop_oneof![
        deliver().prop_map(|deliver| (ToMs::Deliver(deliver), false)),
        report,
        status_report().prop_map(|report| (ToMs::StatusReport(report), false)),
    ]
}
