//! Tests of the failure classification.

use gsup::{Failure, GmmCause, GsupImsi, GsupMessage, MessageType, Reporter, RpCause, classify};

fn refusal() -> GsupMessage {
    let imsi: GsupImsi = "001010000000001".parse().unwrap();
    GsupMessage::new(MessageType::MT_FORWARD_SM_ERROR, imsi)
}

#[test]
fn memory_full() {
    for reporter in [Reporter::Msc, Reporter::Hlr] {
        assert_eq!(classify(reporter, Some(RpCause(22)), None, None), Failure::MemoryFull);
        for failure_cause in [0xd0, 0xd3] {
            assert_eq!(
                classify(reporter, Some(RpCause(111)), None, Some(failure_cause)),
                Failure::MemoryFull
            );
        }
        // The RP cause is sufficient, regardless of the report.
        assert_eq!(classify(reporter, Some(RpCause(22)), None, Some(0xff)), Failure::MemoryFull);
    }
}

#[test]
fn permanent_failure_of_this_message() {
    for failure_cause in [0x80, 0x81, 0x8f, 0x90, 0x91, 0x9f, 0xb0, 0xd1] {
        let failure = classify(Reporter::Msc, Some(RpCause(111)), None, Some(failure_cause));
        assert_eq!(failure, Failure::PermanentMessage, "{failure_cause:#x}");
    }
}

#[test]
fn temporary_handset_failures() {
    let of_the_message = [81, 95, 96, 97, 98, 99, 111, 127];
    for rp_cause in (0..=127).filter(|code| *code != 22).map(RpCause) {
        let classify = |failure_cause| classify(Reporter::Msc, Some(rp_cause), None, failure_cause);
        assert_eq!(classify(Some(0xd2)), Failure::Temporary, "{rp_cause}, error in the phone");
        let expected =
            if of_the_message.contains(&rp_cause.0) { Failure::ThisMessage } else { Failure::Temporary };
        for failure_cause in [None, Some(0xd4), Some(0xd5), Some(0xff)] {
            assert_eq!(classify(failure_cause), expected, "{rp_cause}, {failure_cause:?}");
        }
    }
    // No cause at all.
    assert_eq!(classify(Reporter::Msc, None, None, None), Failure::Temporary);
}

#[test]
fn absent_subscriber() {
    for reporter in [Reporter::Msc, Reporter::Hlr] {
        assert_eq!(classify(reporter, None, Some(GmmCause(10)), None), Failure::Absent, "detached");
        assert_eq!(classify(reporter, None, Some(GmmCause(17)), None), Failure::Absent, "paging failed");
    }
    assert_eq!(classify(Reporter::Msc, None, Some(GmmCause(2)), None), Failure::Absent, "not in its VLR");
}

#[test]
fn unknown_subscriber() {
    assert_eq!(classify(Reporter::Hlr, None, Some(GmmCause(2)), None), Failure::UnknownSubscriber);
}

#[test]
fn source_name_identifies_an_msc_behind_the_hlr() {
    let by_hlr = refusal().with_cause(GmmCause::IMSI_UNKNOWN);
    assert_eq!(Failure::of(&by_hlr, Reporter::Hlr, None), Some(Failure::UnknownSubscriber));
    assert_eq!(Failure::of(&by_hlr, Reporter::Msc, None), Some(Failure::Absent));
    let by_msc = by_hlr.with_source_name(&"MSC-1".parse().unwrap());
    assert_eq!(Failure::of(&by_msc, Reporter::Hlr, None), Some(Failure::Absent));
}

#[test]
fn msc_without_sms_over_gsup() {
    assert_eq!(classify(Reporter::Msc, None, Some(GmmCause(7)), None), Failure::Configuration);
}

#[test]
fn own_encoding_error() {
    for cause in [96, 97] {
        assert_eq!(classify(Reporter::Msc, None, Some(GmmCause(cause)), None), Failure::LocalError);
    }
}

#[test]
fn temporary_network_failures() {
    for cause in (0..=u8::MAX).filter(|code| ![2, 7, 10, 17, 96, 97].contains(code)).map(GmmCause) {
        assert_eq!(classify(Reporter::Hlr, None, Some(cause), None), Failure::Temporary, "{cause}");
    }
}

#[test]
fn routing_error() {
    let imsi: GsupImsi = "001010000000001".parse().unwrap();
    let nowhere = GsupMessage::new(MessageType::ROUTING_ERROR, imsi);
    assert_eq!(Failure::of(&nowhere, Reporter::Hlr, None), Some(Failure::Link));
    let taken = GsupMessage::new(MessageType::MT_FORWARD_SM_RESULT, imsi);
    assert_eq!(Failure::of(&taken, Reporter::Hlr, None), None);
}
