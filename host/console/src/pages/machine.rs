//! The machine below, where it is the appliance image: a part of the page on maintenance.

use super::maintenance::draw;
use crate::ask::{Answer, Refusal, Sent, with_query};
use crate::form::Form;
use crate::shell::csrf;
use crate::table::facts;
use crate::visit::Visit;
use crate::words::{number, octets, span, state, text};
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{Multipart, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use tokio::sync::mpsc;

/// The machine's card.
pub(super) fn card(visit: &Visit, machine: &Value) -> Markup {
    let running = text(machine, "slot");
    let is_next = text(machine, "next") == running;
    let trial = machine["on-trial"].as_bool() == Some(true);
    let slots = machine["slots"].as_array().map(Vec::as_slice).unwrap_or_default();
    let other = slots.iter().find(|slot| text(slot, "name") != running);
    let back = other.filter(|slot| slot["healthy"].is_string());
    html! {
        section.card #machine {
            h2 { "The machine" }
            (facts(&[
                ("System", html! {
                    (text(machine, "version")) " from slot " (running)
                    @if trial { " " (state("uncertain")) " on trial: it goes back by itself if it does not become ready" }
                }),
                ("At the next start", html! { @if is_next { "the same" } @else { "slot " (text(machine, "next")) } }),
                ("In the other slot", html! {
                    @match back { Some(slot) => (text(slot, "healthy")), None => "nothing that was ever found healthy" }
                }),
                ("Up for", html! { (span(number(machine, "up-seconds") * 1_000)) }),
                ("Clock", html! {
                    @if machine["clock-synchronised"].as_bool() == Some(true) { "set by a time server" }
                    @else { (state("uncertain")) " not set by a time server yet" }
                }),
                ("Data", html! { (octets(number(machine, "data-used"))) " of " (octets(number(machine, "data-size"))) }),
            ]))
            @if visit.may("manage-machine") { (doing(visit, back)) }
        }
    }
}

fn doing(visit: &Visit, back: Option<&Value>) -> Markup {
    html! {
        h3 { "Update" }
        form.fields method="post" action="/maintenance/update" enctype="multipart/form-data" {
            (csrf(visit))
            p { label for="update" { "Signed update (.raucb)" } input #update name="update" type="file" accept=".raucb" required; }
            p.do {
                button.primary type="submit" { "Update and start anew" }
                button type="submit" formaction="/maintenance/update?later=yes" { "Update at the next start" }
            }
            p.muted { "It goes into the slot that does not run. Configuration and messages are not touched; what does not come up is left again by itself. An older daemon does not open what a newer one has written, so take a backup first." }
        }
        @if let Some(slot) = back {
            h3 { "Go back" }
            form.fields method="post" action="/maintenance/machine" {
                (csrf(visit))
                p.do { button.danger type="submit" name="do" value="rollback" { "Go back to " (text(slot, "healthy")) } }
            }
        }
        h3 { "Help from others" }
        p { a.button href="/v1/appliance/support-bundle" download="switchyard-support.tar.gz" { "Download a support bundle" } }
        p.muted { "The journal, slots and network. No configuration, no messages." }
        h3 { "Factory reset" }
        form.fields method="post" action="/maintenance/machine" {
            (csrf(visit))
            p {
                label for="state" { "Messages, balances, number pools, archive" }
                select #state name="state" required {
                    option value="" { "Choose" }
                    option value="keep" { "stay; configuration, users, tokens and keys go" }
                    option value="drop" { "go as well: nothing stays" }
                }
            }
            p { label { input #sure type="checkbox" name="sure" value="yes" required; " This machine forgets how it is reached, and who may come in" } }
            p.do { button.danger type="submit" name="do" value="reset" { "Reset and start anew" } }
        }
    }
}

pub(crate) async fn change(visit: Visit, form: Form) -> Response {
    let asked = match form.text("do") {
        "rollback" => visit.send(Method::POST, "/v1/appliance/rollback", &form, None).await,
        "reset" if form.text("sure") != "yes" => Err(Refusal::bad("Say that you are sure.")),
        "reset" => {
            let wish = json!({ "state": form.text("state") });
            visit.send(Method::POST, "/v1/appliance/factory-reset", &form, Some(&wish)).await
        }
        _ => Err(Refusal::bad("That cannot be done here.")),
    };
    end(&visit, asked).await
}

async fn end(visit: &Visit, asked: Result<Answer, Refusal>) -> Response {
    match asked.and_then(|answer| answer.read::<Value>()) {
        Ok(done) if done["restarts"].as_bool() == Some(true) => Visit::to("/maintenance", "restarting"),
        Ok(_) => Visit::to("/maintenance", "next-start"),
        Err(refusal) => draw(visit, Some(&refusal)).await,
    }
}

/// Which of the buttons was pressed.
#[derive(Deserialize)]
pub(crate) struct When {
    #[serde(default)]
    later: String,
}

pub(crate) async fn update(visit: Visit, Query(When { later }): Query<When>, fields: Multipart) -> Response {
    let restart = if later == "yes" { "false" } else { "true" };
    let asked = hand_on(&visit, fields, restart).await;
    end(&visit, asked).await
}

/// The fields before the file, and then the file as it comes: it is larger than what is held in memory.
async fn hand_on(visit: &Visit, mut fields: Multipart, restart: &str) -> Result<Answer, Refusal> {
    let mut csrf = String::new();
    while let Some(field) = fields.next_field().await? {
        match field.name() {
            Some("csrf") => csrf = field.text().await?,
            Some("update") => {
                let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
                let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
                    Some((receiver.recv().await?, receiver))
                });
                let path = with_query("/v1/appliance/update", &[("restart", restart)]);
                let sent = Sent {
                    csrf: &csrf,
                    body: Body::from_stream(pieces),
                    media_type: "application/octet-stream",
                    headers: Vec::new(),
                };
                let asking = visit.asker.ask(Method::POST, &path, sent);
                let (answer, ()) = tokio::join!(asking, pass(field, sender));
                return answer;
            }
            _ => {}
        }
    }
    Err(Refusal::bad("Choose the file of the update."))
}

/// The pieces of a file, until it ends or nobody wants them any more.
async fn pass(mut field: Field<'_>, to: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let piece = match field.chunk().await {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => return,
            Err(error) => Err(io::Error::other(error.body_text())),
        };
        let is_end = piece.is_err();
        if to.send(piece).await.is_err() || is_end {
            return;
        }
    }
}
