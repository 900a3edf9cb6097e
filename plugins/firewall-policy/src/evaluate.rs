//! Evaluates the rules for a message.

use crate::action::{Action, Reason, Verdict};
use crate::facts::{Facts, Link};
use crate::fold::original_range;
use crate::rule::{DomainList, Rule};
use crate::source::{SourceKind, is_registered};
use crate::{Host, Policy, Question};
use pace_policy::{Bucket, PacedSender, Window};
use policy_values::digits_of;
use std::collections::BTreeMap;
use std::ops::Range;

/// The result for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict; a message that no rule stops passes.
    pub verdict: Verdict,
    /// Attributes for later plugins: name and value.
    pub tags: BTreeMap<String, String>,
    /// Pace buckets that the message uses, each once.
    pub buckets: Vec<Bucket>,
    /// Send windows that it uses, each once.
    pub windows: Vec<Window>,
    /// The text that replaces the message's text.
    pub text: Option<String>,
    /// The rules that applied, with their findings.
    pub note: Option<String>,
}

/// The finding of a rule in a message to which it applies.
#[derive(Debug, Default)]
struct Finding {
    /// For the note.
    what: Option<String>,
    /// The parts of the text that the rule can replace.
    parts: Vec<Range<usize>>,
}

impl Finding {
    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.what.is_none() {
            self.what = Some(what());
        }
    }
}

impl Policy {
    /// Evaluates the rules in order, up to the first that decides; the others add tags, or replace parts of the text.
    /// Conditions see the original text. A counter counts the messages to which the other conditions of its rule apply.
    pub fn evaluate(&self, asked: &Question<'_>, host: &impl Host) -> Outcome {
        let facts = Facts::new(host, &self.search);
        let mut outcome = Outcome {
            verdict: Verdict::Pass,
            tags: BTreeMap::new(),
            buckets: Vec::new(),
            windows: Vec::new(),
            text: None,
            note: None,
        };
        let mut notes: Vec<String> = Vec::new();
        let mut replaced: Vec<(Range<usize>, &str)> = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let Some(finding) = rule.applies(index, asked, &facts) else { continue };
            notes.push(match finding.what {
                Some(what) => format!("{}: {what}", rule.name),
                None => rule.name.clone(),
            });
            outcome.tags.extend(rule.tags.iter().cloned());
            match &rule.action {
                Action::Tag => {}
                Action::Pace(pace) => {
                    let named = (&mut outcome.buckets, &mut outcome.windows);
                    let sender = PacedSender { account: asked.account, source: asked.source };
                    if let Err(what) = pace.add(sender, |table, key| host.look_up(table, key), named) {
                        // Without its limits it must not be sent.
                        outcome.verdict = Verdict::Reject(Reason::TryLater);
                        notes.push(what);
                        break;
                    }
                }
                Action::Replace(with) => {
                    replaced.extend(finding.parts.into_iter().map(|part| (part, &**with)));
                }
                Action::Decide(verdict) => {
                    outcome.verdict = *verdict;
                    break;
                }
            }
        }
        outcome.note = (!notes.is_empty()).then(|| notes.join("; "));
        match outcome.verdict {
            Verdict::Pass | Verdict::Quarantine if replaced.is_empty() => {}
            Verdict::Pass | Verdict::Quarantine => {
                outcome.text = facts.text().map(|text| replace(text, replaced));
            }
            // The message does not go on.
            Verdict::Reject(_) | Verdict::Drop(_) => {
                outcome.tags.clear();
                (outcome.buckets, outcome.windows) = (Vec::new(), Vec::new());
            }
        }
        outcome
    }
}

impl Rule {
    /// The finding of a rule, if all its conditions hold. Cheap conditions are checked first, counting conditions last.
    fn applies(&self, index: usize, asked: &Question<'_>, facts: &Facts<'_, impl Host>) -> Option<Finding> {
        if !self.applies_to_record(asked) || !self.applies_to_source(asked, facts.host) {
            return None;
        }
        let mut finding = Finding::default();
        if !self.applies_to_words(index, facts, &mut finding) || !self.applies_to_links(facts, &mut finding) {
            return None;
        }
        if let Some(dlt) = &self.dlt {
            let failure = dlt.failure(facts.text(), facts.host)?;
            finding.note(|| failure);
        }
        // Both must count, even if one has a finding.
        let near_duplicates =
            self.near_duplicates.as_ref().map(|condition| condition.count(&self.name, asked, facts.host));
        let volume = self.volume.as_ref().map(|condition| condition.count(&self.name, asked, facts.host));
        for counted in [near_duplicates, volume].into_iter().flatten() {
            let what = counted?;
            finding.note(|| what);
        }
        Some(finding)
    }

