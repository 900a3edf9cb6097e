//! Conversion between SMPP and the air interface is lossless.

use crate::properties::generate::{text, user_data};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use tpdu::smpp::{from_air, to_air};
use tpdu::{Alphabet, ConcatReference, Error, UserData, coding};

fn reference() -> impl Strategy<Value = ConcatReference> {
    prop_oneof![any::<u8>().prop_map(ConcatReference::Short), any::<u16>().prop_map(ConcatReference::Wide)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// All 256 data coding schemes.
    #[test]
    fn air_to_smpp_round_trips(
        (scheme, data) in any::<u8>().prop_flat_map(|scheme| (Just(scheme), user_data(scheme))),
        reference in reference(),
    ) {
        let carried = from_air(scheme, &data);
        let air = to_air(carried.data_coding, carried.udhi, &carried.octets, reference).unwrap();
        prop_assert_eq!(&air.segments, &[data]);
        prop_assert_eq!(Alphabet::of(air.data_coding), Alphabet::of(scheme));
        prop_assert_eq!(coding::message_class(air.data_coding), coding::message_class(scheme));
        prop_assert!(air.data_coding == scheme || scheme < 0x10);
    }

    #[test]
    fn smpp_to_air_round_trips(
        (data_coding, (udhi, octets)) in prop_oneof![8 => 16..=255_u8, 1 => prop::sample::select(vec![0_u8, 4, 8])]
            .prop_flat_map(|coding| (Just(coding), text(Alphabet::of(coding)))),
        reference in reference(),
    ) {
        let air = to_air(data_coding, udhi, &octets, reference).unwrap();
        prop_assert_eq!(air.segments.len(), 1);
        let carried = from_air(air.data_coding, &air.segments[0]);
        prop_assert_eq!((carried.data_coding, carried.udhi), (data_coding, udhi));
        prop_assert_eq!(carried.octets, octets);
    }

    /// Any air message, including unused bits and invalid headers, is a fixed point after one conversion.
    #[test]
    fn any_air_message_converts(scheme in any::<u8>(), udhi in any::<bool>(), length in any::<u8>(), octets in vec(any::<u8>(), 140), reference in reference()) {
        let alphabet = Alphabet::of(scheme);
        let length = length.min(if alphabet == Alphabet::Gsm7 { 160 } else { 140 });
        let count = if alphabet == Alphabet::Gsm7 { (usize::from(length) * 7).div_ceil(8) } else { usize::from(length) };
        let data = UserData { udhi, length, octets: Bytes::copy_from_slice(&octets[..count]) };
        let carried = from_air(scheme, &data);
        let air = to_air(carried.data_coding, carried.udhi, &carried.octets, reference).unwrap();
        prop_assert_eq!(air.segments.len(), 1);
        prop_assert_eq!(from_air(air.data_coding, &air.segments[0]), carried);
        prop_assert_eq!(air.segments[0].length, length);
        if alphabet != Alphabet::Gsm7 {
            prop_assert_eq!(&air.segments[0].octets, &data.octets);
        }
    }

    /// Any octets in any coding are converted completely or refused with an error.
    #[test]
    fn any_smpp_text_converts_or_fails(data_coding in any::<u8>(), udhi in any::<bool>(), octets in vec(any::<u8>(), 0..500), reference in reference()) {
        let segments = match to_air(data_coding, udhi, &octets, reference) {
            Ok(air) => {
                let alphabet = Alphabet::of(air.data_coding);
                prop_assert!(air.segments.iter().all(|part| part.octets.len() <= 140));
                if matches!(data_coding, 0 | 2 | 4 | 8 | 16..) && !udhi {
                    let text: Vec<u8> = air.segments.iter().flat_map(|part| part.text(alphabet)).collect();
                    prop_assert_eq!(text, octets);
                }
                air.segments.len()
            }
            Err(Error::Coding(coding)) => {
                prop_assert!([5, 9, 11, 12, 13].contains(&coding));
                1
            }
            Err(
                Error::NoHeader
                | Error::NotASeptet { .. }
                | Error::NotInCoding(_)
                | Error::LongWithHeader { .. }
                | Error::LongUserData { .. }
                | Error::LongCompressed(_),
            ) => 1,
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        prop_assert!(segments >= 1);
    }
}
