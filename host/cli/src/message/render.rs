//! Messages and traces as text.

use crate::format::{list, timestamp, value_text, with_readable_times};
use crate::output::{Failure, Output};
use api::{LookupView, MessagePageView, MessageRowView, PriceView, StepView, TraceView};

pub(super) fn messages(output: &Output, page: &MessagePageView) -> Result<(), Failure> {
    if output.json {
        return output.document(page);
    }
    if page.messages.is_empty() {
        // A remark, because programs read the lines of standard output.
        output.remark("no message matches");
        return Ok(());
    }
    let row = |message: &MessageRowView| -> Vec<String> {
        vec![
            value_text(&message.id),
            timestamp(&message.at),
            value_text(&message.state),
            value_text(&message.account),
            value_text(&message.peer),
            value_text(&message.source),
            value_text(&message.destination),
            value_text(&message.length),
        ]
    };
    let rows: Vec<Vec<String>> = page.messages.iter().map(row).collect();
    let head = ["ID", "ACCEPTED", "STATE", "ACCOUNT", "PEER", "FROM", "TO", "OCTETS"];
    output.table(&head, &rows)?;
    if let Some(next) = &page.next {
        output.remark(&format!("there are more; continue with --cursor {next}"));
    }
    Ok(())
}

/// The amount, in the operator's currency, and the ledger account that pays.
fn price_text(price: &PriceView) -> String {
    let Some(account) = &price.account else { return "free".to_owned() };
    let (units, millionths) = (price.amount / 1_000_000, price.amount % 1_000_000);
    format!("{units}.{millionths:06}, from ledger account {}", value_text(account))
}

/// A message without its steps.
fn summary(trace: &TraceView) -> Vec<(&'static str, String)> {
    let why = &trace.routing;
    let mut rows = vec![
        ("message", value_text(&trace.id)),
        ("state", value_text(&trace.state)),
        ("from account", value_text(&trace.origin)),
        ("from", value_text(&trace.source)),
        ("to", value_text(&trace.destination)),
        ("accepted", timestamp(&trace.accepted_at)),
        ("octets", value_text(&trace.length)),
        ("routed", with_readable_times(&why.verdict)),
        ("by", format!("{} {}", value_text(&why.plugin), value_text(&why.version))),
    ];
    if let Some(at) = &trace.content_erased_at {
        rows.push(("content", format!("erased at {}", timestamp(at))));
    }
    if let Some(submission) = &trace.submission {
        rows.insert(1, ("submission", value_text(submission)));
    }
    if let Some(note) = &why.note {
        rows.push(("note", value_text(note)));
    }
    if let Some(screening) = &trace.screening {
        let mut words = format!("{} {}", value_text(&screening.plugin), value_text(&screening.version));
        for more in [&screening.note, &screening.changes].into_iter().flatten() {
            words.push_str(&format!("; {}", value_text(more)));
        }
        if screening.text_replaced {
            words.push_str("; text replaced");
        }
        rows.push(("screened by", words));
    }
    if let Some(lookup) = &trace.lookup {
        rows.push(("number", lookup_text(lookup)));
    }
    if let Some(price) = &trace.price {
        rows.push(("price", price_text(price)));
    }
    if !trace.peer_ids.is_empty() {
        let ids: Vec<String> = trace.peer_ids.iter().map(value_text).collect();
        rows.push(("peer's ids", ids.join(", ")));
    }
    if let Some(why) = &trace.waiting_for {
        rows.push(("waiting for", with_readable_times(why)));
    }
    if let Some(text) = &trace.body {
        rows.push(("text", value_text(text)));
    }
    if let Some(text) = trace.screening.as_ref().and_then(|screening| screening.submitted_body.as_ref()) {
        rows.push(("text submitted", value_text(text)));
    }
    rows
}

/// The result of the number lookup.
fn lookup_text(lookup: &LookupView) -> String {
    let LookupView { plugin, version, note, result, attributes, cached } = lookup;
    let mut words = format!("{} by {} {}", result.name(), value_text(plugin), value_text(version));
    if *cached {
        words.push_str(", cached");
    }
    for (name, value) in attributes {
        words.push_str(&format!("; {} {}", value_text(name), value_text(value)));
    }
    if let Some(note) = note {
        words.push_str(&format!("; {}", value_text(note)));
    }
    words
}

