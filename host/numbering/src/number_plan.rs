pub(crate) mod build;

use crate::document::DisplayForm;
use crate::normalised_number::{
    DialledNumber, NormalisedNumber, NumberClass, NumberKind, NumberRefusal, NumberTarget,
};
use crate::pattern_set::{MAX_DIGITS, Pattern, is_digits};
use crate::range_map::RangeMap;
use model::Address;
use std::sync::Arc;

/// Minimum digits of an international number, including the country code: some countries have numbers of four digits.
pub(crate) const MIN_DIGITS: usize = 7;

/// The number plan of one country, from the point of view of one network.
#[derive(Debug, Clone)]
pub struct NumberPlan {
    name: String,
    country_code: String,
    international_prefix: Vec<String>,
    trunk_prefix: Vec<String>,
    trunk_needed: bool,
    national: Vec<Pattern>,
    local: Vec<Pattern>,
    area_code_of_caller: Option<usize>,
    area_code: Option<String>,
    show: DisplayForm,
    to_national: NumberTarget,
    to_international: NumberTarget,
    /// Ranges of international numbers.
    ranges: RangeMap<Arc<PlanRange>>,
    /// Short forms as dialled.
    short: RangeMap<ShortForm>,
    peers: Vec<String>,
}

/// A named range with a routing target.
#[derive(Debug, PartialEq, Eq)]
struct PlanRange {
    name: String,
    to: NumberTarget,
}

/// The meaning of a short form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ShortForm {
    Code(Arc<PlanRange>),
    Internal(Arc<PlanRange>),
    /// The suffix of an international number with this prefix.
    Abbreviation(String),
}

impl NumberPlan {
    /// The name in the document.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Digits of the country code.
    #[must_use]
    pub fn country_code(&self) -> &str {
        &self.country_code
    }

