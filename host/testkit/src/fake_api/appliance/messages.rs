//! Messages, queue actions and subscribers.

use super::access::role;
use super::{now, peer_name, problem};
use admin::ProblemKind;
use api::{
    AttemptOutcome, AttemptView, ContentErasureView, ExplanationView, MessagePageView, MessageRowView,
    MessageStateView, NumberErasureView, OptOutView, OptOutsView, PresenceSign, PriceView,
    QuarantinePageView, QuarantinedView, QueueActionKindView, QueueActionPreview, QueueActionSample,
    QueueActionScopeView, QueueActionStateView, QueueActionView, RoutingView, StepView, SubscriberQueueView,
    SubscriberStateView, SubscriberView, TraceView, UncertainPageView, UncertainView,
};
use axum::Json;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};

pub(super) fn subscriber(name: &str) -> Response {
    if name == "msisdn-404" {
        return problem(ProblemKind::NotFound, "no core network has this subscriber");
    }
    Json(SubscriberView {
        imsi: "0010*********01".to_owned(),
        msisdn: Some("4915*******78".to_owned()),
        network: "<b>phones".to_owned(),
        msc: Some("MSC-1".to_owned()),
        connected: true,
        present_at: Some(now() - 65_000),
        present_by: Some(PresenceSign::LocationUpdate),
        state: SubscriberStateView::Absent,
        reason: Some("network: network failure (17)".to_owned()),
        next_try: Some(now() + 60_000),
        message: Some("2".to_owned()),
        waiting: SubscriberQueueView {
            count: 3,
            oldest_at: Some(now() - 60_000),
            oldest: Some("2".to_owned()),
            states: [("deferred".to_owned(), 1), ("queued".to_owned(), 2)].into(),
        },
    })
    .into_response()
}

fn trace(id: &str, body: bool) -> TraceView {
    let at = now() - 42_000;
    let step = |after: u64, what: &str| StepView { at: at + after, what: what.to_owned() };
    let state = match id {
        "3" => MessageStateView::Uncertain,
        "2" => MessageStateView::Deferred,
        _ => MessageStateView::Delivered,
    };
    TraceView {
        id: id.to_owned(),
        submission: None,
        state,
        finished: id == "1",
        origin: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: if body { "+4915112345678" } else { "+49151****678" }.to_owned(),
        accepted_at: at,
        expires_at: at + 172_800_000,
        screening: None,
        lookup: None,
        routing: RoutingView {
            plugin: "router".to_owned(),
            version: "4f0c2d91aa17".to_owned(),
            note: Some("prefix +49".to_owned()),
            verdict: "forward: north (rank 0, weight 1); harbour (rank 1, weight 1)".to_owned(),
            leg: Some(0),
        },
        price: Some(PriceView {
            plugin: "biller".to_owned(),
            version: "77aa01b2c3d4".to_owned(),
            note: Some("DE, standard".to_owned()),
            account: Some("acme".to_owned()),
            amount: 42_500,
        }),
        waiting_for: (id != "1").then(|| format!("next attempt at {}", now() + 60_000)),
        steps: vec![
            step(0, "accepted and written to disk"),
            step(12, "submitted to north, attempt 1"),
            step(61, "refused by the peer: 0x58"),
            step(61, &format!("deferred until {}", at + 10_061)),
            step(10_064, "submitted to north, attempt 2"),
            step(10_102, "accepted by the peer, id \"7fa90211\""),
            step(12_220, "DLR: Delivered, error 0"),
            step(12_221, "charged 42500"),
        ],
        attempts: vec![
            AttemptView {
                number: 1,
                peer: "north".to_owned(),
                submitted_at: at + 12,
                ended_at: Some(at + 61),
                outcome: Some(AttemptOutcome::Refused),
                detail: Some("0x58 <throttled>".to_owned()),
                dlr_at: None,
                dlr: None,
            },
            AttemptView {
                number: 2,
                peer: "north".to_owned(),
                submitted_at: at + 10_064,
                ended_at: Some(at + 10_102),
                outcome: Some(AttemptOutcome::Accepted),
                detail: Some("7fa90211".to_owned()),
                dlr_at: Some(at + 12_220),
                dlr: Some("DLR: Delivered, error 0".to_owned()),
            },
        ],
        segments: 1,
        peer_ids: vec!["7fa90211".to_owned()],
        length: 61,
        body: body.then(|| "Your code is 1234. <b>Do not</b> tell it to anybody.\nACME".to_owned()),
        content_erased_at: None,
    }
}

pub(super) fn content_erasure(id: &str) -> ContentErasureView {
    ContentErasureView { id: id.to_owned(), content_erased_at: now() }
}

