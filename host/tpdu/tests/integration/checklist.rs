//! Conformance tests for a service centre's codec (3GPP TS 23.040 and 23.038). Each test has the number of its check.
//!
//! | checks | clause |
//! |---|---|
//! | 01-09 | first octets and their bits (23.040 §9.2.2, §9.2.3.1 to .6, .17, .23, .25, .26, .28) |
//! | 10-15 | addresses (§9.1.2.5) |
//! | 16-19 | times and validity (§9.2.3.11, .12) |
//! | 20-24 | reports, causes and states (§9.2.2.1a, .2a, .3, §9.2.3.15, .22, .27) |
//! | 25-27 | commands (§9.2.2.4) |
//! | 28-33 | user data, headers, segments (§9.2.3.16, .24) |
//! | 34-37 | alphabets and data coding (23.038 §4, §6.1.2.1, §6.2.1, annex A) |

use tpdu::{
    Alphabet, Command, CommandType, ConcatReference, Deliver, DeliverReport, Error, FailureCause,
    FailureClass, FromMs, Language, Parameters, StatusClass, StatusReport, Submit, SubmitReport, TimeStamp,
    ToMs, TpAddress, TpStatus, UserData, Validity, smpp, split, text,
};

fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|each| each.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn time() -> TimeStamp {
    TimeStamp::at(1_703_367_462_000, -32).unwrap()
}

fn deliver() -> Deliver {
    Deliver {
        more_messages: false,
        loop_prevention: false,
        status_report_indication: false,
        reply_path: false,
        originator: TpAddress::international("19990014444"),
        protocol_id: 0,
        data_coding: 0,
        service_centre_time: time(),
        user_data: UserData::default(),
    }
}

fn status_report() -> StatusReport {
    StatusReport {
        more_messages: false,
        loop_prevention: false,
        about_command: false,
        message_reference: 0x2A,
        recipient: TpAddress::international("15551234567"),
        service_centre_time: time(),
        discharge_time: time(),
        status: TpStatus::DELIVERED,
        parameters: Parameters::default(),
    }
}

fn with_header() -> UserData {
    UserData::pack(Alphabet::Gsm7, true, b"\x03\x24\x01\x01a").unwrap()
}

/// The first octet of a message after a change.
fn first<M, E: std::fmt::Debug>(
    message: M,
    change: impl FnOnce(&mut M),
    encode: impl Fn(&M) -> Result<Vec<u8>, E>,
) -> u8 {
    let mut changed = message;
    let before = encode(&changed).unwrap()[0];
    change(&mut changed);
    before ^ encode(&changed).unwrap()[0]
}

#[test]
fn check_01_mti_depends_on_the_direction() {
    assert!(matches!(FromMs::decode(&[0, 0], false), Ok(FromMs::DeliverReport(_))));
    let submit = Submit::default().encode().unwrap();
    assert!(matches!(FromMs::decode(&submit, false), Ok(FromMs::Submit(_))));
    let command = Command::default().encode().unwrap();
    assert!(matches!(FromMs::decode(&command, false), Ok(FromMs::Command(_))));
    assert_eq!(FromMs::decode(&[0xFF; 20], false), Err(Error::MessageType(3)));
    assert!(matches!(ToMs::decode(&deliver().encode().unwrap(), false), Ok(ToMs::Deliver(_))));
    let report = SubmitReport { cause: None, service_centre_time: time(), parameters: Parameters::default() };
    assert!(matches!(ToMs::decode(&report.encode().unwrap(), false), Ok(ToMs::SubmitReport(_))));
    assert!(matches!(ToMs::decode(&status_report().encode().unwrap(), false), Ok(ToMs::StatusReport(_))));
}

#[test]
fn check_02_to_06_the_bits_of_a_submit() {
    let bit = |change: fn(&mut Submit)| first(Submit::default(), change, Submit::encode);
    assert_eq!(Submit::default().encode().unwrap()[0], 0x01);
    assert_eq!(bit(|submit| submit.reject_duplicates = true), 0x04);
    assert_eq!(bit(|submit| submit.validity = Validity::Enhanced([0; 7])), 0x08);
    assert_eq!(bit(|submit| submit.validity = Validity::Relative(0)), 0x10);
    assert_eq!(bit(|submit| submit.validity = Validity::Absolute(time())), 0x18);
    assert_eq!(bit(|submit| submit.status_report_request = true), 0x20);
    assert_eq!(bit(|submit| submit.user_data = with_header()), 0x40);
    assert_eq!(bit(|submit| submit.reply_path = true), 0x80);
}

#[test]
fn check_07_the_bits_of_a_deliver_and_that_more_messages_is_inverted() {
    let bit = |change: fn(&mut Deliver)| first(deliver(), change, Deliver::encode);
    assert_eq!(deliver().encode().unwrap()[0], 0x04);
    assert_eq!(bit(|deliver| deliver.more_messages = true), 0x04);
    assert_eq!(bit(|deliver| deliver.loop_prevention = true), 0x08);
    assert_eq!(bit(|deliver| deliver.status_report_indication = true), 0x20);
    assert_eq!(bit(|deliver| deliver.user_data = with_header()), 0x40);
    assert_eq!(bit(|deliver| deliver.reply_path = true), 0x80);
}

