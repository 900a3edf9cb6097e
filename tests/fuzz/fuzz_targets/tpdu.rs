//! Arbitrary octets as a TPDU of either direction, as user data of every scheme, as SMPP text and as segments: no
//! panic, and decoded values survive an encoding round trip.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tpdu::smpp::{SmppText, from_air, to_air};
use tpdu::{
    Alphabet, ConcatReference, Error, FromMs, Header, JoinOutcome, Joiner, JoinerLimits, Language,
    LanguageTables, MAX_OCTETS, MAX_TPDU, TimeStamp, ToMs, TpAddress, UserData, alphabet, septets, split,
    text,
};

/// The fields may make the TPDU too long; no other write error is allowed.
fn written(result: Result<Vec<u8>, Error>) -> Option<Vec<u8>> {
    match result {
        Ok(octets) => {
            assert!(octets.len() <= MAX_TPDU);
            Some(octets)
        }
        Err(Error::LongTpdu(length)) => {
            assert!(length > MAX_TPDU);
            None
        }
        Err(error) => panic!("read, and not written: {error}"),
    }
}

fn from_handset(octets: &[u8], failed: bool) {
    let message = match FromMs::decode(octets, failed) {
        Ok(message) => message,
        Err(error) => {
            let _ = (error.failure_cause().class(), error.to_string());
            return;
        }
    };
    match &message {
        FromMs::Submit(submit) => {
            let _ = (submit.validity.expires_at(u64::MAX / 2), submit.validity.single_shot());
            address(&submit.destination);
            user_data(submit.data_coding, &submit.user_data);
        }
        FromMs::DeliverReport(report) => {
            if let Some(data) = &report.parameters.user_data {
                let _ = text::decode(report.parameters.data_coding.unwrap_or(0), data);
            }
        }
        FromMs::Command(command) => address(&command.destination),
    }
    if let Some(again) = written(message.encode()) {
        // An error report that ends before its cause is written as a success report.
        let failed = failed && !matches!(&message, FromMs::DeliverReport(report) if report.cause.is_none());
        assert_eq!(FromMs::decode(&again, failed).as_ref(), Ok(&message));
    }
}

fn to_handset(octets: &[u8], failed: bool) {
    let Ok(message) = ToMs::decode(octets, failed) else { return };
    if let ToMs::Deliver(deliver) = &message {
        address(&deliver.originator);
        time(&deliver.service_centre_time);
        user_data(deliver.data_coding, &deliver.user_data);
    }
    if let Some(again) = written(message.encode()) {
        assert_eq!(ToMs::decode(&again, failed).as_ref(), Ok(&message));
    }
}

fn address(address: &TpAddress) {
    let octets = address.encode().expect("an address that was read");
    assert!(octets.len() <= 12);
    assert_eq!(TpAddress::decode(&octets).as_ref(), Ok(address));
    let (ton, npi, value) = address.to_smpp();
    if !address.is_name() || !address.value.contains(&alphabet::ESCAPE) {
        assert_eq!(TpAddress::from_smpp(ton, npi, &value).as_ref(), Ok(address));
    }
}

fn time(stamp: &TimeStamp) {
    let ms = stamp.unix_ms().expect("a time that was read");
    assert_eq!(TimeStamp::at(ms, stamp.quarters).as_ref(), Ok(stamp));
}

/// Received user data: to SMPP and back, and as text.
fn user_data(scheme: u8, data: &UserData) {
    let alphabet = Alphabet::of(scheme);
    assert!(data.octets.len() <= MAX_OCTETS);
    let _ = text::decode(scheme, data);
    let carried = from_air(scheme, data);
    let air = to_air(carried.data_coding, carried.udhi, &carried.octets, ConcatReference::Short(0))
        .expect("it came from there");
    let [again] = &air.segments[..] else { panic!("{} parts", air.segments.len()) };
    assert_eq!(from_air(air.data_coding, again), carried);
    assert_eq!((again.length, Alphabet::of(air.data_coding)), (data.length, alphabet));
    if alphabet != Alphabet::Gsm7 {
        assert_eq!(again.octets, data.octets);
    }
    if let Some(header) = data.header(alphabet) {
        elements(header);
    }
}

fn elements(header: Header<'_>) {
    let _ = (header.concatenation(), header.tables(), header.ports());
    let total: usize = header.elements().map(|element| element.data.len() + 2).sum();
    assert!(total == 0 || total == header.0.len(), "all elements or none");
    let rest = header.without_concatenation();
    assert!(rest.len() <= total && Header(&rest).concatenation().is_none());
}