pub(super) fn number_erasure() -> NumberErasureView {
    NumberErasureView {
        id: "4f0c2d91aa17b001".to_owned(),
        at: now(),
        number: "4915******78".to_owned(),
        rows: 17,
        contents: 16,
        in_flight: 1,
        awaiting_archive: 0,
        opt_outs_kept: 0,
        complete: false,
        not_reached: vec!["CDR files of billing".to_owned()],
    }
}

pub(super) fn messages() -> MessagePageView {
    let states = [
        MessageStateView::Delivered,
        MessageStateView::Deferred,
        MessageStateView::Uncertain,
        MessageStateView::Queued,
        MessageStateView::Failed,
        MessageStateView::Submitted,
    ];
    let message = |index: usize| MessageRowView {
        id: (index + 1).to_string(),
        at: now() - index as u64 * 4_217,
        state: states[index % 6],
        finished: index.is_multiple_of(6) || index % 6 == 4,
        account: "acme".to_owned(),
        peer: peer_name(index % 6),
        source: if index == 4 { "<b>ACME" } else { "ACME" }.to_owned(),
        destination: format!("+49151****{:03}", index * 17 % 1000),
        length: 61 + index,
        partition: None,
    };
    MessagePageView {
        messages: (0..50).map(message).collect(),
        next: Some("c50".to_owned()),
        ..MessagePageView::default()
    }
}

pub(super) fn quarantine() -> QuarantinePageView {
    let message = QuarantinedView {
        id: "4".to_owned(),
        origin: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: "+49151****034".to_owned(),
        at: now() - 90_000,
        until: now() + 86_400_000,
        by: "firewall 0123456789ab".to_owned(),
        note: Some("rule 2: <b>listed</b> domain".to_owned()),
        length: 63,
    };
    QuarantinePageView { messages: vec![message], next: None }
}

pub(super) fn uncertain() -> UncertainPageView {
    let message = UncertainView {
        id: "3".to_owned(),
        peer: "meridian".to_owned(),
        account: "acme".to_owned(),
        source: "ACME".to_owned(),
        destination: "+49151****034".to_owned(),
        at: now() - 90_000,
        since: Some(now() - 80_000),
        until: Some(now() + 86_400_000),
        state: MessageStateView::Uncertain,
        attempts: 1,
        length: 63,
    };
    UncertainPageView { messages: vec![message], next: None }
}

/// The queue action that holds the messages to a peer.
pub(super) fn suspension(state: QueueActionStateView) -> QueueActionView {
    QueueActionView {
        id: 1,
        action: QueueActionKindView::Suspend,
        scope: QueueActionScopeView { peer: Some("harbour".to_owned()), ..QueueActionScopeView::default() },
        to: None,
        by: "ada".to_owned(),
        why: "maintenance <there>".to_owned(),
        at: now() - 20_000,
        state,
        undo_until: None,
        affected: 212,
        held: 0,
    }
}

/// The queue actions: one holds a queue, one can still be undone.
pub(super) fn queue_actions() -> [QueueActionView; 2] {
    let cancellation = QueueActionView {
        id: 2,
        action: QueueActionKindView::Cancel,
        scope: QueueActionScopeView {
            account: Some("demo".to_owned()),
            older_than: Some("2h".to_owned()),
            ..QueueActionScopeView::default()
        },
        by: "bob".to_owned(),
        why: String::new(),
        undo_until: Some(now() + 40_000),
        ..suspension(QueueActionStateView::UndoWindow)
    };
    [suspension(QueueActionStateView::Active), cancellation]
}

pub(super) fn preview() -> QueueActionPreview {
    QueueActionPreview {
        messages: 212,
        by_state: [("queued".to_owned(), 200), ("deferred".to_owned(), 12)].into(),
        sample: vec![QueueActionSample {
            id: "4".to_owned(),
            from: "ACME".to_owned(),
            to: "+49151****051".to_owned(),
            state: MessageStateView::Queued,
        }],
        complete: true,
    }
}

pub(super) async fn show(Path(id): Path<String>, request: Request) -> Response {
    let body = request.uri().query() == Some("body=1");
    if id == "404" {
        return problem(
            ProblemKind::NotFound,
            "message 404 was never accepted, or was deleted after its retention",
        );
    }
    if body && role(request.headers()).as_deref() != Some("admin") {
        return problem(ProblemKind::Forbidden, "texts are not for you");
    }
    Json(trace(&id, body)).into_response()
}

pub(super) fn explanation() -> ExplanationView {
    ExplanationView {
        steps: vec!["origin: acme".to_owned(), "router: forward north".to_owned()],
        answer: "accepted".to_owned(),
    }
}

pub(super) fn opt_outs() -> OptOutsView {
    let opt_out = |sender: &str, subscriber: &str| OptOutView {
        sender: sender.to_owned(),
        subscriber: subscriber.to_owned(),
    };
    OptOutsView { stopped: vec![opt_out("10655", "4915112345678"), opt_out("ACME <i>", "4915112345600")] }
}
