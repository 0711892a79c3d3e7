//! Clients that have gone while something is done for them: nobody reads on their sockets then. Each thread looks at
//! the sockets of its busy sessions now and then. What is done for a client that has gone is interrupted as by a cancel
//! request; a session that waits for something else than a server is ended where it stands.

use std::rc::Weak;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cancel::CancelState;
use crate::client::Link;
use crate::shared::Thread;

const INTERVAL: Duration = Duration::from_millis(200);
/// Who sends a statement and leaves has it done, if it does not take longer than this.
const GRACE: Duration = Duration::from_millis(700);
/// A session that is still at it so long after its client has gone is ended where it stands.
const END: Duration = Duration::from_millis(1200);

pub async fn watch(thread: Weak<Thread>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(thread) = thread.upgrade() else { return };
        look(&thread);
    }
}

fn look(thread: &Thread) {
    let busy = thread.busy_links();
    let mut sockets: Vec<PollFd<'_>> =
        busy.iter().map(|(link, _)| PollFd::new(link.stream(), PollFlags::RDHUP)).collect();
    if sockets.is_empty() || poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
        return;
    }
    let seen: Vec<PollFlags> = sockets.iter().map(PollFd::revents).collect();
    for ((link, cancel), seen) in busy.iter().zip(seen) {
        if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
            interrupt(link, cancel);
        } else if seen.contains(PollFlags::RDHUP) {
            // It may only have said all that it will say. One that is gone does not take what we say.
            link.say_something();
        }
    }
}

fn interrupt(link: &Link, cancel: &Arc<CancelState>) {
    let gone = link.gone_since().elapsed();
    if gone >= GRACE && !cancel.is_under_way() {
        let cancel = cancel.clone();
        tokio::task::spawn_local(async move { cancel.cancel_all().await });
    }
    if gone >= END {
        cancel.abandon();
    }
}
