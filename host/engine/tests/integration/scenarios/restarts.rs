//! Messages that were on a link when the daemon ended.

use crate::scenarios::fixture::{EngineFixture, FIRST, message};
use engine::Settings;
use model::Leg;

#[test]
fn an_uncertain_message_is_sent_again_after_every_restart() {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.link_up(FIRST, 10);
    let id = fixture.submit(message("491700000001", vec![Leg::to(FIRST)])).unwrap();
    for restart in 1..=3 {
        fixture.crash();
        fixture.link_up(FIRST, 10);
        let sent: Vec<_> = fixture.sent.iter().map(|(peer, message, _)| (*peer, message.id)).collect();
        assert_eq!(sent, [(FIRST, id)], "restart {restart}");
    }
}
