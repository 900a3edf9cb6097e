pub(crate) mod build;

use crate::document::Show;
use crate::number::{Called, Class, Kind, Number, Refused, Target};
use crate::pattern::{LONGEST, Pattern, is_digits};
use crate::ranges::Ranges;
use model::Address;
use std::sync::Arc;

/// The fewest digits of an international number, country code included: there are countries whose own numbers have four.
pub(crate) const SHORTEST: usize = 7;

/// The number plan of one country, as seen by one network in it.
#[derive(Debug, Clone)]
pub struct Plan {
    name: String,
    country_code: String,
    international_prefix: Vec<String>,
    trunk_prefix: Vec<String>,
    trunk_needed: bool,
    national: Vec<Pattern>,
    local: Vec<Pattern>,
    area_code_of_caller: Option<usize>,
    area_code: Option<String>,
    show: Show,
    to_national: Target,
    to_international: Target,
    /// By international number.
    ranges: Ranges<Arc<Range>>,
    /// By what is dialled.
    short: Ranges<Short>,
    peers: Vec<String>,
}

/// Numbers that belong together.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    name: String,
    to: Target,
}

/// What a short form means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Short {
    Code(Arc<Range>),
    Internal(Arc<Range>),
    /// The ending of an international number that begins so.
    Abbreviation(String),
}

impl Plan {
    /// Its name in the document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digits of the country code.
    #[must_use]
    pub fn country_code(&self) -> &str {
        &self.country_code
    }

