//! Encoding and decoding round-trip.

use crate::properties::generate::{address, from_ms, text, time, to_ms, user_data, validity};
use proptest::collection::vec;
use proptest::prelude::*;
use tpdu::{
    Alphabet, ConcatReference, Error, FromMs, JoinOutcome, Joiner, JoinerLimits, Language, MAX_TPDU,
    TimeStamp, ToMs, TpAddress, UserData, Validity, smpp, split,
};

proptest! {
    #[test]
    fn tpdus_from_handsets_round_trip((message, failed) in from_ms()) {
        let octets = message.encode().unwrap();
        prop_assert!(octets.len() <= MAX_TPDU);
        prop_assert_eq!(FromMs::decode(&octets, failed), Ok(message));
    }

    #[test]
    fn tpdus_to_handsets_round_trip((message, failed) in to_ms()) {
        let octets = message.encode().unwrap();
        prop_assert!(octets.len() <= MAX_TPDU);
        prop_assert_eq!(ToMs::decode(&octets, failed), Ok(message));
    }

    #[test]
    fn any_octets_decode_or_fail(octets in vec(any::<u8>(), 0..200), failed in any::<bool>()) {
        // A report that ends before its cause is encoded as a positive one.
        if let Ok(message) = FromMs::decode(&octets, failed) {
            let failed = failed && !matches!(&message, FromMs::DeliverReport(report) if report.cause.is_none());
            match message.encode() {
                Ok(again) => prop_assert_eq!(FromMs::decode(&again, failed), Ok(message)),
                Err(error) => prop_assert!(matches!(error, Error::LongTpdu(_)), "{}", error),
            }
        }
        if let Ok(message) = ToMs::decode(&octets, failed) {
            match message.encode() {
                Ok(again) => prop_assert_eq!(ToMs::decode(&again, failed), Ok(message)),
                Err(error) => prop_assert!(matches!(error, Error::LongTpdu(_)), "{}", error),
            }
        }
    }

    #[test]
    fn truncated_tpdu_never_grows((message, failed) in from_ms(), kept_octets in any::<prop::sample::Index>()) {
        let octets = message.encode().unwrap();
        let short = &octets[..kept_octets.index(octets.len())];
        if let Ok(read) = FromMs::decode(short, failed) {
            prop_assert!(read.encode().unwrap().len() <= short.len() + 1);
        }
    }

    #[test]
    fn addresses(address in address()) {
        let octets = address.encode().unwrap();
        prop_assert!((2..=12).contains(&octets.len()));
        prop_assert_eq!(TpAddress::decode(&octets), Ok(address));
    }

    #[test]
    fn addresses_of_smpp(address in address()) {
        // A name with undefined escape sequences is converted to SMPP as displayed.
        let (ton, npi, value) = address.to_smpp();
        if !address.is_name() || !address.value.contains(&0x1B) {
            prop_assert_eq!(TpAddress::from_smpp(ton, npi, &value), Ok(address));
        } else if let Ok(again) = TpAddress::from_smpp(ton, npi, &value) {
            prop_assert_eq!(again.to_smpp(), (ton, npi, value));
        }
    }

    #[test]
    fn times(stamp in time()) {
        prop_assert_eq!(TimeStamp::decode(stamp.encode().unwrap()), Ok(stamp));
        prop_assert_eq!(TimeStamp::at(stamp.unix_ms().unwrap(), stamp.quarters), Ok(stamp));
    }

    #[test]
    fn any_seven_octets_decode_or_fail(octets in any::<[u8; 7]>()) {
        if let Ok(stamp) = TimeStamp::decode(octets) {
            let again = stamp.encode().unwrap();
            // A zero offset has two signs.
            prop_assert!(again == octets || (again[..6] == octets[..6] && again[6] | 8 == octets[6]));
            prop_assert!(stamp.unix_ms().is_some());
        }
    }

    #[test]
    fn validity_expiry_round_trips(validity in validity(), now in 1_600_000_000_000..1_900_000_000_000_u64) {
        let ends = validity.expires_at(now);
        match validity {
            Validity::None => prop_assert_eq!(ends, None),
            Validity::Absolute(stamp) => prop_assert_eq!(ends, stamp.unix_ms()),
            _ => prop_assert!(ends.unwrap() >= now),
        }
    }

    #[test]
    fn user_data_of_every_alphabet(
        (alphabet, (udhi, octets)) in prop::sample::select(vec![Alphabet::Gsm7, Alphabet::Octets, Alphabet::Ucs2])
            .prop_flat_map(|alphabet| (Just(alphabet), text(alphabet)))
    ) {
        let packed = UserData::pack(alphabet, udhi, &octets).unwrap();
        prop_assert_eq!(packed.header(alphabet).is_some(), udhi);
        prop_assert_eq!(packed.unpack(alphabet), octets);
    }

    #[test]
    fn segments_join_in_any_order(
        (data_coding, text) in prop::sample::select(vec![0_u8, 4, 8, 0xF1, 0xC8, 0xE0]).prop_flat_map(|data_coding| {
            let most: u8 = if Alphabet::of(data_coding) == Alphabet::Gsm7 { 0x7F } else { 0xFF };
            (Just(data_coding), vec(0..=most, 0..2_000))
        }),
        reference in prop_oneof![any::<u8>().prop_map(ConcatReference::Short), any::<u16>().prop_map(ConcatReference::Wide)],
        language in prop::option::of(prop::sample::select(Language::ALL.to_vec())),
        order in any::<prop::sample::Index>(),
    ) {
        let elements = language.map(|language| vec![0x24, 1, language.number()]).unwrap_or_default();
        let mut segments = split(data_coding, &elements, &text, reference).unwrap();
        let turn = order.index(segments.len());
        segments.rotate_left(turn);
        segments.reverse();
        let mut joiner = Joiner::new(JoinerLimits { messages: 2, octets: 1 << 20, timeout_ms: 1 });
        let last = segments.pop().unwrap();
        for part in segments {
            prop_assert_eq!(joiner.add(0, (), data_coding, part.clone()), JoinOutcome::Pending);
            prop_assert_eq!(joiner.add(0, (), data_coding, part), JoinOutcome::Duplicate);
        }
        let JoinOutcome::Complete(whole) = joiner.add(0, (), data_coding, last) else { panic!("not whole") };
        let header = if elements.is_empty() { vec![] } else { [&[3], &elements[..]].concat() };
        prop_assert_eq!((whole.data_coding, whole.udhi), (data_coding, !elements.is_empty()));
        prop_assert_eq!(whole.octets, [header, text].concat());
        prop_assert_eq!(joiner.load(), (0, 0));
    }

    #[test]
    fn any_text_round_trips(
        text in prop_oneof!["\\PC{0,300}", "[a-zşğıİ€ ]{0,400}", "[अ-ह०-९ ]{0,200}", "[ا-ي ]{0,200}"],
        languages in prop::sample::subsequence(Language::ALL.to_vec(), 0..=3),
        reference in any::<u16>(),
    ) {
        let carried = tpdu::text::encode(&text, &languages);
        let air = smpp::to_air(carried.data_coding, carried.udhi, &carried.octets, ConcatReference::Wide(reference)).unwrap();
        let read: String = air.segments.iter().map(|part| tpdu::text::decode(air.data_coding, part)).collect();
        prop_assert_eq!(read, text);
    }

    #[test]
    fn any_user_data_is_displayed((data_coding, data) in any::<u8>().prop_flat_map(|coding| (Just(coding), user_data(coding)))) {
        prop_assert!(tpdu::text::decode(data_coding, &data).chars().count() <= 280);
    }
}