    /// The peers named by the plan, possibly with duplicates.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(String::as_str)
    }

    /// Normalises and classifies a number. `caller` is the caller's international number, used for numbers dialled
    /// without an area code; a leading plus sign is ignored.
    ///
    /// Normalising a normalised international number returns the same number.
    ///
    /// # Errors
    /// If the number is invalid in this plan or refused by it; the text for the trace contains no digit of it.
    pub fn normalise(
        &self,
        dialled: &DialledNumber<'_>,
        caller: Option<&str>,
    ) -> Result<NormalisedNumber, NumberRefusal> {
        let (digits, plus) = match dialled.digits.strip_prefix('+') {
            Some(digits) => (digits, true),
            None => (dialled.digits, false),
        };
        if dialled.ton == 5 {
            return Err(self.invalid("an alphanumeric address is not a number"));
        }
        if !is_digits(digits) {
            return Err(self.invalid("the number is empty or contains other characters than digits"));
        }
        if !matches!(dialled.npi, 0 | 1 | 8 | 9) {
            return Err(
                self.invalid(&format!("numbering plan {} is not a telephone numbering plan", dialled.npi))
            );
        }
        if plus && dialled.ton > 1 {
            return Err(
                self.invalid(&format!("a plus sign is not allowed with type of number {}", dialled.ton))
            );
        }
        match dialled.ton {
            1 => self.international(digits, "international as written"),
            0 if plus => self.international(digits, "international as written"),
            0 => self.dialled(digits, caller),
            2 => self
                .national(digits, true)
                .or_else(|| self.short(digits))
                .or_else(|| self.local(digits, caller))
                .unwrap_or_else(|| Err(self.invalid("not a national number"))),
            3 | 6 => self.short(digits).unwrap_or_else(|| Err(self.invalid("not a short code of the plan"))),
            4 => self
                .short(digits)
                .or_else(|| self.local(digits, caller))
                .unwrap_or_else(|| Err(self.invalid("not a local number"))),
            ton => Err(self.invalid(&format!("type of number {ton} is unknown"))),
        }
    }

    /// The display form of a sender. A handset that answers reaches the same number: if the national form would not,
    /// the number stays international. Names and short forms are not changed.
    #[must_use]
    pub fn display(&self, source: &Address) -> Address {
        let Some(dialled) = DialledNumber::of(source) else { return source.clone() };
        let digits = match (dialled.ton, dialled.digits.strip_prefix('+')) {
            (1, None) => dialled.digits,
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

    /// The national form of an international number of this country, if the plan displays it so.
    fn national_form(&self, digits: &str) -> Option<String> {
        let number =
            digits.strip_prefix(&self.country_code).filter(|_| self.show == DisplayForm::National)?;
        let trunk = self.trunk_prefix.first().filter(|_| self.trunk_needed).map_or("", String::as_str);
        let form = format!("{trunk}{number}");
        let back = self.dialled(&form, None).ok()?;
        (back.kind == NumberKind::E164 && back.digits == digits).then_some(form)
    }

    /// Matches digits of unknown type.
    fn dialled(&self, digits: &str, caller: Option<&str>) -> Result<NormalisedNumber, NumberRefusal> {
        if let Some(answer) = self.short(digits) {
            return answer;
        }
        if let Some(rest) = longest(&self.international_prefix, digits) {
            return self.international(rest, "dialled internationally");
        }
        self.national(digits, !self.trunk_needed).or_else(|| self.local(digits, caller)).unwrap_or_else(
            || Err(self.invalid(&format!("{} digits match no form of the plan", digits.len()))),
        )
    }

    /// Matches short codes, internal numbers and abbreviations.
    fn short(&self, digits: &str) -> Option<Result<NormalisedNumber, NumberRefusal>> {
        Some(match self.short.find(digits)? {
            ShortForm::Code(range) => {
                self.short_form_number(digits, range, "short code", NumberClass::ShortCode)
            }
            ShortForm::Internal(range) => {
                let class = match &range.to {
                    NumberTarget::Peer(peer) => NumberClass::Peer(peer.clone()),
                    _ => NumberClass::Home,
                };
                self.short_form_number(digits, range, "internal", class)
            }
            ShortForm::Abbreviation(before) => self.e164(format!("{before}{digits}"), "abbreviated"),
        })
    }

    fn short_form_number(
        &self,
        digits: &str,
        range: &PlanRange,
        form: &str,
        class: NumberClass,
    ) -> Result<NormalisedNumber, NumberRefusal> {
        let rule = format!("{}: {form}, {}", self.name, range.name);
        if range.to == NumberTarget::Refuse {
            return Err(NumberRefusal::NotAllowed(format!("{rule}: refused")));
        }
        Ok(NormalisedNumber {
            digits: digits.to_owned(),
            kind: NumberKind::Short,
            class,
            to: range.to.clone(),
            rule,
        })
    }

    /// Matches national numbers with a trunk prefix; with `bare` also without.
    fn national(&self, digits: &str, bare: bool) -> Option<Result<NormalisedNumber, NumberRefusal>> {
        let whole = |number: &str| format!("{}{number}", self.country_code);
        let trunk = self.trunk_prefix.iter().filter_map(|prefix| digits.strip_prefix(prefix.as_str()));
        if let Some(number) = trunk.map(whole).find(|number| self.exists(number)) {
            return Some(self.e164(number, "national with trunk prefix"));
        }
        let number = Some(whole(digits)).filter(|number| bare && self.exists(number))?;
        Some(self.e164(number, "national"))
    }

    /// Matches local numbers.
    fn local(&self, digits: &str, caller: Option<&str>) -> Option<Result<NormalisedNumber, NumberRefusal>> {
        self.local.iter().find(|pattern| pattern.matches(digits))?;
        let of_caller = self.area_code_of_caller.and_then(|length| {
            let caller = caller.map(|caller| caller.strip_prefix('+').unwrap_or(caller))?;
            caller.strip_prefix(&self.country_code)?.get(..length).filter(|area| is_digits(area))
        });
        let (area, form) = match (of_caller, &self.area_code) {
            (Some(area), _) => (area, "local, in the caller's area"),
            (None, Some(area)) => (area.as_str(), "local, in the plan's area"),
            (None, None) => {
                return Some(Err(self.invalid("a local number, but the caller's area code is unknown")));
            }
        };
        let number = format!("{}{area}{digits}", self.country_code);
        Some(if self.exists(&number) {
            self.e164(number, form)
        } else {
            Err(self.invalid("not a number of this country with the area code"))
        })
    }

    fn international(&self, digits: &str, form: &str) -> Result<NormalisedNumber, NumberRefusal> {
        if !(MIN_DIGITS..=MAX_DIGITS).contains(&digits.len()) || digits.starts_with('0') {
            return Err(self.invalid(&format!(
                "{form}, but not {MIN_DIGITS} to {MAX_DIGITS} digits without a leading zero"
            )));
        }
        if digits.starts_with(&self.country_code) && !self.exists(digits) {
            return Err(self.invalid(&format!("{form}, but not a number of this country")));
        }
        self.e164(digits.to_owned(), form)
    }

    /// Whether an international number of this country is valid or in a range.
    fn exists(&self, digits: &str) -> bool {
        let national = digits.strip_prefix(&self.country_code);
        (MIN_DIGITS..=MAX_DIGITS).contains(&digits.len())
            && (national.is_some_and(|number| self.national.iter().any(|pattern| pattern.matches(number)))
                || self.ranges.find(digits).is_some())
    }

    /// Classifies an international number.
    fn e164(&self, digits: String, form: &str) -> Result<NormalisedNumber, NumberRefusal> {
        let range = self.ranges.find(&digits);
        let (elsewhere, to, name) = match digits.starts_with(&self.country_code) {
            true => (NumberClass::National, &self.to_national, "this country"),
            false => (NumberClass::International, &self.to_international, "another country"),
        };
        let (to, name) = range.map_or((to, name), |range| (&range.to, range.name.as_str()));
        let rule = format!("{}: {form}, {name}", self.name);
        let class = match to {
            NumberTarget::Refuse => return Err(NumberRefusal::NotAllowed(format!("{rule}: refused"))),
            NumberTarget::Home => NumberClass::Home,
            NumberTarget::Peer(peer) if range.is_some() => NumberClass::Peer(peer.clone()),
            NumberTarget::Peer(_) | NumberTarget::Route => elsewhere,
        };
        Ok(NormalisedNumber { digits, kind: NumberKind::E164, class, to: to.clone(), rule })
    }

    fn invalid(&self, what: &str) -> NumberRefusal {
        NumberRefusal::Invalid(format!("{}: {what}", self.name))
    }
}

/// The digits after the longest matching prefix.
fn longest<'d>(prefixes: &[String], digits: &'d str) -> Option<&'d str> {
    prefixes.iter().filter_map(|prefix| digits.strip_prefix(prefix.as_str())).min_by_key(|rest| rest.len())
}
