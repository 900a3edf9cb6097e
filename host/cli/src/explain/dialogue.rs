//! The questions of `switchyard explain` on a terminal: it asks for the fields of a message, explains it, and changes one field at a
//! time.

use crate::format::with_readable_times;
use crate::global_args::optional;
use crate::output::{Failure, Output, Tone};
use api::{ExplainRequest, ExplanationView, MessagePageView, QueueView};
use client::{ApiClient, ClientError, terminal};
use std::collections::BTreeSet;
use std::io::BufRead;

/// The maximum number of suggestions that are shown; each is chosen by one digit.
const MAX_SUGGESTIONS: usize = 9;
/// The path of the newest messages of an account, whose numbers are suggested.
const NEWEST: &str = "/v1/messages?limit=50&timeout_ms=200&account=";

/// A field of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Account,
    Source,
    Destination,
    Text,
}

impl Field {
    const ALL: [Self; 4] = [Self::Account, Self::Source, Self::Destination, Self::Text];

    fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Text => "text",
        }
    }

    fn is_required(self) -> bool {
        matches!(self, Self::Account | Self::Destination)
    }

    fn of(self, request: &mut ExplainRequest) -> &mut String {
        match self {
            Self::Account => &mut request.origin,
            Self::Source => &mut request.source,
            Self::Destination => &mut request.destination,
            Self::Text => &mut request.text,
        }
    }

    /// The field whose name begins with this text: a letter is enough.
    fn named(typed: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| !typed.is_empty() && field.name().starts_with(typed))
    }
}

/// The dialogue, with lines from `input`.
pub(super) struct Dialogue<'a, R> {
    api: &'a ApiClient,
    output: &'a Output,
    input: R,
    /// Names of accounts, then of peers; empty if the caller may not read them.
    names: Vec<String>,
}

impl<'a, R: BufRead> Dialogue<'a, R> {
    pub(super) fn new(api: &'a ApiClient, output: &'a Output, input: R) -> Result<Self, Failure> {
        let mut queues: Vec<QueueView> = optional(api.read("/v1/queues"))?.unwrap_or_default();
        queues.retain(|queue| queue.configured);
        queues.sort_by(|one, other| (!one.is_account, &one.peer).cmp(&(!other.is_account, &other.peer)));
        let names = queues.into_iter().map(|queue| queue.peer).collect();
        Ok(Self { api, output, input, names })
    }

    /// Asks for the empty fields, then explains the message, and again after each change of a field. Ends with an empty line
    /// or at the end of the input.
    pub(super) fn run(mut self, mut request: ExplainRequest) -> Result<(), Failure> {
        for field in Field::ALL {
            if field.of(&mut request).is_empty() && !self.ask(field, &mut request)? {
                return Ok(());
            }
        }
        loop {
            let answer = self.api.call::<ExplanationView>("POST", "/v1/explain", &request);
            match answer {
                Ok(explained) => self.show(&explained)?,
                // For example an account that does not exist: the user may type another one.
                Err(ClientError::Refused(problem)) if problem.status < 500 => {
                    self.output.remark(&problem.detail);
                }
                Err(error) => return Err(error.into()),
            }
            let prompt = "change account, source, destination or text, or end with Enter: ";
            let field = loop {
                match self.read_line(prompt)?.as_deref() {
                    None | Some("") => return Ok(()),
                    Some(typed) => match Field::named(typed) {
                        Some(field) => break field,
                        None => self.output.remark("type the name of a field, or its first letter"),
                    },
                }
            };
            if !self.ask(field, &mut request)? {
                return Ok(());
            }
        }
    }

    /// The steps, numbered, and the answer.
    fn show(&self, explained: &ExplanationView) -> Result<(), Failure> {
        self.output.line("")?;
        for (index, step) in explained.steps.iter().enumerate() {
            self.output.line(&format!("{:>3}. {}", index + 1, with_readable_times(step)))?;
        }
        let tone = if explained.answer.starts_with("accepted") { Tone::Ok } else { Tone::Error };
        let answer = self.output.paint(tone, &with_readable_times(&explained.answer));
        self.output.line(&format!("answer: {answer}\n"))
    }

