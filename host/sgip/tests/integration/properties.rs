//! Properties of all octets and all PDUs.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use sgip::{
    Bind, Deliver, Event, HEADER_LENGTH, LoginType, Pdu, Report, ResultCode, Sequence, Session, SgipCommand,
    SgipOptions, Submit, text,
};
use std::time::Instant;

fn field(width: usize) -> impl Strategy<Value = Bytes> {
    vec(1_u8.., 0..=width).prop_map(Bytes::from)
}

fn octets(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn sequence() -> impl Strategy<Value = Sequence> {
    any::<(u32, u32, u32)>().prop_map(|(node, time, counter)| Sequence { node, time, counter })
}

fn submit() -> impl Strategy<Value = Submit> {
    let numbers = (field(21), field(21), vec(field(21), 0..100), field(5), field(10));
    let fees = (field(6), field(6), field(16), field(16));
    (numbers, fees, any::<[u8; 10]>(), octets(200), any::<[u8; 8]>()).prop_map(
        |((sp_number, charge_number, users, corp_id, service_type), fees, flags, content, reserve)| {
            let (fee_value, given_value, expire_time, schedule_time) = fees;
            let [
                fee_type,
                agent_flag,
                mo_related,
                priority,
                report_flag,
                tp_pid,
                tp_udhi,
                coding,
                message_type,
                _,
            ] = flags;
            Submit {
                sp_number,
                charge_number,
                users,
                corp_id,
                service_type,
                fee_type,
                fee_value,
                given_value,
                agent_flag,
                mo_related,
                priority,
                expire_time,
                schedule_time,
                report_flag,
                tp_pid,
                tp_udhi,
                coding,
                message_type,
                content,
                reserve,
            }
        },
    )
}

fn pdu() -> impl Strategy<Value = Pdu> {
    let login = (any::<u8>(), field(16), field(16), any::<[u8; 8]>()).prop_map(
        |(login_type, name, password, reserve)| {
            Pdu::Bind(Bind { login_type: LoginType(login_type), name, password, reserve })
        },
    );
    let deliver = (field(21), field(21), any::<[u8; 3]>(), octets(200), any::<[u8; 8]>()).prop_map(
        |(user, sp_number, [tp_pid, tp_udhi, coding], content, reserve)| {
            Pdu::Deliver(Deliver { user, sp_number, tp_pid, tp_udhi, coding, content, reserve })
        },
    );
    let report = (sequence(), field(21), any::<[u8; 3]>(), any::<[u8; 8]>()).prop_map(
        |(submit, user, [report_type, state, error], reserve)| {
            Pdu::Report(Report { submit, report_type, user, state, error, reserve })
        },
    );
    let answer = (
        proptest::sample::select(vec![SgipCommand::Bind, SgipCommand::Submit, SgipCommand::Deliver]),
        any::<u8>(),
    )
        .prop_map(|(to, code)| Pdu::answer(to, ResultCode(code)));
    prop_oneof![
        login,
        submit().prop_map(Pdu::Submit),
        deliver,
        report,
        answer,
        Just(Pdu::Unbind),
        Just(Pdu::UnbindAnswer)
    ]
}

fn events(octets: &[u8], sizes: &[usize]) -> Vec<String> {
    let now = Instant::now();
    let accepts = vec![SgipCommand::Submit, SgipCommand::Deliver, SgipCommand::Report];
    let mut session = Session::acceptor(now, SgipOptions { accepts, ..SgipOptions::default() });
    let mut seen = Vec::new();
    let mut rest = octets;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(rest.len()).clamp(1, rest.len());
        let (chunk, after) = rest.split_at(size);
        rest = after;
        session.receive(now, chunk);
        while let Some(event) = session.poll_event() {
            seen.push(format!("{event:?}"));
            match event {
                Event::Bind(_) => session.accept_bind(now),
                Event::Command { number, .. } => {
                    session.respond(number, ResultCode::OK);
                    session.process(now);
                }
                _ => {}
            }
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn pdus_round_trip(pdu in pdu(), sequence in sequence()) {
        let octets = pdu.to_bytes(sequence);
        prop_assert_eq!(octets.len(), pdu.length());
        prop_assert_eq!(Pdu::decode(pdu.id(), &octets[HEADER_LENGTH..]).unwrap(), pdu.clone());
        for cut in [HEADER_LENGTH, octets.len() - 1] {
            if (HEADER_LENGTH..octets.len()).contains(&cut) {
                prop_assert!(Pdu::decode(pdu.id(), &octets[HEADER_LENGTH..cut]).is_err());
            }
        }
    }

    #[test]
    fn any_octets_are_read_or_refused(id in any::<u32>(), known in 1_u32..0x12, answer in any::<bool>(), body in octets(600)) {
        let _ = Pdu::decode(id, &body);
        let id = known | if answer { 0x8000_0000 } else { 0 };
        if let Ok(pdu) = Pdu::decode(id, &body) {
            // A decoded PDU survives its encoding.
            let octets = pdu.to_bytes(Sequence::default());
            prop_assert_eq!(Pdu::decode(id, &octets[HEADER_LENGTH..]).unwrap(), pdu);
        }
    }

    #[test]
    fn any_split_gives_the_same(pdus in vec((sequence(), pdu()), 1..8), rubbish in octets(60), sizes in vec(1_usize..50, 1..9)) {
        let login = Bind { login_type: LoginType::SP, ..Bind::default() };
        let mut octets = Pdu::Bind(login).to_bytes(Sequence::default()).to_vec();
        for (sequence, pdu) in &pdus {
            octets.extend_from_slice(&pdu.to_bytes(*sequence));
        }
        octets.extend_from_slice(&rubbish);
        prop_assert_eq!(events(&octets, &sizes), events(&octets, &[octets.len()]));
    }

    #[test]
    fn segments_of_a_text_make_up_the_text(words in "\\PC{0,400}", gbk in any::<bool>()) {
        let (coding, octets) = match text::encode_as(&words, text::Coding::GBK).filter(|_| gbk) {
            Some(octets) => (text::Coding::GBK, octets),
            None => text::encode(&words),
        };
        let parts = text::split(coding, &octets, text::SegmentReference::Short(9)).unwrap();
        let mut again = String::new();
        for part in &parts {
            prop_assert!(part.len() <= coding.limit());
            let body = if parts.len() > 1 { text::header(part).unwrap().1 } else { part };
            again.push_str(&text::decode(coding.0, body));
        }
        prop_assert_eq!(again, words);
    }
}