    /// The peers that it names; some may be there more than once.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(String::as_str)
    }

    /// Brings a number into its one form, and says whose it is. `caller` is the international number of who dialled it, for
    /// numbers that are dialled without an area code; a plus sign in front does not count.
    ///
    /// What it makes of its own international numbers is the same number again.
    ///
    /// # Errors
    /// It is no number in this plan, or one that the plan refuses; with words for the trace that have no digit of it.
    pub fn normalise(&self, called: &Called<'_>, caller: Option<&str>) -> Result<Number, Refused> {
        let (digits, plus) = match called.digits.strip_prefix('+') {
            Some(digits) => (digits, true),
            None => (called.digits, false),
        };
        if called.ton == 5 {
            return Err(self.invalid("letters are no number to send to"));
        }
        if !is_digits(digits) {
            return Err(self.invalid("there are no digits, or not only digits"));
        }
        if !matches!(called.npi, 0 | 1 | 8 | 9) {
            return Err(self.invalid(&format!("numbering plan {} is none for phones", called.npi)));
        }
        if plus && called.ton > 1 {
            return Err(self.invalid(&format!("a plus sign does not go with type of number {}", called.ton)));
        }
        match called.ton {
            1 => self.international(digits, "international as written"),
            0 if plus => self.international(digits, "international as written"),
            0 => self.dialled(digits, caller),
            2 => self
                .national(digits, true)
                .or_else(|| self.short(digits))
                .or_else(|| self.local(digits, caller))
                .unwrap_or_else(|| Err(self.invalid("no national number"))),
            3 | 6 => self.short(digits).unwrap_or_else(|| Err(self.invalid("no short code of the plan's"))),
            4 => self
                .short(digits)
                .or_else(|| self.local(digits, caller))
                .unwrap_or_else(|| Err(self.invalid("no local number"))),
            ton => Err(self.invalid(&format!("type of number {ton} is unknown"))),
        }
    }

    /// The form in which a subscriber is shown where a message comes from. A phone that answers to it reaches the same
    /// number: where a national form would not, the number stays international. Names and short forms stay as they are.
    #[must_use]
    pub fn display(&self, source: &Address) -> Address {
        let Some(called) = Called::of(source) else { return source.clone() };
        let digits = match (called.ton, called.digits.strip_prefix('+')) {
            (1, None) => called.digits,
            (0 | 1, Some(digits)) => digits,
            _ => return source.clone(),
        };
        if !is_digits(digits) {
            return source.clone();
        }
        match self.national_form(digits) {
            Some(national) => Address::new(0, 1, national.as_bytes()),
            None => Address::international(digits),
        }
    }

    /// How an international number of this country is dialled within it, where the plan shows it so.
    fn national_form(&self, digits: &str) -> Option<String> {
        let number = digits.strip_prefix(&self.country_code).filter(|_| self.show == Show::National)?;
        let trunk = self.trunk_prefix.first().filter(|_| self.trunk_needed).map_or("", String::as_str);
        let form = format!("{trunk}{number}");
        let back = self.dialled(&form, None).ok()?;
        (back.kind == Kind::E164 && back.digits == digits).then_some(form)
    }

    /// Digits of unknown type.
    fn dialled(&self, digits: &str, caller: Option<&str>) -> Result<Number, Refused> {
        if let Some(answer) = self.short(digits) {
            return answer;
        }
        if let Some(rest) = longest(&self.international_prefix, digits) {
            return self.international(rest, "dialled internationally");
        }
        self.national(digits, !self.trunk_needed).or_else(|| self.local(digits, caller)).unwrap_or_else(
            || Err(self.invalid(&format!("{} digits are of no form of the plan's", digits.len()))),
        )
    }

    /// Short codes, internal numbers, abbreviations.
    fn short(&self, digits: &str) -> Option<Result<Number, Refused>> {
        Some(match self.short.find(digits)? {
            Short::Code(range) => self.in_short(digits, range, "short code", Class::ShortCode),
            Short::Internal(range) => {
                let class = match &range.to {
                    Target::Peer(peer) => Class::Peer(peer.clone()),
                    _ => Class::Home,
                };
                self.in_short(digits, range, "internal", class)
            }
            Short::Abbreviation(before) => self.e164(format!("{before}{digits}"), "abbreviated"),
        })
    }

    fn in_short(&self, digits: &str, range: &Range, form: &str, class: Class) -> Result<Number, Refused> {
        let rule = format!("{}: {form}, {}", self.name, range.name);
        if range.to == Target::Refuse {
            return Err(Refused::NotAllowed(format!("{rule}: refused")));
        }
        Ok(Number { digits: digits.to_owned(), kind: Kind::Short, class, to: range.to.clone(), rule })
    }

    /// National numbers, after a trunk prefix or, if that may be, without.
    fn national(&self, digits: &str, bare: bool) -> Option<Result<Number, Refused>> {
        let whole = |number: &str| format!("{}{number}", self.country_code);
        let trunk = self.trunk_prefix.iter().filter_map(|prefix| digits.strip_prefix(prefix.as_str()));
        if let Some(number) = trunk.map(whole).find(|number| self.exists(number)) {
            return Some(self.e164(number, "national with trunk prefix"));
        }
        let number = Some(whole(digits)).filter(|number| bare && self.exists(number))?;
        Some(self.e164(number, "national"))
    }

    /// Numbers within an area.
    fn local(&self, digits: &str, caller: Option<&str>) -> Option<Result<Number, Refused>> {
        self.local.iter().find(|pattern| pattern.fits(digits))?;
        let of_caller = self.area_code_of_caller.and_then(|length| {
            let caller = caller.map(|caller| caller.strip_prefix('+').unwrap_or(caller))?;
            caller.strip_prefix(&self.country_code)?.get(..length).filter(|area| is_digits(area))
        });
        let (area, form) = match (of_caller, &self.area_code) {
            (Some(area), _) => (area, "local, in the caller's area"),
            (None, Some(area)) => (area.as_str(), "local, in the plan's area"),
            (None, None) => {
                return Some(Err(self.invalid("a local number, and the caller's area code is not known")));
            }
        };
        let number = format!("{}{area}{digits}", self.country_code);
        Some(if self.exists(&number) {
            self.e164(number, form)
        } else {
            Err(self.invalid("no number of this country, once the area code is in front"))
        })
    }

    fn international(&self, digits: &str, form: &str) -> Result<Number, Refused> {
        if !(SHORTEST..=LONGEST).contains(&digits.len()) || digits.starts_with('0') {
            return Err(self.invalid(&format!(
                "{form}, and not {SHORTEST} to {LONGEST} digits of which the first is no zero"
            )));
        }
        if digits.starts_with(&self.country_code) && !self.exists(digits) {
            return Err(self.invalid(&format!("{form}, and no number of this country")));
        }
        self.e164(digits.to_owned(), form)
    }

    /// Whether an international number of this country has the form of one, or stands in a range.
    fn exists(&self, digits: &str) -> bool {
        let national = digits.strip_prefix(&self.country_code);
        (SHORTEST..=LONGEST).contains(&digits.len())
            && (national.is_some_and(|number| self.national.iter().any(|pattern| pattern.fits(number)))
                || self.ranges.find(digits).is_some())
    }

    /// A number that is international by now.
    fn e164(&self, digits: String, form: &str) -> Result<Number, Refused> {
        let range = self.ranges.find(&digits);
        let (elsewhere, to, name) = match digits.starts_with(&self.country_code) {
            true => (Class::National, &self.to_national, "this country"),
            false => (Class::International, &self.to_international, "another country"),
        };
        let (to, name) = range.map_or((to, name), |range| (&range.to, range.name.as_str()));
        let rule = format!("{}: {form}, {name}", self.name);
        let class = match to {
            Target::Refuse => return Err(Refused::NotAllowed(format!("{rule}: refused"))),
            Target::Home => Class::Home,
            Target::Peer(peer) if range.is_some() => Class::Peer(peer.clone()),
            Target::Peer(_) | Target::Route => elsewhere,
        };
        Ok(Number { digits, kind: Kind::E164, class, to: to.clone(), rule })
    }

    fn invalid(&self, what: &str) -> Refused {
        Refused::Invalid(format!("{}: {what}", self.name))
    }
}

/// What follows the longest of these that the digits begin with.
fn longest<'d>(prefixes: &[String], digits: &'d str) -> Option<&'d str> {
    prefixes.iter().filter_map(|prefix| digits.strip_prefix(prefix.as_str())).min_by_key(|rest| rest.len())
}