    /// Asks for a field; an empty line keeps its value. Returns whether there was a line.
    fn ask(&mut self, field: Field, request: &mut ExplainRequest) -> Result<bool, Failure> {
        let suggested = self.suggestions(field, request)?;
        let mut shown: Vec<String> = suggested.iter().take(MAX_SUGGESTIONS).cloned().collect();
        loop {
            if !shown.is_empty() {
                let choices = shown.iter().enumerate();
                let choices: Vec<_> =
                    choices.map(|(index, one)| format!("{} {}", index + 1, terminal::visible(one))).collect();
                self.output.line(&format!("  {}", choices.join("   ")))?;
            }
            let known = field.of(request).clone();
            let prompt = match &*known {
                "" if field.is_required() => format!("{}: ", field.name()),
                "" => format!("{} (may be empty): ", field.name()),
                known => format!("{} [{}]: ", field.name(), terminal::visible(known)),
            };
            let Some(typed) = self.read_line(&prompt)? else { return Ok(false) };
            let digit = typed.parse::<usize>().ok().filter(|_| typed.len() == 1);
            let chosen = digit.and_then(|digit| shown.get(digit.checked_sub(1)?)).cloned();
            let value = match (chosen, &*typed) {
                (Some(chosen), _) => chosen,
                (None, "") if known.is_empty() && field.is_required() => continue,
                (None, "") => return Ok(true),
                // Allows the user to clear a text.
                (None, "\"\"") if !field.is_required() => String::new(),
                (None, typed) => typed.to_owned(),
            };
            if field != Field::Account || self.names.is_empty() || self.names.contains(&value) {
                *field.of(request) = value;
                return Ok(true);
            }
            let mut beginning = self.names.iter().filter(|name| name.starts_with(&value));
            match (beginning.next(), beginning.next()) {
                (Some(only), None) => {
                    self.output.line(&format!("  {}", terminal::visible(only)))?;
                    request.origin.clone_from(only);
                    return Ok(true);
                }
                (None, _) => {
                    self.output.remark(&format!("no account or peer begins with {value:?}"));
                    shown = suggested.iter().take(MAX_SUGGESTIONS).cloned().collect();
                }
                (Some(_), Some(_)) => {
                    let all = self.names.iter().filter(|name| name.starts_with(&value));
                    shown = all.take(MAX_SUGGESTIONS).cloned().collect();
                }
            }
        }
    }

    /// Values for a field: names, or the numbers of the newest messages of the account.
    fn suggestions(&self, field: Field, request: &ExplainRequest) -> Result<Vec<String>, Failure> {
        if field == Field::Account {
            return Ok(self.names.clone());
        }
        if field == Field::Text {
            return Ok(Vec::new());
        }
        let path = format!("{NEWEST}{}", client::encode_segment(&request.origin));
        let newest: Option<MessagePageView> = optional(self.api.read(&path))?;
        let mut known = BTreeSet::new();
        let numbers = newest.into_iter().flat_map(|page| page.messages).map(|message| match field {
            Field::Source => message.source,
            _ => message.destination,
        });
        Ok(numbers.filter(|number| !number.is_empty() && known.insert(number.clone())).collect())
    }

