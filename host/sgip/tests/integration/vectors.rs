//! The worked examples of the protocol, octet by octet: each decodes to its fields and encodes to the same octets.

use bytes::Bytes;
use sgip::{
    Bind, CheckUser, CheckUserAnswer, Deliver, HEADER_LENGTH, Header, LoginType, Pdu, Report, ResultCode,
    RouteField, RouteRow, RouteValue, Sequence, SgipCommand, Submit, Trace, TraceAnswer, TraceHop,
    UserReport,
};

const SP: u32 = 3_010_012_345;
const GATEWAY: u32 = 101_001;

fn hex(text: &str) -> Vec<u8> {
    model::from_hex(&text.replace(char::is_whitespace, "")).unwrap()
}

#[track_caller]
fn same(octets: &[u8], sequence: Sequence, pdu: &Pdu) {
    let header = Header::peek(octets).unwrap();
    assert_eq!((header.length as usize, header.sequence), (octets.len(), sequence));
    assert_eq!(&Pdu::decode(header.command, &octets[HEADER_LENGTH..]).unwrap(), pdu);
    assert_eq!(pdu.to_bytes(sequence), octets);
}

fn sp(counter: u32) -> Sequence {
    Sequence { node: SP, time: 1_120_203_224 + counter, counter }
}

fn gateway(time: u32, counter: u32) -> Sequence {
    Sequence { node: GATEWAY, time, counter }
}

fn login(login_type: LoginType) -> Pdu {
    Pdu::Bind(Bind { login_type, name: "fakename".into(), password: "1234".into(), reserve: [0; 8] })
}

/// The Submit of example B.
fn submit() -> Submit {
    Submit {
        sp_number: "10655912345".into(),
        charge_number: "000000000000000000000".into(),
        users: vec!["8613012345678".into()],
        corp_id: "12345".into(),
        service_type: "TEST".into(),
        fee_type: 1,
        fee_value: "0".into(),
        given_value: "0".into(),
        mo_related: 2,
        report_flag: 1,
        coding: 15,
        content: Bytes::from_static(&[0xc4, 0xe3, 0xba, 0xc3]),
        ..Submit::default()
    }
}