    fn applies_to_record(&self, asked: &Question<'_>) -> bool {
        let is_to = |prefix: &String| {
            let number = asked.destination.strip_prefix('+').unwrap_or(asked.destination);
            // The empty prefix is for numbers.
            number.starts_with(&**prefix) && digits_of(number).is_some()
        };
        (self.accounts.is_empty() || self.accounts.iter().any(|account| account.matches(asked.account)))
            && (self.sources.is_empty() || self.sources.iter().any(|source| source.matches(asked.source)))
            && self.source_kind.is_none_or(|kind| kind == SourceKind::of(asked.source))
            && (self.destinations.is_empty() || self.destinations.iter().any(is_to))
            && (self.data_codings.is_empty() || self.data_codings.contains(&asked.data_coding))
            && self.segments_over.is_none_or(|most| asked.segments > most)
            && self.header.is_none_or(|header| header == asked.header)
    }

    fn applies_to_source(&self, asked: &Question<'_>, host: &impl Host) -> bool {
        let is_in = |table: usize| {
            is_registered(asked.account, asked.source, |key| host.look_up(table, key).is_some())
        };
        self.registered.is_none_or(is_in) && self.unregistered.is_none_or(|table| !is_in(table))
    }

    fn applies_to_words(&self, index: usize, facts: &Facts<'_, impl Host>, finding: &mut Finding) -> bool {
        if !self.words.is_given() {
            return true;
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        if self.words.own {
            let own = facts.words().iter().filter(|found| found.rule == index);
            found.extend(own.map(|found| found.start..found.end));
        }
        // All places are needed only for a replacement.
        let most = if self.replaces() { usize::MAX } else { 1 };
        if let Some(table) = self.words.table
            && (found.is_empty() || self.replaces())
        {
            for word in facts.words_in_table(table).take(most) {
                found.extend(whole_words(facts.folded(), word));
            }
        }
        let Some(first) = found.first() else { return false };
        finding.note(|| format!("{:?}", facts.folded().get(first.clone()).unwrap_or_default()));
        if self.replaces() {
            let text = facts.text().unwrap_or_default();
            finding.parts.extend(found.iter().map(|part| {
                let (start, end) = original_range(text, part.start, part.end);
                start..end
            }));
        }
        true
    }

    fn applies_to_links(&self, facts: &Facts<'_, impl Host>, finding: &mut Finding) -> bool {
        if self.links.is_none() && self.domains.is_none() && self.other_domains.is_none() {
            return true;
        }
        if self.links.is_some_and(|wanted| wanted == facts.links().is_empty()) {
            return false;
        }
        let mut found: Vec<&Link> = Vec::new();
        for (list, is_wanted) in [(&self.domains, true), (&self.other_domains, false)] {
            let Some(list) = list else { continue };
            let before = found.len();
            found.extend(facts.links().iter().filter(|link| {
                if is_wanted {
                    link.domain.resembles_listed(|domain| list.has(domain, facts.host))
                } else {
                    !link.domain.is_within(|domain| list.has(domain, facts.host))
                }
            }));
            if found.len() == before {
                return false;
            }
        }
        if self.domains.is_none() && self.other_domains.is_none() {
            found.extend(facts.links());
        }
        if let Some(link) = found.first() {
            finding.note(|| format!("a link to {}", link.domain.written));
        }
        if self.replaces() {
            let text = facts.text().unwrap_or_default();
            let parts = found
                .iter()
                .flat_map(|link| text.match_indices(&*link.url).map(|(start, url)| start..start + url.len()));
            finding.parts.extend(parts);
        }
        true
    }

    fn replaces(&self) -> bool {
        matches!(self.action, Action::Replace(_))
    }
}

impl DomainList {
    fn has(&self, domain: &str, host: &impl Host) -> bool {
        self.own.contains(domain) || self.table.is_some_and(|table| host.look_up(table, domain).is_some())
    }
}

/// The ranges of a whole word in a folded text.
fn whole_words(folded: &str, word: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut start = 0;
    for part in folded.split(|c: char| !c.is_alphanumeric()) {
        if part == word {
            places.push(start..start + part.len());
        }
        start += part.len();
        start += folded.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    }
    places
}

/// The text with these parts replaced. Of overlapping parts, the first counts; of parts with the same start, the longest.
fn replace(text: &str, mut parts: Vec<(Range<usize>, &str)>) -> String {
    parts.sort_by_key(|(part, _)| (part.start, std::cmp::Reverse(part.end)));
    let mut replaced = String::with_capacity(text.len());
    let mut done = 0;
    for (part, with) in parts {
        if part.start >= done && part.end > part.start {
            replaced.push_str(text.get(done..part.start).unwrap_or_default());
            replaced.push_str(with);
            done = part.end;
        }
    }
    replaced.push_str(text.get(done..).unwrap_or_default());
    replaced
}