    /// A line, without white space around it; `None` at the end of the input.
    fn read_line(&mut self, prompt: &str) -> Result<Option<String>, Failure> {
        self.output.write(prompt)?;
        let mut line = String::new();
        // A line that is not UTF-8 ends the dialogue, like the end of the input.
        match self.input.read_line(&mut line) {
            Ok(0) | Err(_) => {
                self.output.line("")?;
                Ok(None)
            }
            Ok(_) => Ok(Some(line.trim().to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{CommandOutcome, FakeApi, run_task};
    use admin::{Problem, ProblemKind};
    use api::{MessageRowView, MessageStateView};
    use serde_json::Value;

    fn queue(name: &str, is_account: bool) -> QueueView {
        QueueView { peer: name.to_owned(), is_account, configured: true, ..QueueView::default() }
    }

    fn row(source: &str, destination: &str) -> MessageRowView {
        MessageRowView {
            id: "7".to_owned(),
            at: 0,
            state: MessageStateView::Delivered,
            finished: true,
            account: "shop".to_owned(),
            peer: "north".to_owned(),
            source: source.to_owned(),
            destination: destination.to_owned(),
            length: 1,
            partition: None,
        }
    }

    fn explained(answer: &str) -> ExplanationView {
        let steps = vec!["origin: shop".to_owned(), "leg north: idle".to_owned()];
        ExplanationView { steps, answer: answer.to_owned() }
    }

    fn run_dialogue(api: &FakeApi, lines: &str, request: ExplainRequest) -> CommandOutcome {
        run_task(&api.start(), |client, output| Dialogue::new(client, output, lines.as_bytes())?.run(request))
    }

    fn nothing() -> ExplainRequest {
        let nothing = String::new;
        ExplainRequest { origin: nothing(), source: nothing(), destination: nothing(), text: nothing() }
    }

    #[test]
    fn it_asks_explains_and_changes_a_field() {
        let page = MessagePageView {
            messages: vec![row("10655", "8613"), row("10655", "8614")],
            ..MessagePageView::default()
        };
        let api = FakeApi::default()
            .with("GET /v1/queues", 200, &[queue("north", false), queue("shop", true), queue("shoes", true)])
            .with(&format!("GET {NEWEST}shop"), 200, &page)
            .with("POST /v1/explain", 200, &explained("accepted"));
        // An account that does not exist, the beginning of two, a choice by its digit; then another destination.
        let done = run_dialogue(&api, "kiosk\nsho\n2\n1\n2\n\nx\nd\n8699\n\n", nothing());
        let change = "change account, source, destination or text, or end with Enter: ";
        let result = "\n  1. origin: shop\n  2. leg north: idle\nanswer: accepted\n\n";
        let all = "  1 shoes   2 shop   3 north\naccount: ";
        assert_eq!(
            done.out,
            format!(
                "{all}{all}  1 shoes   2 shop\naccount:   1 10655\nsource (may be empty):   1 8613   2 8614\n\
                 destination: text (may be empty): {result}{change}{change}  1 8613   2 8614\n\
                 destination [8614]: {result}{change}"
            )
        );
        assert!(done.error.starts_with("switchyard: no account or peer begins with \"kiosk\"\n"), "{done:?}");
        assert_eq!(done.code, 0, "{done:?}");
        let requests = api.requests();
        let sent = requests.iter().filter(|one| one.line == "POST /v1/explain");
        let sent: Vec<Value> = sent.map(|one| serde_json::from_str(&one.body).unwrap()).collect();
        let fields = |one: &Value| (one["origin"].clone(), one["source"].clone(), one["destination"].clone());
        assert_eq!(fields(&sent[0]), ("shop".into(), "10655".into(), "8614".into()));
        assert_eq!(fields(&sent[1]), ("shop".into(), "10655".into(), "8699".into()));
    }

    #[test]
    fn it_ends_with_its_input_and_works_without_suggestions() {
        let forbidden = Problem::new(ProblemKind::Forbidden, "not with this token");
        let api = FakeApi::default()
            .refusing("GET /v1/queues", &forbidden)
            .refusing(&format!("GET {NEWEST}kiosk"), &forbidden)
            .with("POST /v1/explain", 200, &explained("refused: no route"));
        let done = run_dialogue(&api, "kiosk\n\n8613\nhello", nothing());
        assert!(done.out.contains("answer: refused: no route\n\nchange "), "{done:?}");
        assert!(done.out.ends_with("or end with Enter: \n") && done.code == 0, "{done:?}");
        let given = ExplainRequest { origin: "kiosk".to_owned(), ..nothing() };
        assert_eq!(run_dialogue(&api, "", given).out, "source (may be empty): \n");
    }
}
