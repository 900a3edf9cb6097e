//! The default alphabet and the national language tables (3GPP TS 23.038 §6.2.1, annex A), one septet per octet.

mod tables;

use tables::{Locking, Single};

/// The escape septet, before a septet of a single shift table.
pub const ESCAPE: u8 = 0x1B;

/// Languages with national tables, by their number in the user data header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// Number 1.
    Turkish = 1,
    /// Number 2. It has no locking shift table.
    Spanish = 2,
    /// Number 3.
    Portuguese = 3,
    /// Number 4.
    Bengali = 4,
    /// Number 5.
    Gujarati = 5,
    /// Number 6.
    Hindi = 6,
    /// Number 7.
    Kannada = 7,
    /// Number 8.
    Malayalam = 8,
    /// Number 9.
    Oriya = 9,
    /// Number 10.
    Punjabi = 10,
    /// Number 11.
    Tamil = 11,
    /// Number 12.
    Telugu = 12,
    /// Number 13.
    Urdu = 13,
}

impl Language {
    /// All languages, by number.
    pub const ALL: [Self; 13] = [
        Self::Turkish,
        Self::Spanish,
        Self::Portuguese,
        Self::Bengali,
        Self::Gujarati,
        Self::Hindi,
        Self::Kannada,
        Self::Malayalam,
        Self::Oriya,
        Self::Punjabi,
        Self::Tamil,
        Self::Telugu,
        Self::Urdu,
    ];

    /// The language with this number; `None` for 0, the default, and for unknown numbers.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.number() == number)
    }

    /// The language with this English name in lower case, for example `turkish`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The English name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turkish => "turkish",
            Self::Spanish => "spanish",
            Self::Portuguese => "portuguese",
            Self::Bengali => "bengali",
            Self::Gujarati => "gujarati",
            Self::Hindi => "hindi",
            Self::Kannada => "kannada",
            Self::Malayalam => "malayalam",
            Self::Oriya => "oriya",
            Self::Punjabi => "punjabi",
            Self::Tamil => "tamil",
            Self::Telugu => "telugu",
            Self::Urdu => "urdu",
        }
    }

    /// The number in a user data header.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    fn locking(self) -> Option<&'static Locking> {
        Some(match self {
            Self::Turkish => &tables::TURKISH,
            Self::Spanish => return None,
            Self::Portuguese => &tables::PORTUGUESE,
            Self::Bengali => &tables::BENGALI,
            Self::Gujarati => &tables::GUJARATI,
            Self::Hindi => &tables::HINDI,
            Self::Kannada => &tables::KANNADA,
            Self::Malayalam => &tables::MALAYALAM,
            Self::Oriya => &tables::ORIYA,
            Self::Punjabi => &tables::PUNJABI,
            Self::Tamil => &tables::TAMIL,
            Self::Telugu => &tables::TELUGU,
            Self::Urdu => &tables::URDU,
        })
    }

    fn single(self) -> &'static Single {
        match self {
            Self::Turkish => tables::TURKISH_SINGLE,
            Self::Spanish => tables::SPANISH_SINGLE,
            Self::Portuguese => tables::PORTUGUESE_SINGLE,
            Self::Bengali => tables::BENGALI_SINGLE,
            Self::Gujarati => tables::GUJARATI_SINGLE,
            Self::Hindi => tables::HINDI_SINGLE,
            Self::Kannada => tables::KANNADA_SINGLE,
            Self::Malayalam => tables::MALAYALAM_SINGLE,
            Self::Oriya => tables::ORIYA_SINGLE,
            Self::Punjabi => tables::PUNJABI_SINGLE,
            Self::Tamil => tables::TAMIL_SINGLE,
            Self::Telugu => tables::TELUGU_SINGLE,
            Self::Urdu => tables::URDU_SINGLE,
        }
    }
}

/// The language tables of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LanguageTables {
    /// Locking shift table, replaces the default alphabet.
    pub locking: Option<Language>,
    /// Single shift table, replaces the default extension table.
    pub single: Option<Language>,
}

impl LanguageTables {
    /// The default alphabet and its extension.
    pub const DEFAULT: Self = Self { locking: None, single: None };

    fn base(self) -> &'static Locking {
        self.locking.and_then(Language::locking).unwrap_or(&tables::DEFAULT)
    }

    fn extension(self) -> &'static Single {
        self.single.map_or(tables::DEFAULT_SINGLE, Language::single)
    }

    /// The septets of a character, one or two; `None` if the tables lack it.
    #[must_use]
    pub fn encode(self, character: char) -> Option<Septets> {
        let wanted = u16::try_from(u32::from(character)).ok().filter(|code| *code != 0)?;
        if let Some(at) = self.base().iter().position(|code| *code == wanted) {
            return Some(Septets::one(at as u8));
        }
        let (septet, _) = self.extension().iter().find(|(_, code)| *code == wanted)?;
        Some(Septets::escaped(*septet))
    }
}

/// The one or two septets of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Septets {
    octets: [u8; 2],
    from: u8,
}

