//! The configuration as one document: edit, validate, see what would change, apply, confirm.

use crate::ask::{Refusal, Sent, with_query};
use crate::documents::{Document, merge_patch};
use crate::form::Form;
use crate::pages::peer::reasons;
use crate::places::{excerpt, line_in, line_of, lines};
use crate::shell::{Room, button, csrf, page, problems, trouble};
use crate::table::{facts, table};
use crate::visit::Visit;
use crate::words::{ago, count, either, number, state, text, time_of};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

/// Lists that are longer than this have pages of their own, and are left out of the text.
const LONGEST_LIST: usize = 40;
/// A text that is longer is no longer edited by anybody.
const LONGEST_TEXT: usize = 1 << 20;

/// What the page says beside what there is.
#[derive(Default)]
struct Said {
    text: Option<String>,
    why: String,
    refusal: Option<Refusal>,
    /// What the API said of a document that was only to be looked at.
    checked: Option<Value>,
    /// What counts only after a restart.
    restart: Vec<String>,
}

pub(crate) async fn show(visit: Visit) -> Response {
    draw(&visit, &Said::default()).await
}

async fn draw(visit: &Visit, said: &Said) -> Response {
    let body = visit.console.documents.read(visit).await.map(|document| parts(visit, &document, said));
    let mut response = page(visit, "Configuration", Room::Configuration, body);
    if let Some(refusal) = &said.refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

/// The part of a document that is edited as text: without lists that are too long for that.
fn editable(content: &Value) -> (Value, Vec<(String, usize)>) {
    let mut shown = content.clone();
    let mut left_out = Vec::new();
    if let Some(shown) = shown.as_object_mut() {
        shown.retain(|key, value| match value.as_array() {
            Some(list) if list.len() > LONGEST_LIST => {
                left_out.push((key.clone(), list.len()));
                false
            }
            _ => true,
        });
    }
    (shown, left_out)
}

fn parts(visit: &Visit, document: &Document, said: &Said) -> Markup {
    let about = &document.about;
    let is_files = text(about, "mode") == "file";
    let edits = visit.may("configure") && !is_files;
    let (shown, left_out) = editable(&document.content);
    let shown = said.text.clone().unwrap_or_else(|| serde_json::to_string_pretty(&shown).unwrap_or_default());
    html! {
        div.head {
            h1 { "Configuration" }
            a.button.quiet href="/configuration/versions" { "Versions" }
            a.button.quiet href="/v1/configuration/file" { "As a file" }
        }
        (pending(visit, document))
        @if let Some(waiting) = about["restart"].as_array() && !waiting.is_empty() && said.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Kept, and not in use before the next start" }
                p { @for one in waiting { code { (one.as_str().unwrap_or_default()) } " " } }
            }
        }
        @if let Some(refusal) = &said.refusal { (trouble(refusal)) (placed(refusal, &shown)) }
        @if !said.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Applied; some of it counts only after the next start" }
                p { @for pointer in &said.restart { code { (pointer) } " " } }
            }
        }
        @if let Some(checked) = &said.checked { (looked_at(checked, &shown)) }
        section.card {
            (facts(&[
                ("Version", html! { (document.version) }),
                ("Since", time_of(&about["at"])),
                ("By", html! { (text(about, "by")) }),
                ("Why", html! { (match text(about, "why") { "" => "—", why => why }) }),
            ]))
            @if is_files { p.notice.warn { "The file is the truth here: change the file, and send the daemon SIGHUP. What follows is for reading." } }
        }
        section.card {
            form.fields method="post" action="/configuration" {
                (csrf(visit))
                input type="hidden" name="tag" value=(document.tag);
                p.wide {
                    label for="document" { "The document, as JSON" }
                    textarea.code #document name="document" rows="28" spellcheck="false" readonly[!edits] aria-describedby="document-hint" aria-invalid=[said.refusal.as_ref().map(|_| "true")] { "\n" (shown) }
                    small #document-hint {
                        "Secrets are not shown; where one stands as " code { "(unchanged)" } " it stays as it is."
                        @for (list, length) in &left_out {
                            " " (count(*length as u64)) " of " code { (list) } " are not in this text and stay as they are"
                            @if list == "peer" { ": " a href="/peers" { "Peers" } } @else if list == "account" { ": " a href="/accounts" { "Accounts" } }
                            "."
                        }
                    }
                }
                @if edits {
                    (reasons(&said.why))
                    p.do {
                        button.primary type="submit" name="do" value="validate" { "Validate" }
                        button.danger type="submit" name="do" value="apply" { "Apply" }
                        a.button.quiet href="/configuration" { "Start over" }
                    }
                    p.muted { "Validating says everything that is wrong and everything that would change, and changes nothing." }
                }
            }
        }
    }
}

/// A change that goes back by itself unless somebody confirms it.
fn pending(visit: &Visit, document: &Document) -> Markup {
    let pending = &document.about["pending"];
    let Some(at) = either(pending, "reverts-at").as_u64() else { return html! {} };
    let version = number(pending, "version").to_string();
    html! {
        div.notice.warn #pending role="status" {
            strong { "Version " (version) " waits to be confirmed" }
            p { "It goes back to what was before " (ago(at)) ", also if the appliance stops until then." }
            @if visit.may("configure") {
                div.do {
                    (button(visit, "/configuration/pending", "Confirm it", "primary", &[("do", "confirm"), ("version", &version)]))
                    (button(visit, "/configuration/pending", "Take it back now", "danger", &[("do", "revert")]))
                }
            }
        }
    }
}