pub(super) fn message(output: &Output, trace: &TraceView) -> Result<(), Failure> {
    if output.json {
        return output.document(trace);
    }
    output.write(&list(&summary(trace)))
}

pub(super) fn trace(output: &Output, trace: &TraceView) -> Result<(), Failure> {
    message(output, trace)?;
    if output.json {
        return Ok(());
    }
    let row = |step: &StepView| -> Vec<String> {
        let after = format!("+{}", seconds(step.at.saturating_sub(trace.accepted_at)));
        vec![timestamp(&step.at), after, with_readable_times(&step.what)]
    };
    let rows: Vec<Vec<String>> = trace.steps.iter().map(row).collect();
    output.write("\n")?;
    output.table(&["AT", "AFTER", "WHAT"], &rows)
}

/// Milliseconds as seconds with three decimals.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}s", millis / 1_000, millis % 1_000)
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use admin::{Problem, ProblemKind};
    use api::{
        AcceptedMessage, MessagePageView, MessageRowView, MessageStateView as State, PriceView, RoutingView,
        StepView, TraceView,
    };
    use serde_json::{Value, json};

    fn found(id: u64, state: State) -> MessageRowView {
        MessageRowView {
            id: id.to_string(),
            at: NOW - 1_000,
            state,
            finished: false,
            account: "demo".to_owned(),
            peer: "upstream".to_owned(),
            source: "10655".to_owned(),
            destination: "86130****5678".to_owned(),
            length: 12,
            partition: None,
        }
    }

    fn page(messages: impl IntoIterator<Item = MessageRowView>, next: Option<&str>) -> MessagePageView {
        let messages = messages.into_iter().collect();
        MessagePageView { messages, next: next.map(str::to_owned), ..MessagePageView::default() }
    }

    #[test]
    fn a_list_spans_pages() {
        let api = FakeApi::default()
            .with(
                "GET /v1/messages?limit=50&number=%2B8613&state=queued&from=1795276975000",
                200,
                &page([found(1_000_000_002, State::Queued)], Some("a b")),
            )
            .with(
                "GET /v1/messages?limit=49&number=%2B8613&state=queued&from=1795276975000&cursor=a%20b",
                200,
                &page([found(1_000_000_001, State::Deferred)], None),
            );
        let url = api.start();
        let arguments = ["message", "find", "--number", "+8613", "--state", "queued", "--from", "7s"];
        let done = run(&url, &arguments);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("message_find", done.out);
        assert_eq!(api.requests().len(), 2);
        assert!(api.requests()[0].headers.contains(&("authorization".to_owned(), "Bearer t0ken".to_owned())));
    }

    #[test]
    fn a_cursor_is_printed_for_more_messages() {
        let url = FakeApi::default()
            .with("GET /v1/messages?limit=1", 200, &page([found(7, State::Queued)], Some("6")))
            .with("GET /v1/messages?limit=1&cursor=6", 200, &page([], None))
            .start();
        let done = run(&url, &["message", "find", "--limit", "1"]);
        assert_eq!(done.error, "switchyard: there are more; continue with --cursor 6\n");
        let done = run(&url, &["message", "find", "--limit", "1", "--cursor", "6"]);
        assert_eq!(
            (done.code, done.out.as_str(), done.error.as_str()),
            (0, "", "switchyard: no message matches\n")
        );
        let done = run(&url, &["message", "find", "--limit", "1", "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap()["next"], "6");
    }

    #[test]
    fn times_are_absolute_or_relative() {
        let url = FakeApi::default()
            .with(
                "GET /v1/messages?limit=50&from=0&until=1795276800500",
                200,
                &page([found(7, State::Queued)], None),
            )
            .start();
        let arguments =
            ["message", "find", "--from", "1970-01-01T00:00:00Z", "--until", "2026-11-21T17:00:00.5+01:00"];
        let done = run(&url, &arguments);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        let done = run(&url, &["message", "find", "--from", "yesterday"]);
        assert_eq!(done.code, 2);
        assert!(done.error.contains("\"yesterday\" is not a time"), "{done:?}");
    }

    fn traced() -> TraceView {
        let step = |ago: u64, what: &str| StepView { at: NOW - ago, what: what.to_owned() };
        TraceView {
            id: "1000000042".to_owned(),
            submission: None,
            state: State::Deferred,
            finished: false,
            origin: "demo".to_owned(),
            source: "10655".to_owned(),
            destination: "86130****5678".to_owned(),
            accepted_at: NOW - 61_234,
            expires_at: NOW + 9_000_000,
            screening: None,
            lookup: None,
            routing: RoutingView {
                plugin: "prefix-router".to_owned(),
                version: "58cd962459f1".to_owned(),
                note: Some("everything upstream".to_owned()),
                verdict: "forward: upstream (rank 0, weight 1)".to_owned(),
                leg: Some(0),
            },
            price: Some(PriceView {
                plugin: "prepaid".to_owned(),
                version: "1".to_owned(),
                note: None,
                account: Some("demo".to_owned()),
                amount: 30_500,
            }),
            waiting_for: Some("next attempt at 1795277000000".to_owned()),
            steps: vec![
                step(61_234, "accepted and written to disk"),
                step(61_200, "submitted to upstream, attempt 1"),
                step(61_000, "refused by the peer: 0x45\u{1b}[31m"),
            ],
            attempts: Vec::new(),
            segments: 1,
            peer_ids: vec!["A1".to_owned()],
            length: 12,
            body: None,
            content_erased_at: None,
        }
    }

    #[test]
    fn a_message_is_shown_and_traced() {
        let with_body = TraceView { body: Some("hi\u{7}\nthere 您好".to_owned()), ..traced() };
        let url = FakeApi::default()
            .with("GET /v1/messages/1000000042", 200, &traced())
            .with("GET /v1/messages/1000000042?body=1", 200, &with_body)
            .start();
        let done = run(&url, &["message", "show", "1000000042", "--body"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("message_show", done.out);
        let done = run(&url, &["message", "trace", "1000000042"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("message_trace", done.out);
        let done = run(&url, &["message", "trace", "1000000042", "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!(traced()));
        assert_eq!(run(&url, &["message", "show", "1"]).code, 1);
    }

    #[test]
    fn a_message_of_a_submission_to_several_destinations() {
        let one = TraceView { submission: Some("1000000041".to_owned()), ..traced() };
        let page = page([found(1_000_000_042, State::Queued)], None);
        let url = FakeApi::default()
            .with("GET /v1/messages/1000000042", 200, &one)
            .with("GET /v1/messages?limit=50&submission=1000000041", 200, &page)
            .start();
        let done = run(&url, &["message", "show", "1000000042"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        let line = done.out.lines().nth(1).unwrap_or_default();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["submission", "1000000041"]);
        let done = run(&url, &["message", "find", "--submission", "1000000041"]);
        assert_eq!((done.code, done.out.lines().count()), (0, 2));
    }

    #[test]
    fn a_refused_message_does_not_stop_the_others() {
        let api = FakeApi::default()
            .with("POST /v1/messages/1/cancel", 204, &Value::Null)
            .refusing("POST /v1/messages/2/cancel", &Problem::new(ProblemKind::Conflict, "it has ended"))
            .with("POST /v1/messages/3/cancel", 204, &Value::Null)
            .refusing("POST /v1/messages/4/retry", &Problem::new(ProblemKind::Forbidden, "not for you"));
        let url = api.start();
        let done = run(&url, &["message", "cancel", "1", "2", "3"]);
        assert_eq!((done.code, done.out.as_str()), (1, "1 cancelled\n3 cancelled\n"));
        assert_eq!(done.error, "switchyard: 2: it has ended\nswitchyard: refused: 1 of 3\n");
        let done = run(&url, &["message", "retry", "4", "5"]);
        assert_eq!((done.code, done.error.as_str()), (2, "switchyard: not allowed: not for you\n"));
        assert_eq!(api.requests().len(), 4);
    }

    #[test]
    fn a_test_message_is_sent() {
        let api = FakeApi::default().with(
            "POST /v1/messages",
            201,
            &AcceptedMessage { id: "1000000043".to_owned() },
        );
        let url = api.start();
        let done =
            run(&url, &["message", "send", "--account", "demo", "--from", "1", "--to", "86130", "a test"]);
        assert_eq!((done.code, done.out.as_str()), (0, "1000000043\n"));
        let body: Value = serde_json::from_str(&api.requests()[0].body).unwrap();
        assert_eq!(body, json!({ "account": "demo", "from": "1", "to": "86130", "text": "a test" }));
    }
}