impl Septets {
    fn one(septet: u8) -> Self {
        Self { octets: [ESCAPE, septet], from: 1 }
    }

    fn escaped(septet: u8) -> Self {
        Self { octets: [ESCAPE, septet], from: 0 }
    }
}

impl IntoIterator for Septets {
    type Item = u8;
    type IntoIter = std::iter::Skip<std::array::IntoIter<u8, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.octets.into_iter().skip(usize::from(self.from))
    }
}

/// Encodes a text, one septet per octet; `None` if the tables lack a character.
#[must_use]
pub fn encode(text: &str, tables: LanguageTables) -> Option<Vec<u8>> {
    let mut septets = Vec::with_capacity(text.len());
    for character in text.chars() {
        septets.extend(tables.encode(character)?);
    }
    Some(septets)
}

/// Decodes septets, one per octet, as a handset displays them. An escape before a septet that the extension lacks is
/// skipped; a double escape, a final escape and an undefined position of a national table become a space. An octet over
/// 127 becomes a replacement character.
#[must_use]
pub fn decode(septets: &[u8], tables: LanguageTables) -> String {
    let (base, extension) = (tables.base(), tables.extension());
    let in_base = |septet: u8| match base.get(usize::from(septet)) {
        Some(0) => ' ',
        Some(code) => char::from_u32(u32::from(*code)).unwrap_or(' '),
        None => char::REPLACEMENT_CHARACTER,
    };
    let mut text = String::with_capacity(septets.len());
    let mut septets = septets.iter().copied();
    while let Some(septet) = septets.next() {
        if septet != ESCAPE {
            text.push(in_base(septet));
            continue;
        }
        let Some(next) = septets.next() else {
            text.push(' ');
            continue;
        };
        let found = extension.binary_search_by_key(&next, |(septet, _)| *septet).ok();
        let shown =
            found.and_then(|at| extension.get(at)).and_then(|(_, code)| char::from_u32(u32::from(*code)));
        text.push(shown.unwrap_or_else(|| in_base(next)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_tables() -> Vec<LanguageTables> {
        let some = || std::iter::once(None).chain(Language::ALL.map(Some));
        some().flat_map(|locking| some().map(move |single| LanguageTables { locking, single })).collect()
    }

    #[test]
    fn the_default_alphabet() {
        assert_eq!(
            encode("@£$€[", LanguageTables::DEFAULT),
            Some(vec![0x00, 0x01, 0x02, 0x1B, 0x65, 0x1B, 0x3C])
        );
        assert_eq!(decode(&[0x00, 0x01, 0x02, 0x1B, 0x65, 0x1B, 0x3C], LanguageTables::DEFAULT), "@£$€[");
        assert_eq!(encode("ж", LanguageTables::DEFAULT), None);
        assert_eq!(encode("ç", LanguageTables::DEFAULT), None);
        assert_eq!(encode("Ç\u{0C}", LanguageTables::DEFAULT), Some(vec![9, 0x1B, 0x0A]));
        assert_eq!(encode("\0", LanguageTables::DEFAULT), None);
        assert_eq!(encode("\u{1B}", LanguageTables::DEFAULT), None);
        let whole: Vec<u8> = (0..0x80).filter(|septet| *septet != ESCAPE).collect();
        let text = decode(&whole, LanguageTables::DEFAULT);
        assert_eq!(text.chars().count(), 127);
        assert!(text.starts_with("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABC"));
        assert!(text.ends_with("XYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"));
        assert_eq!(encode(&text, LanguageTables::DEFAULT), Some(whole));
    }

    #[test]
    fn undefined_escapes_are_displayed() {
        assert_eq!(decode(&[0x1B, 0x41], LanguageTables::DEFAULT), "A");
        assert_eq!(decode(&[0x1B, 0x1B, 0x41], LanguageTables::DEFAULT), " A");
        assert_eq!(decode(&[0x41, 0x1B], LanguageTables::DEFAULT), "A ");
        assert_eq!(decode(&[0x80], LanguageTables::DEFAULT), "\u{FFFD}");
        assert_eq!(decode(&[0x1B, 0x80], LanguageTables::DEFAULT), "\u{FFFD}");
        let bengali = LanguageTables { locking: Some(Language::Bengali), single: None };
        assert_eq!(decode(&[0x0C], bengali), " ");
    }

    #[test]
    fn tables_have_known_characters_at_known_positions() {
        // Language, number, septet and character of its locking table, and of its single shift table.
        type Row = (Language, u8, &'static [(u8, char)], &'static [(u8, char)]);
        let rows: [Row; 13] = [
            (
                Language::Turkish,
                1,
                &[(0x04, '€'), (0x07, 'ı'), (0x0B, 'Ğ'), (0x40, 'İ'), (0x60, 'ç')],
                &[(0x53, 'Ş'), (0x69, 'ı'), (0x65, '€')],
            ),
            (Language::Spanish, 2, &[], &[(0x09, 'ç'), (0x41, 'Á'), (0x75, 'ú')]),
            (
                Language::Portuguese,
                3,
                &[(0x04, 'ê'), (0x12, 'ª'), (0x15, '∞'), (0x5B, 'Ã'), (0x7D, '`')],
                &[(0x05, 'ê'), (0x12, 'Φ'), (0x5B, 'Ã'), (0x7F, 'â')],
            ),
            (
                Language::Bengali,
                4,
                &[(0x00, 'ঁ'), (0x03, 'অ'), (0x2C, ','), (0x7F, '\u{9F1}')],
                &[(0x19, '০'), (0x2F, '\\'), (0x34, '\u{9FA}')],
            ),
            (
                Language::Gujarati,
                5,
                &[(0x03, 'અ'), (0x60, '\u{AD0}'), (0x7F, '\u{AF1}')],
                &[(0x19, '।'), (0x1C, '૦'), (0x25, '૯')],
            ),
            (
                Language::Hindi,
                6,
                &[(0x03, 'अ'), (0x15, 'क'), (0x60, 'ॐ')],
                &[(0x19, '।'), (0x1C, '०'), (0x39, '\u{970}')],
            ),
            (
                Language::Kannada,
                7,
                &[(0x03, 'ಅ'), (0x24, 'ಡ'), (0x3D, 'ಪ')],
                &[(0x1C, '೦'), (0x3C, '['), (0x26, '\u{CDE}')],
            ),
            (
                Language::Malayalam,
                8,
                &[(0x03, 'അ'), (0x2E, '.'), (0x7F, '\u{D79}')],
                &[(0x1C, '൦'), (0x34, 'ൿ')],
            ),
            (Language::Oriya, 9, &[(0x03, 'ଅ'), (0x7F, '\u{B63}')], &[(0x1C, '୦'), (0x2C, '\u{B71}')]),
            (Language::Punjabi, 10, &[(0x03, 'ਅ'), (0x7F, '\u{A74}')], &[(0x1C, '੦'), (0x2D, '\u{A75}')]),
            (Language::Tamil, 11, &[(0x03, 'அ'), (0x7F, '௹')], &[(0x1C, '௦'), (0x24, '௮'), (0x2E, '௺')]),
            (
                Language::Telugu,
                12,
                &[(0x03, 'అ'), (0x7F, '\u{C63}')],
                &[(0x1C, '౦'), (0x22, '౬'), (0x32, '\u{C7F}')],
            ),
            (
                Language::Urdu,
                13,
                &[(0x00, 'ا'), (0x02, 'ب'), (0x7F, '\u{670}')],
                &[(0x1C, '۰'), (0x3F, '۔'), (0x3B, '\u{6CD}')],
            ),
        ];
        for (language, number, locking, single) in rows {
            assert_eq!((language.number(), Language::from_number(number)), (number, Some(language)));
            let base = LanguageTables { locking: Some(language), single: None };
            for (septet, character) in locking {
                assert_eq!(decode(&[*septet], base), character.to_string(), "{language:?} {septet:02x}");
                assert_eq!(
                    encode(&character.to_string(), base),
                    Some(vec![*septet]),
                    "{language:?} {septet:02x}"
                );
            }
            let extended = LanguageTables { locking: None, single: Some(language) };
            for (septet, character) in single {
                let read = decode(&[ESCAPE, *septet], extended);
                assert_eq!(read, character.to_string(), "{language:?} {septet:02x}");
                assert_eq!(decode(&encode(&read, extended).unwrap(), extended), read);
            }
            assert_eq!(decode(&[ESCAPE, 0x65], extended), "€");
        }
        assert_eq!((Language::from_number(0), Language::from_number(14)), (None, None));
        let spanish = LanguageTables { locking: Some(Language::Spanish), single: None };
        assert_eq!(decode(&[0x00], spanish), "@", "no locking table");
    }

    #[test]
    fn every_table_round_trips() {
        for tables in all_tables() {
            for septet in 0..0x80 {
                for septets in [&[septet][..], &[ESCAPE, septet]] {
                    let text = decode(septets, tables);
                    assert_eq!(text.chars().count(), 1, "{tables:?} {septets:02x?}");
                    let Some(again) = encode(&text, tables) else {
                        assert_eq!(text, " ", "{tables:?} {septets:02x?}");
                        continue;
                    };
                    assert_eq!(decode(&again, tables), text, "{tables:?} {septets:02x?}");
                    assert!(again.len() <= 2);
                }
            }
        }
    }

    #[test]
    fn tables_are_sorted_and_unique() {
        for tables in all_tables() {
            assert!(tables.extension().is_sorted_by_key(|(septet, _)| *septet), "{tables:?}");
            assert!(
                tables
                    .extension()
                    .iter()
                    .all(|(septet, code)| *septet < 0x80 && *code != 0 && *septet != ESCAPE)
            );
            let mut codes: Vec<u16> = tables.base().iter().copied().filter(|code| *code != 0).collect();
            let count = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), count, "{tables:?}");
            assert_eq!(tables.base()[usize::from(ESCAPE)], 0);
        }
    }
}