/// What is wrong, each at its place in the text.
fn placed(refusal: &Refusal, shown: &str) -> Markup {
    let lines = lines(shown);
    let mut wrong: Vec<(usize, String)> = refusal
        .problems
        .iter()
        .filter_map(|problem| {
            let allowed = match problem.allowed.as_str() {
                "" => String::new(),
                allowed => format!(" (allowed: {allowed})"),
            };
            let what = format!("{}: {}{allowed}", problem.pointer, problem.what);
            Some((line_of(&lines, &problem.pointer)?, what))
        })
        .collect();
    // A text that is no JSON has no pointers, but a line.
    if refusal.problems.is_empty() {
        wrong.extend(line_in(&refusal.detail).map(|line| (line, refusal.detail.clone())));
    }
    html! {
        (problems(refusal))
        @if !wrong.is_empty() { section.card #wrong { h2 { "Where it is wrong" } (excerpt(shown, &wrong)) } }
    }
}

fn looked_at(checked: &Value, shown: &str) -> Markup {
    let told: Vec<crate::ask::Misplaced> =
        serde_json::from_value(checked["problems"].clone()).unwrap_or_default();
    let valid = checked["valid"].as_bool() == Some(true);
    let rows: Vec<_> = checked["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            vec![
                html! { code { (text(one, "pointer")) } },
                state(text(one, "what")),
                html! { (text(one, "effect")) },
            ]
        })
        .collect();
    let restart = checked["restart"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if valid {
            div.notice.good role="status" { strong { "It can be applied." } p { "It is not in use yet." } }
        } @else {
            div.notice.bad role="alert" { strong { "It cannot be applied" } }
            (placed(&Refusal { problems: told, ..Refusal::bad("") }, shown))
        }
        @if valid {
            section.card #changes {
                h2 { "What would change" }
                (table("Changes", &["Where", "What", "What it means"], &rows, &html! { p { "Nothing: it is what there is already." } }))
                @if !restart.is_empty() {
                    p.notice.warn { "Only after a restart: " @for one in restart { code { (one.as_str().unwrap_or_default()) } " " } }
                }
            }
        }
    }
}

pub(crate) async fn change(visit: Visit, form: Form) -> Response {
    let text = form.whole("document");
    let mut said = Said { text: Some(text.clone()), why: form.text("why").to_owned(), ..Said::default() };
    match wish(&visit, &form, &text).await {
        Ok(told) if form.text("do") == "apply" => {
            let restart = told["restart"].as_array().into_iter().flatten();
            let restart: Vec<_> = restart.filter_map(|one| one.as_str().map(str::to_owned)).collect();
            if restart.is_empty() {
                return Visit::to("/configuration", "changed");
            }
            said = Said { restart, ..Said::default() };
        }
        Ok(told) => said.checked = Some(told),
        Err(refusal) => said.refusal = Some(refusal),
    }
    draw(&visit, &said).await
}

async fn wish(visit: &Visit, form: &Form, text: &str) -> Result<Value, Refusal> {
    if text.len() > LONGEST_TEXT {
        return Err(Refusal::bad(
            "This text is longer than any that is edited here. Use `switchyard config apply`.",
        ));
    }
    let after: Value = serde_json::from_str(text).map_err(|error| {
        // The place of a mistake in the text itself is shown like that of any other.
        let detail = format!("This is no JSON: {error}. Nothing was changed.");
        Refusal::bad(detail)
    })?;
    if !after.is_object() {
        return Err(Refusal::bad("The document must be an object."));
    }
    let document = visit.console.documents.read(visit).await?;
    let (before, _) = editable(&document.content);
    let patch = merge_patch(&before, &after);
    let (method, path) = match form.text("do") {
        "apply" => (Method::PATCH, "/v1/configuration"),
        _ => (Method::POST, "/v1/configuration/validate"),
    };
    let mut sent = Sent {
        csrf: form.text("csrf"),
        body: patch.to_string().into(),
        media_type: "application/merge-patch+json",
        headers: Vec::new(),
    };
    let path = if method == Method::PATCH {
        sent.headers.push(("if-match", form.text("tag").to_owned()));
        with_query(path, &[("why", form.text("why")), ("confirm-within", form.text("within"))])
    } else {
        path.to_owned()
    };
    visit.asker.ask(method, &path, sent).await?.read()
}

async fn decide(visit: &Visit, form: &Form) -> Result<&'static str, Refusal> {
    if form.text("do") == "confirm" {
        let wish = json!({ "version": form.text("version").parse::<u64>().ok() });
        visit.send(Method::POST, "/v1/configuration/confirm", form, Some(&wish)).await?;
        return Ok("confirmed");
    }
    visit.send(Method::POST, "/v1/configuration/revert", form, None).await?;
    Ok("reverted")
}

/// Confirms what is pending, or takes it back.
pub(crate) async fn settle(visit: Visit, form: Form) -> Response {
    match decide(&visit, &form).await {
        Ok(done) => Visit::to("/configuration", done),
        Err(refusal) => draw(&visit, &Said { refusal: Some(refusal), ..Said::default() }).await,
    }
}
