//! Templates of India's distributed ledger (DLT): commercial texts are registered there, and a message names its template and
//! its sender's entity in TLVs.

use crate::Host;

/// TLV of the principal entity's id.
const ENTITY_TAG: u16 = 0x1400;
/// TLV of the template's id.
const TEMPLATE_TAG: u16 = 0x1401;
/// The place of a variable in a template.
const VARIABLE: &str = "{#var#}";
/// Maximum length of a variable's value, in characters.
const MAX_VARIABLE: usize = 30;
/// Maximum number of rows of one template; a value of a table has 256 octets.
const MAX_ROWS: usize = 16;

/// The check of a message against its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DltCheck {
    /// The table of templates, by its index. The key is the template's id, and `ID/2`, `ID/3` and so on for the rest of a long
    /// text.
    pub(crate) templates: usize,
    /// The table of the templates' entities.
    pub(crate) entities: Option<usize>,
}

impl DltCheck {
    /// The reason why a message fails the check; `None` if it passes.
    pub(crate) fn failure(&self, text: Option<&str>, host: &impl Host) -> Option<String> {
        let Some(entity) = id(host, ENTITY_TAG) else {
            return Some("no entity id in TLV 0x1400".to_owned());
        };
        let Some(template) = id(host, TEMPLATE_TAG) else {
            return Some("no template id in TLV 0x1401".to_owned());
        };
        let Some(registered) = self.template(&template, host) else {
            return Some(format!("template {template} is not registered"));
        };
        if let Some(table) = self.entities
            && host.look_up(table, &template).is_none_or(|owner| owner.trim() != entity)
        {
            return Some(format!("template {template} is not registered for entity {entity}"));
        }
        match text {
            None => Some(format!("template {template}: the message has no text")),
            Some(text) if !matches(&registered, text) => {
                Some(format!("the text differs from template {template}"))
            }
            Some(_) => None,
        }
    }

    fn template(&self, id: &str, host: &impl Host) -> Option<String> {
        let mut text = host.look_up(self.templates, id)?;
        for row in 2..=MAX_ROWS {
            match host.look_up(self.templates, &format!("{id}/{row}")) {
                Some(rest) => text.push_str(&rest),
                None => break,
            }
        }
        Some(text)
    }
}

/// An id in a TLV: 1 to 64 digits and letters; some senders end it with a zero octet.
fn id(host: &impl Host, tag: u16) -> Option<String> {
    let value = String::from_utf8(host.tlv(tag)?).ok()?;
    let id = value.trim_end_matches('\0').trim();
    ((1..=64).contains(&id.len()) && id.bytes().all(|octet| octet.is_ascii_alphanumeric()))
        .then(|| id.to_owned())
}

/// Whether a text is the template with a value for each variable. Line ends and blanks at the end do not count.
pub(crate) fn matches(template: &str, text: &str) -> bool {
    let template = template.replace("\r\n", "\n");
    let text: Vec<char> = text.replace("\r\n", "\n").trim_end().chars().collect();
    let parts: Vec<Vec<char>> =
        template.trim_end().split(VARIABLE).map(|part| part.chars().collect()).collect();
    let longest = parts.iter().map(Vec::len).sum::<usize>() + (parts.len() - 1) * MAX_VARIABLE;
    if text.len() > longest {
        return false;
    }
    // The positions in the text at which the rest of the template may begin, in ascending order.
    let mut positions: Vec<usize> = vec![0];
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            positions = after_variable(&positions, text.len());
        }
        positions.retain_mut(|position| {
            let fits = text.get(*position..).is_some_and(|rest| rest.starts_with(part));
            *position += part.len();
            fits
        });
        if positions.is_empty() {
            return false;
        }
    }
    positions.last() == Some(&text.len())
}

/// All positions that follow one of these by at most the length of a variable's value.
fn after_variable(positions: &[usize], length: usize) -> Vec<usize> {
    let mut after: Vec<usize> = Vec::new();
    for position in positions {
        let next = after.last().map_or(*position, |last| (last + 1).max(*position));
        after.extend(next..=(position + MAX_VARIABLE).min(length));
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_its_template_with_values() {
        let template = "Dear {#var#}, your code is {#var#}. Valid for {#var#} minutes - ACME";
        assert!(matches(template, "Dear Asha, your code is 123456. Valid for 10 minutes - ACME"));
        assert!(matches(template, "Dear , your code is . Valid for  minutes - ACME"));
        assert!(matches(template, "Dear Asha, your code is 123456. Valid for 10 minutes - ACME \r\n"));
        for other in [
            "Dear Asha, your code is 123456. Valid for 10 minutes - ACMF",
            "Dear Asha, your code is 123456. Valid for 10 minutes",
            "Hi. Dear Asha, your code is 123456. Valid for 10 minutes - ACME",
            "Dear Asha, your code is 123456. Valid for 10 minutes - ACME. Win!",
            "Dear a name that has more than thirty characters, your code is 1. Valid for 1 minutes - ACME",
            "",
        ] {
            assert!(!matches(template, other), "{other}");
        }
    }

    #[test]
    fn variables_may_meet_and_repeat() {
        let sixty = "x".repeat(60);
        assert!(matches("a{#var#}{#var#}b", &format!("a{sixty}b")));
        assert!(!matches("a{#var#}{#var#}b", &format!("a{sixty}xb")));
        assert!(matches("{#var#} and {#var#}", "this and that and those"));
        assert!(matches("no variable", "no variable") && !matches("no variable", "no Variable"));
        assert!(matches("{#var#}", "") && matches("\u{905}{#var#}", "\u{905}\u{906}"));
        assert!(matches("one\r\ntwo {#var#}", "one\ntwo 2"));
    }

    proptest! {
        /// A template matches any text with values for its variables.
        #[test]
        fn values_fit(parts in prop::collection::vec("[a-c]{0,4}", 1..6), value in "[a-d]{0,30}") {
            prop_assert!(matches(&parts.join(VARIABLE), &parts.join(&value)));
        }

        #[test]
        fn any_template_ends(template in "([ab]|\\{#var#\\}){0,40}", text in "[ab]{0,400}") {
            let _ = matches(&template, &text);
        }
    }
}
