//! Any octets as a TPDU either way, as user data of every scheme, as what SMPP carries and as parts: no panic, and what is
//! read is written as something that reads as the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tpdu::smpp::{Carried, from_air, to_air};
use tpdu::{
    Address, Alphabet, Error, FromMs, Header, Joined, Joiner, Language, Limits, MAX_OCTETS, MAX_TPDU,
    Reference, Tables, TimeStamp, ToMs, UserData, alphabet, septets, split, text,
};

/// Whatever its fields say, the whole may be longer than the air takes; nothing else stands in the way of writing it.
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

fn from_a_telephone(octets: &[u8], failed: bool) {
    let message = match FromMs::decode(octets, failed) {
        Ok(message) => message,
        Err(error) => {
            let _ = (error.failure_cause().class(), error.to_string());
            return;
        }
    };
    match &message {
        FromMs::Submit(submit) => {
            let _ = (submit.validity.ends(u64::MAX / 2), submit.validity.single_shot());
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
        // A refusal that ends before its cause is written as an answer of success.
        let failed = failed && !matches!(&message, FromMs::DeliverReport(report) if report.cause.is_none());
        assert_eq!(FromMs::decode(&again, failed).as_ref(), Ok(&message));
    }
}

fn to_a_telephone(octets: &[u8], failed: bool) {
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

fn address(address: &Address) {
    let octets = address.encode().expect("an address that was read");
    assert!(octets.len() <= 12);
    assert_eq!(Address::decode(&octets).as_ref(), Ok(address));
    let (ton, npi, value) = address.to_smpp();
    if !address.is_name() || !address.value.contains(&alphabet::ESCAPE) {
        assert_eq!(Address::from_smpp(ton, npi, &value).as_ref(), Ok(address));
    }
}

fn time(stamp: &TimeStamp) {
    let ms = stamp.unix_ms().expect("a time that was read");
    assert_eq!(TimeStamp::at(ms, stamp.quarters).as_ref(), Ok(stamp));
}

/// User data that came in a message: to SMPP and back, and shown.
fn user_data(scheme: u8, data: &UserData) {
    let alphabet = Alphabet::of(scheme);
    assert!(data.octets.len() <= MAX_OCTETS);
    let _ = text::decode(scheme, data);
    let carried = from_air(scheme, data);
    let air = to_air(carried.data_coding, carried.udhi, &carried.octets, Reference::Short(0))
        .expect("it came from there");
    let [again] = &air.parts[..] else { panic!("{} parts", air.parts.len()) };
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
    let _ = (header.part_of(), header.tables(), header.ports());
    let total: usize = header.elements().map(|element| element.data.len() + 2).sum();
    assert!(total == 0 || total == header.0.len(), "all elements or none");
    let rest = header.without_concatenation();
    assert!(rest.len() <= total && Header(&rest).part_of().is_none());
}

/// Octets as SMPP's text: refused with words, or whole on the other side.
fn smpp(data_coding: u8, udhi: bool, octets: &[u8], reference: Reference) {
    let Ok(air) = to_air(data_coding, udhi, octets, reference) else { return };
    let alphabet = Alphabet::of(air.data_coding);
    let converted = matches!(data_coding, 1 | 3 | 5..=7 | 9..=15);
    let header = if udhi { Header::split(octets).map_or(0, |(header, _)| header.length()) } else { 0 };
    let mut whole = Vec::new();
    for part in &air.parts {
        assert!(part.octets.len() <= MAX_OCTETS && usize::from(part.length) <= alphabet.limit());
        whole.extend(part.text(alphabet));
    }
    if !converted {
        assert_eq!(whole, octets[header..]);
    }
    joined(&air.parts, air.data_coding, &whole);
}

/// Parts that we made are whole again, backwards too.
fn joined(parts: &[UserData], scheme: u8, whole: &[u8]) {
    // A header that was there before may itself say that the text is a part.
    let alphabet = Alphabet::of(scheme);
    let alone =
        parts.len() == 1 && parts[0].header(alphabet).is_some_and(|header| header.part_of().is_some());
    if alone {
        return;
    }
    let mut joiner = Joiner::new(Limits { messages: 1, octets: 255 * MAX_OCTETS, patience_ms: 1 });
    for (index, part) in parts.iter().enumerate().rev() {
        match joiner.add(5, (), scheme, part.clone()) {
            Joined::Whole(Carried { udhi, octets, .. }) => {
                assert_eq!(index, 0);
                let header =
                    if udhi { Header::split(&octets).map_or(0, |(header, _)| header.length()) } else { 0 };
                assert_eq!(octets[header..], *whole);
            }
            Joined::Waiting => assert!(index > 0),
            Joined::Duplicate => panic!("all parts differ"),
        }
    }
    assert!(joiner.load() == (0, 0) && joiner.incomplete(u64::MAX).is_empty());
}

/// Octets as a row of parts of wild messages: limits hold, and nothing is kept for ever.
fn wild_parts(octets: &[u8]) {
    let limits = Limits { messages: 3, octets: 200, patience_ms: 4 };
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
    let tables =
        Tables { locking: Language::from_number(number >> 4), single: Language::from_number(number & 15) };
    let shown = alphabet::decode(octets, tables);
    if let Some(again) = alphabet::encode(&shown, tables) {
        assert_eq!(alphabet::decode(&again, tables), shown);
    }
    let Ok(wanted) = std::str::from_utf8(octets) else { return };
    let languages: Vec<Language> = Language::from_number(number & 15).into_iter().collect();
    let carried = text::encode(wanted, &languages);
    let Ok(air) = to_air(carried.data_coding, carried.udhi, &carried.octets, Reference::Wide(0)) else {
        // More than 255 parts, of a text that was long.
        assert!(octets.len() > 255 * 60);
        return;
    };
    let read: String = air.parts.iter().map(|part| text::decode(air.data_coding, part)).collect();
    // A mark of byte order at the front of a part is not shown.
    if !wanted.contains(['\u{FEFF}', '\u{FFFE}']) {
        assert_eq!(read, wanted);
    }
}

fuzz_target!(|octets: &[u8]| {
    let Some((&number, rest)) = octets.split_first() else { return };
    for failed in [false, true] {
        from_a_telephone(rest, failed);
        to_a_telephone(rest, failed);
    }
    smpp(number, false, rest, Reference::Wide(0x0102));
    smpp(number, true, rest, Reference::Short(3));
    let _ = split(number, &rest[..rest.len().min(9)], rest, Reference::Short(9));
    wild_parts(rest);
    texts(rest, number);
    if let Ok(address) = Address::from_smpp(number >> 5, number & 15, rest) {
        self::address(&address);
    }
});
