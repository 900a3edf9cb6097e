//! Nothing is lost between SMPP and the air.

use crate::generate::{text, user_data};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use tpdu::smpp::{from_air, to_air};
use tpdu::{Alphabet, Error, Reference, UserData, coding};

fn reference() -> impl Strategy<Value = Reference> {
    prop_oneof![any::<u8>().prop_map(Reference::Short), any::<u16>().prop_map(Reference::Wide)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Every one of the 256 data coding schemes.
    #[test]
    fn from_the_air_and_back(
        (scheme, data) in any::<u8>().prop_flat_map(|scheme| (Just(scheme), user_data(scheme))),
        reference in reference(),
    ) {
        let carried = from_air(scheme, &data);
        let air = to_air(carried.data_coding, carried.udhi, &carried.octets, reference).unwrap();
        prop_assert_eq!(&air.parts, &[data]);
        prop_assert_eq!(Alphabet::of(air.data_coding), Alphabet::of(scheme));
        prop_assert_eq!(coding::class(air.data_coding), coding::class(scheme));
        prop_assert!(air.data_coding == scheme || scheme < 0x10);
    }

    #[test]
    fn from_smpp_and_back(
        (data_coding, (udhi, octets)) in prop_oneof![8 => 16..=255_u8, 1 => prop::sample::select(vec![0_u8, 4, 8])]
            .prop_flat_map(|coding| (Just(coding), text(Alphabet::of(coding)))),
        reference in reference(),
    ) {
        let air = to_air(data_coding, udhi, &octets, reference).unwrap();
        prop_assert_eq!(air.parts.len(), 1);
        let carried = from_air(air.data_coding, &air.parts[0]);
        prop_assert_eq!((carried.data_coding, carried.udhi), (data_coding, udhi));
        prop_assert_eq!(carried.octets, octets);
    }

    /// Whatever lies on the wire, bits that mean nothing and headers that are none included, is a fixed point after one
    /// turn.
    #[test]
    fn any_wire(scheme in any::<u8>(), udhi in any::<bool>(), length in any::<u8>(), octets in vec(any::<u8>(), 140), reference in reference()) {
        let alphabet = Alphabet::of(scheme);
        let length = length.min(if alphabet == Alphabet::Gsm7 { 160 } else { 140 });
        let count = if alphabet == Alphabet::Gsm7 { (usize::from(length) * 7).div_ceil(8) } else { usize::from(length) };
        let data = UserData { udhi, length, octets: Bytes::copy_from_slice(&octets[..count]) };
        let carried = from_air(scheme, &data);
        let air = to_air(carried.data_coding, carried.udhi, &carried.octets, reference).unwrap();
        prop_assert_eq!(air.parts.len(), 1);
        prop_assert_eq!(from_air(air.data_coding, &air.parts[0]), carried);
        prop_assert_eq!(air.parts[0].length, length);
        if alphabet != Alphabet::Gsm7 {
            prop_assert_eq!(&air.parts[0].octets, &data.octets);
        }
    }

    /// Any octets of any coding: they arrive whole, or an error says why not.
    #[test]
    fn any_smpp(data_coding in any::<u8>(), udhi in any::<bool>(), octets in vec(any::<u8>(), 0..500), reference in reference()) {
        let parts = match to_air(data_coding, udhi, &octets, reference) {
            Ok(air) => {
                let alphabet = Alphabet::of(air.data_coding);
                prop_assert!(air.parts.iter().all(|part| part.octets.len() <= 140));
                if matches!(data_coding, 0 | 2 | 4 | 8 | 16..) && !udhi {
                    let text: Vec<u8> = air.parts.iter().flat_map(|part| part.text(alphabet)).collect();
                    prop_assert_eq!(text, octets);
                }
                air.parts.len()
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
        prop_assert!(parts >= 1);
    }
}
