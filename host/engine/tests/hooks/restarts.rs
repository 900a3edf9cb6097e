//! What was on its way when the daemon ended.

use crate::house::{FIRST, House, message};
use engine::Settings;
use model::Leg;

#[test]
fn a_message_in_doubt_is_sent_again_at_once_after_every_restart() {
    let mut house = House::new(Settings::default());
    house.link_up(FIRST, 10);
    let id = house.submit(message("491700000001", vec![Leg::to(FIRST)])).unwrap();
    for restart in 1..=3 {
        house.crash();
        house.link_up(FIRST, 10);
        let sent: Vec<_> = house.sent.iter().map(|(peer, message, _)| (*peer, message.id)).collect();
        assert_eq!(sent, [(FIRST, id)], "restart {restart}");
    }
}