#[test]
fn a_bind() {
    let octets = hex("0000003d00000001b36924b942c4f1d9 00000001 01 66616b656e616d650000000000000000
         31323334000000000000000000000000 0000000000000000");
    assert_eq!(octets.len(), 61);
    same(&octets, sp(1), &login(LoginType::SP));
    let answer = hex("0000001d80000001b36924b942c4f1d9 00000001 00 0000000000000000");
    same(&answer, sp(1), &Pdu::answer(SgipCommand::Bind, ResultCode::OK));
}

#[test]
fn b_submit() {
    let octets = hex(
        "000000a800000003b36924b942c4f1da 00000002313036353539313233343500 00000000000000000030303030303030
         30303030303030303030303030300138 36313330313233343536373800000000 00000000313233343554455354000000
         00000001300000000000300000000000 00020000000000000000000000000000 00000000000000000000000000000000
         0000000100000f0000000004c4e3bac3 0000000000000000",
    );
    assert_eq!(octets.len(), 168);
    same(&octets, sp(2), &Pdu::Submit(submit()));
    let answer = hex("0000001d80000003b36924b942c4f1da0000000200 0000000000000000");
    same(&answer, sp(2), &Pdu::answer(SgipCommand::Submit, ResultCode::OK));
}

#[test]
fn c_part_of_a_long_message_for_two_users() {
    let octets = hex("000000c300000003b36924b942c4f1db
         00000003313036353539313233343500
         00000000000000000000000000000000
         00000000000000000000000000000238
         36313330313233343536373800000000
         00000000383631333131323334353637
         38000000000000000031323334355445
         53540000000000000231300000000030
         00000000000002093236313233313233
         353935393033322b0000000000000000
         00000000000000000000010800000000
         0a0500032d02014f60597d0000000000
         000000");
    assert_eq!(octets.len(), 195);
    let part = Submit {
        charge_number: Bytes::new(),
        users: vec!["8613012345678".into(), "8613112345678".into()],
        fee_type: 2,
        fee_value: "10".into(),
        mo_related: 2,
        priority: 9,
        expire_time: "261231235959032+".into(),
        report_flag: 0,
        tp_udhi: 1,
        coding: 8,
        content: Bytes::from_static(&[5, 0, 3, 0x2d, 2, 1, 0x4f, 0x60, 0x59, 0x7d]),
        ..submit()
    };
    same(&octets, sp(3), &Pdu::Submit(part));
}

#[test]
fn d_and_e_reports() {
    let delivered = hex(
        "00000040000000050001 8a8942c4f2250000000bb36924b942c4f1da0000000200383631333031323334353637380000
         000000000000 0000 0000000000000000",
    );
    let report = Report { submit: sp(2), user: "8613012345678".into(), ..Report::default() };
    same(&delivered, gateway(1_120_203_301, 11), &Pdu::Report(report));
    let failed = hex(
        "00000040000000050001 8a8942c4f2260000000cb36924b942c4f1db0000000300383631333131323334353637380000
         000000000000 021d 0000000000000000",
    );
    let report =
        Report { submit: sp(3), user: "8613112345678".into(), state: 2, error: 29, ..Report::default() };
    same(&failed, gateway(1_120_203_302, 12), &Pdu::Report(report));
}

#[test]
fn f_deliver() {
    let octets = hex(
        "000000510000000400018a8942c4f227 0000000d383631333031323334353637 38000000000000000031303635353931
         32333435000000000000000000000000 0f00000004b2e2cad400000000000000 00",
    );
    let deliver = Deliver {
        user: "8613012345678".into(),
        sp_number: "10655912345".into(),
        coding: 15,
        content: Bytes::from_static(&[0xb2, 0xe2, 0xca, 0xd4]),
        ..Deliver::default()
    };
    same(&octets, gateway(1_120_203_303, 13), &Pdu::Deliver(deliver));
}

#[test]
fn g_and_h_login_of_the_gateway_and_leave() {
    let octets = hex(
        "0000003d0000000100018a8942c4f224 0000000a0266616b656e616d65000000 00000000003132333400000000000000
         00000000000000000000000000",
    );
    same(&octets, gateway(1_120_203_300, 10), &login(LoginType::GATEWAY));
    let unbind = hex("000000140000000200018a8942c4f2280000000e");
    same(&unbind, gateway(1_120_203_304, 14), &Pdu::Unbind);
    let answer = hex("000000148000000200018a8942c4f2280000000e");
    same(&answer, gateway(1_120_203_304, 14), &Pdu::UnbindAnswer);
    // With the body of the shared answer, as one server sends it.
    assert_eq!(Pdu::decode(0x8000_0002, &[0; 9]), Ok(Pdu::UnbindAnswer));
}

#[test]
fn every_layout_has_its_length() {
    let ten = Bytes::from_static(b"0123456789");
    let lengths: Vec<(Pdu, usize)> = vec![
        (login(LoginType::SP), 61),
        (Pdu::Unbind, 20),
        (Pdu::Submit(Submit { content: ten.clone(), ..submit() }), 143 + 21 + 10),
        (Pdu::Submit(Submit { users: vec![ten.clone(); 100], ..submit() }), 143 + 2100 + 4),
        (Pdu::Deliver(Deliver { content: ten.clone(), ..Deliver::default() }), 87),
        (Pdu::Report(Report::default()), 64),
        (Pdu::UserReport(UserReport { condition: 2, ..UserReport::default() }), 71),
        (Pdu::Trace(Trace::default()), 61),
        (Pdu::TraceAnswer(TraceAnswer { hops: vec![TraceHop::default(); 3], wide: false }), 21 + 3 * 47),
        (Pdu::TraceAnswer(TraceAnswer { hops: vec![TraceHop::default(); 3], wide: true }), 21 + 3 * 51),
        (Pdu::CheckUser(CheckUser { name: "n".into(), ..CheckUser::default() }), 81),
        (Pdu::CheckUserAnswer(CheckUserAnswer { status: 1, ..CheckUserAnswer::default() }), 30),
        (Pdu::answer(SgipCommand::AddSp, ResultCode::PARAMETER), 29),
    ];
    for (pdu, length) in lengths {
        assert_eq!(pdu.length(), length, "{pdu:?}");
        same(&pdu.to_bytes(sp(1)), sp(1), &pdu);
    }
}

#[test]
fn route_maintenance_has_its_lengths() {
    let expected = [
        (SgipCommand::AddSp, 70),
        (SgipCommand::ModifySp, 101),
        (SgipCommand::DeleteSp, 65),
        (SgipCommand::QueryRoute, 60),
        (SgipCommand::AddTeleSeg, 46),
        (SgipCommand::ModifyTeleSeg, 53),
        (SgipCommand::DeleteTeleSeg, 41),
        (SgipCommand::AddSmg, 70),
        (SgipCommand::ModifySmg, 76),
        (SgipCommand::DeleteSmg, 34),
    ];
    for (command, length) in expected {
        let fields = RouteField::layout(command).iter().map(|field| match field {
            RouteField::Text(width) => RouteValue::Text(Bytes::from(vec![b'7'; *width])),
            RouteField::Octet => RouteValue::Number(3),
            RouteField::Number => RouteValue::Number(0x7F00_0001),
        });
        let pdu = Pdu::Route { command, fields: fields.collect(), reserve: *b"LINK-ID1" };
        assert_eq!(pdu.length(), length, "{command:?}");
        same(&pdu.to_bytes(sp(1)), sp(1), &pdu);
    }
    let row = RouteRow {
        fields: vec![
            RouteValue::Number(1),
            RouteValue::Text("10655".into()),
            RouteValue::Text("TEST".into()),
            RouteValue::Text("12345".into()),
            RouteValue::Text("101001".into()),
            RouteValue::Number(0x0A00_0001),
            RouteValue::Text("user".into()),
            RouteValue::Text("secret".into()),
        ],
        reserve: [0; 8],
    };
    let answer = Pdu::RouteAnswer { result: ResultCode::OK, rows: vec![row.clone(), row] };
    assert_eq!(answer.length(), 25 + 2 * 87);
    same(&answer.to_bytes(sp(1)), sp(1), &answer);
    // A PDU without a body ends a table of several.
    let end = Pdu::RouteAnswer { result: ResultCode::OK, rows: Vec::new() };
    assert_eq!(Pdu::decode(SgipCommand::QueryRoute.answer_id(), &[]), Ok(end));
}

#[test]
fn check_05_text_fields_may_hold_anything() {
    let mut octets = Pdu::Submit(submit()).to_bytes(sp(1)).to_vec();
    // SPNumber: all 21 octets used; then garbage after the first NUL; then octets outside ASCII.
    octets[20..41].copy_from_slice(&[b'1'; 21]);
    let read = |octets: &[u8]| match Pdu::decode(3, &octets[HEADER_LENGTH..]).unwrap() {
        Pdu::Submit(submit) => submit.sp_number,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&octets), Bytes::from(vec![b'1'; 21]));
    octets[25] = 0;
    assert_eq!(read(&octets), "11111");
    octets[20..23].copy_from_slice(&[0xFF, 0xC4, 0x80]);
    assert_eq!(read(&octets), &[0xFF, 0xC4, 0x80, b'1', b'1'][..]);
}