#[test]
fn check_08_the_bits_of_a_status_report() {
    let bit = |change: fn(&mut StatusReport)| first(status_report(), change, StatusReport::encode);
    assert_eq!(status_report().encode().unwrap()[0], 0x06);
    assert_eq!(bit(|report| report.more_messages = true), 0x04);
    assert_eq!(bit(|report| report.loop_prevention = true), 0x08);
    assert_eq!(bit(|report| report.about_command = true), 0x20);
    assert_eq!(bit(|report| report.parameters.user_data = Some(with_header())), 0x40);
}

#[test]
fn check_09_the_bits_of_reports_and_commands() {
    let report =
        |change: fn(&mut DeliverReport)| first(DeliverReport::default(), change, DeliverReport::encode);
    assert_eq!(report(|report| report.parameters.user_data = Some(with_header())), 0x40);
    let command = |change: fn(&mut Command)| first(Command::default(), change, Command::encode);
    assert_eq!(
        (Command::default().encode().unwrap()[0], command(|command| command.udhi = true)),
        (0x02, 0x40)
    );
    assert_eq!(command(|command| command.status_report_request = true), 0x20);
}

#[test]
fn check_10_captured_message() {
    // A number with national numbering plan, a time in the last century, two hours east of Greenwich.
    let octets = unhex("04 0BC8 7238880900F1 00 00 99309251619580 0A E8329BFD4697D9EC37");
    let message = Deliver::decode(&octets).unwrap();
    let originator = &message.originator;
    assert_eq!((originator.ton, originator.npi, originator.text()), (4, 8, "27838890001".to_owned()));
    let stamp = message.service_centre_time;
    assert_eq!((stamp.year, stamp.month, stamp.day, stamp.hour, stamp.quarters), (1999, 3, 29, 15, 8));
    assert_eq!(text::decode(0, &message.user_data), "hellohello");
    assert_eq!(message.encode().unwrap(), octets);
    let octets = unhex("11 00 0B91 6407281553F8 00 00 AA 0A E8329BFD4697D9EC37");
    let message = Submit::decode(&octets).unwrap();
    assert_eq!(message.destination, TpAddress::international("46708251358"));
    assert_eq!(message.validity.expires_at(0), Some(4 * 24 * 3600 * 1000));
    assert_eq!(message.encode().unwrap(), octets);
}

#[test]
fn check_11_to_13_numbers() {
    let number = |digits: &[u8]| TpAddress::from_smpp(0, 1, digits).unwrap().encode().unwrap();
    assert_eq!(number(b""), [0, 0x81]);
    assert_eq!(number(b"*#abc"), [5, 0x81, 0xBA, 0xDC, 0xFE]);
    assert_eq!(number(&[b'9'; 20]).len(), 12);
    assert_eq!(TpAddress::from_smpp(0, 1, &[b'9'; 21]), Err(Error::LongAddress(21)));
}

#[test]
fn check_14_and_15_names() {
    assert_eq!(TpAddress::name("Switchyard").unwrap().encode().unwrap()[..2], [18, 0xD0]);
    for length in 0..=11 {
        for ends in ["", "@"] {
            let name: String = "abcdefghijk"[..length].to_owned() + ends;
            let Ok(address) = TpAddress::name(&name) else { continue };
            assert_eq!(TpAddress::decode(&address.encode().unwrap()).unwrap().text(), name);
        }
    }
}

#[test]
fn check_16_zones_west_of_greenwich() {
    assert_eq!(time().encode().unwrap()[6], 0x2B, "32 quarters, units first, sign in the tens");
    assert_eq!(TimeStamp::at(1_703_367_462_000, -5).unwrap().encode().unwrap()[6], 0x58);
    assert_eq!(TimeStamp::at(1_703_367_462_000, 79).unwrap().encode().unwrap()[6], 0x97);
}

#[test]
fn check_17_a_leap_day() {
    let leap = TimeStamp::at(1_709_251_199_000, 0).unwrap();
    assert_eq!((leap.month, leap.day, leap.hour), (2, 29, 23));
    assert_eq!(TimeStamp::at(1_709_251_199_000, 4).unwrap().day, 1);
}

#[test]
fn check_18_and_19_validity() {
    let hour = Validity::Enhanced([0x43, 0x10, 0, 0, 0, 0, 0]);
    assert_eq!((hour.expires_at(5), hour.single_shot()), (Some(3_600_005), true));
    let bad = Submit { validity: Validity::Enhanced([7; 7]), ..Submit::default() };
    assert!(matches!(bad.encode(), Err(Error::Validity(_))));
}