/// Octets as SMPP text: refused with an error, or unchanged on the other side.
fn smpp(data_coding: u8, udhi: bool, octets: &[u8], reference: ConcatReference) {
    let Ok(air) = to_air(data_coding, udhi, octets, reference) else { return };
    let alphabet = Alphabet::of(air.data_coding);
    let converted = matches!(data_coding, 1 | 3 | 5..=7 | 9..=15);
    let header = if udhi { Header::split(octets).map_or(0, |(header, _)| header.length()) } else { 0 };
    let mut whole = Vec::new();
    for part in &air.segments {
        assert!(part.octets.len() <= MAX_OCTETS && usize::from(part.length) <= alphabet.limit());
        whole.extend(part.text(alphabet));
    }
    if !converted {
        assert_eq!(whole, octets[header..]);
    }
    joined(&air.segments, air.data_coding, &whole);
}

/// Our own segments are reassembled, in reverse order too.
fn joined(segments: &[UserData], scheme: u8, whole: &[u8]) {
    // An existing header may itself mark the text as a segment.
    let alphabet = Alphabet::of(scheme);
    let alone = segments.len() == 1
        && segments[0].header(alphabet).is_some_and(|header| header.concatenation().is_some());
    if alone {
        return;
    }
    let mut joiner = Joiner::new(JoinerLimits { messages: 1, octets: 255 * MAX_OCTETS, timeout_ms: 1 });
    for (index, part) in segments.iter().enumerate().rev() {
        match joiner.add(5, (), scheme, part.clone()) {
            JoinOutcome::Complete(SmppText { udhi, octets, .. }) => {
                assert_eq!(index, 0);
                let header =
                    if udhi { Header::split(&octets).map_or(0, |(header, _)| header.length()) } else { 0 };
                assert_eq!(octets[header..], *whole);
            }
            JoinOutcome::Pending => assert!(index > 0),
            JoinOutcome::Duplicate => panic!("all parts differ"),
        }
    }
    assert!(joiner.load() == (0, 0) && joiner.incomplete(u64::MAX).is_empty());
}

/// Octets as segments of arbitrary messages: limits hold, and nothing is kept forever.
fn arbitrary_segments(octets: &[u8]) {
    let limits = JoinerLimits { messages: 3, octets: 200, timeout_ms: 4 };
    let mut joiner = Joiner::new(limits);
    for (now, piece) in octets.chunks(9).enumerate() {
        let data = UserData { udhi: true, length: piece.len() as u8, octets: Bytes::copy_from_slice(piece) };
        let _ = joiner.add(now as u64, piece.len(), 4, data);
        let (messages, held) = joiner.load();
        assert!(messages <= limits.messages && held <= limits.octets);
        let _ = joiner.incomplete(now as u64);
        assert!(joiner.deadline().is_none_or(|deadline| deadline > now as u64));
    }
    let _ = joiner.incomplete(u64::MAX);
    assert_eq!(joiner.load(), (0, 0));
}

fn texts(octets: &[u8], number: u8) {
    let septets: Vec<u8> = octets.iter().map(|octet| octet & 0x7F).collect();
    assert_eq!(septets::unpack(&septets::pack(&septets), 0, septets.len()), septets);
    let _ = septets::unpack(octets, usize::from(number), usize::from(number));
    let tables = LanguageTables {
        locking: Language::from_number(number >> 4),
        single: Language::from_number(number & 15),
    };
    let shown = alphabet::decode(octets, tables);
    if let Some(again) = alphabet::encode(&shown, tables) {
        assert_eq!(alphabet::decode(&again, tables), shown);
    }
    let Ok(wanted) = std::str::from_utf8(octets) else { return };
    let languages: Vec<Language> = Language::from_number(number & 15).into_iter().collect();
    let carried = text::encode(wanted, &languages);
    let Ok(air) = to_air(carried.data_coding, carried.udhi, &carried.octets, ConcatReference::Wide(0)) else {
        // More than 255 segments of a long text.
        assert!(octets.len() > 255 * 60);
        return;
    };
    let read: String = air.segments.iter().map(|part| text::decode(air.data_coding, part)).collect();
    // A byte order mark at the beginning of a segment is not shown.
    if !wanted.contains(['\u{FEFF}', '\u{FFFE}']) {
        assert_eq!(read, wanted);
    }
}

fuzz_target!(|octets: &[u8]| {
    let Some((&number, rest)) = octets.split_first() else { return };
    for failed in [false, true] {
        from_handset(rest, failed);
        to_handset(rest, failed);
    }
    smpp(number, false, rest, ConcatReference::Wide(0x0102));
    smpp(number, true, rest, ConcatReference::Short(3));
    let _ = split(number, &rest[..rest.len().min(9)], rest, ConcatReference::Short(9));
    arbitrary_segments(rest);
    texts(rest, number);
    if let Ok(address) = TpAddress::from_smpp(number >> 5, number & 15, rest) {
        self::address(&address);
    }
});
