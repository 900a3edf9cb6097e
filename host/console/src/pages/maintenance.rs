//! Draining, backups, the machine, what is logged.

use super::machine;
use crate::ask::Refusal;
use crate::form::Form;
use crate::shell::{Room, button, csrf, page, trouble};
use crate::table::facts;
use crate::visit::Visit;
use crate::words::{count, either, number, octets, plural, span, state, text, time_of};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

pub(crate) async fn show(visit: Visit) -> Response {
    draw(&visit, None).await
}

pub(super) async fn draw(visit: &Visit, refusal: Option<&Refusal>) -> Response {
    let body = parts(visit, refusal).await;
    let mut response = page(visit, "Maintenance", Room::Maintenance, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn parts(visit: &Visit, refusal: Option<&Refusal>) -> Result<Markup, Refusal> {
    let (status, drain, log, machine) = tokio::join!(
        visit.get::<Value>("/v1/status"),
        visit.look("/v1/drain"),
        visit.look("/v1/log"),
        visit.look("/v1/appliance"),
    );
    let status = status?;
    Ok(html! {
        h1 { "Maintenance" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card {
            h2 { "The appliance" }
            (facts(&[
                ("Name", html! { (text(&status, "name")) }),
                ("Version", html! { (text(&status, "version")) }),
                ("Up for", html! { (span(number(&status, "uptime_seconds") * 1_000)) }),
                ("Free disk", html! { (octets(number(&status, "disk_free"))) " " @if status["disk_low"].as_bool() == Some(true) { (state("down")) " submissions are refused" } }),
                ("Read back at the start", html! { (plural(number(&status, "recovered"), "message", "messages")) " in " (span(number(&status, "recovery_ms"))) }),
            ]))
        }
        section.card { h2 { "Drain" } (draining(visit, drain.as_ref())) }
        @if visit.may("manage-backups") {
            section.card {
                h2 { "Backup" }
                p { "One file with everything: queues, configuration, users, plugins, texts and secrets. It is taken while traffic flows." }
                p { a.button href="/v1/backup" download="switchyard-backup.tar" { "Download a backup" } }
                p.muted { "Back again: " code { "switchyard restore FILE --data DIR" } }
            }
        }
        @if let Some(machine) = &machine { (machine::card(visit, machine)) }
        section.card { h2 { "Log" } (logging(visit, log.as_ref())) }
    })
}

fn draining(visit: &Visit, drain: Option<&Value>) -> Markup {
    let Some(drain) = drain else {
        return html! { p { "This appliance does not say whether it is drained." } };
    };
    let left = &drain["left"];
    let is_draining = drain["draining"].as_bool() == Some(true);
    html! {
        @if is_draining {
            p { (state("uncertain")) " Drained by " (text(drain, "by")) " since " (time_of(&drain["since"])) ": nothing new is taken, what waits goes out." }
            (facts(&[("Waiting", html! { (count(number(left, "waiting"))) }), ("On their way", html! { (count(either(left, "in-flight").as_u64().unwrap_or(0))) })]))
        } @else {
            p { "Submissions are taken. While it is drained, nothing new is; what waits goes out, and load balancers are told to look elsewhere." }
        }
        @if visit.may("configure") {
            div.do {
                @if is_draining { (button(visit, "/maintenance", "Take messages again", "primary", &[("do", "resume")])) }
                @else { (button(visit, "/maintenance", "Begin to drain", "danger", &[("do", "drain")])) }
            }
        }
    }
}

fn logging(visit: &Visit, log: Option<&Value>) -> Markup {
    let level = log.map(|log| text(log, "level")).unwrap_or_default();
    html! {
        @if visit.may("configure") {
            form.fields method="post" action="/maintenance" {
                (csrf(visit))
                p.wide { label for="level" { "Level" } input #level name="level" value=(level) required autocomplete="off" spellcheck="false" aria-describedby="level-hint"; small #level-hint { "info, or with exceptions: info,links=debug. Until the next start." } }
                p.do { button type="submit" name="do" value="level" { "Set" } }
            }
        } @else { p { "Level: " code { (level) } } }
    }
}

pub(crate) async fn change(visit: Visit, form: Form) -> Response {
    let asked = match form.text("do") {
        "drain" => visit.send(Method::POST, "/v1/drain", &form, None).await.map(|_| "draining"),
        "resume" => visit.send(Method::DELETE, "/v1/drain", &form, None).await.map(|_| "resumed"),
        "level" => {
            let wish = json!({ "level": form.text("level") });
            visit.send(Method::PUT, "/v1/log", &form, Some(&wish)).await.map(|_| "level")
        }
        _ => Err(Refusal::bad("That cannot be done here.")),
    };
    match asked {
        Ok(done) => Visit::to("/maintenance", done),
        Err(refusal) => draw(&visit, Some(&refusal)).await,
    }
}