#[test]
fn check_20_and_21_failure_cause_in_rp_error_only() {
    let full = FromMs::decode(&[0, 0xD3, 0], true).unwrap();
    let FromMs::DeliverReport(full) = full else { panic!() };
    assert_eq!(full.cause.map(FailureCause::class), Some(FailureClass::MemoryFull));
    let FromMs::DeliverReport(taken) = FromMs::decode(&[0, 0], false).unwrap() else { panic!() };
    assert_eq!(taken.cause, None);
    let report = SubmitReport { cause: None, service_centre_time: time(), parameters: Parameters::default() };
    assert_eq!(report.encode().unwrap()[..2], [1, 0]);
    let refused = SubmitReport { cause: Some(FailureCause::SC_BUSY), ..report };
    assert_eq!(refused.encode().unwrap()[..3], [1, 0xC0, 0]);
}

#[test]
fn check_22_report_user_data_without_dcs_uses_the_default_alphabet() {
    let report = DeliverReport::decode(&[0, 4, 2, 0xE8, 0x34], false).unwrap();
    assert_eq!(report.parameters.user_data.unwrap().text(Alphabet::Gsm7), b"hi");
}

#[test]
fn check_23_and_24_states() {
    assert_eq!(TpStatus::EXPIRED.class(), StatusClass::Permanent);
    assert!(!TpStatus::TRYING_CONGESTION.is_final() && TpStatus::CONGESTION.is_final());
    assert_eq!(status_report().encode().unwrap().last(), Some(&0), "the state is the last octet");
}

#[test]
fn check_25_to_27_commands() {
    let command = Command { kind: CommandType::ENQUIRY, message_number: 7, ..Command::default() };
    assert_eq!(command.encode().unwrap(), [2, 0, 0, 0, 7, 0, 0x80, 0]);
    let delete = Command { kind: CommandType::DELETE, data: vec![0; 157].into(), ..Command::default() };
    assert_eq!(delete.encode(), Err(Error::LongTpdu(165)));
    assert_eq!(Command::decode(&[2, 0, 0, 3, 7, 0, 0x80]).unwrap().kind, CommandType::ENABLE_REPORT);
}

#[test]
fn check_28_to_30_user_data_limits() {
    let rooms = |data_coding, unit: usize| {
        [ConcatReference::Short(1), ConcatReference::Wide(1)].map(|reference| {
            let segments = split(data_coding, &[], &[0x20; 400], reference).unwrap();
            segments[0].text(Alphabet::of(data_coding)).len() / unit
        })
    };
    assert_eq!((rooms(0, 1), rooms(4, 1), rooms(8, 2)), ([153, 152], [134, 133], [67, 66]));
    assert_eq!(split(0, &[], &[0x20; 160], ConcatReference::Short(1)).unwrap().len(), 1);
    assert_eq!(split(8, &[], &[0x20; 140], ConcatReference::Short(1)).unwrap().len(), 1);
}

#[test]
fn check_31_the_length_counts_septets_with_the_fill_bits() {
    let part = UserData::pack(Alphabet::Gsm7, true, b"\x05\x00\x03\x01\x02\x01x").unwrap();
    assert_eq!((part.length, part.octets.len(), part.octets[6]), (8, 7, b'x' << 1));
}

#[test]
fn check_32_and_33_seven_and_eight_septets_take_seven_octets() {
    for text in [&b"1234567"[..], b"1234567\0", b"\0\0\0\0\0\0\0\0"] {
        let data = UserData::pack(Alphabet::Gsm7, false, text).unwrap();
        assert_eq!(data.octets.len(), 7);
        let carried = smpp::from_air(0, &data);
        assert_eq!(carried.octets, text);
    }
}

#[test]
fn check_34_to_36_schemes() {
    assert_eq!([0x00, 0x0C, 0x8F, 0xC0, 0xD8, 0xF2].map(Alphabet::of), [Alphabet::Gsm7; 6]);
    assert_eq!([0x04, 0x16, 0x54, 0xF6, 0x20, 0x6B].map(Alphabet::of), [Alphabet::Octets; 6]);
    assert_eq!([0x08, 0x1A, 0x49, 0xE0].map(Alphabet::of), [Alphabet::Ucs2; 4]);
}

#[test]
fn check_37_every_language_can_be_encoded() {
    let samples = [
        (Language::Turkish, "İyi günler"),
        (Language::Spanish, "¿Qué tal, Íñigo?"),
        (Language::Portuguese, "São João"),
        (Language::Bengali, "নমস্কার"),
        (Language::Gujarati, "નમસ્તે"),
        (Language::Hindi, "नमस्ते"),
        (Language::Kannada, "ನಮಸ್ಕಾರ"),
        (Language::Malayalam, "നമസ്കാരം"),
        (Language::Oriya, "ନମସ୍କାର"),
        (Language::Punjabi, "ਨਮਸਤੇ"),
        (Language::Tamil, "வணக்கம்"),
        (Language::Telugu, "నమస్కారం"),
        (Language::Urdu, "سلام"),
    ];
    for (language, sample) in samples {
        let carried = text::encode(sample, &[language]);
        assert_eq!((carried.data_coding, carried.udhi), (0, true), "{language:?}");
        let air = smpp::to_air(0, true, &carried.octets, ConcatReference::Short(1)).unwrap();
        assert_eq!(text::decode(0, &air.segments[0]), sample, "{language:?}");
    }
}
