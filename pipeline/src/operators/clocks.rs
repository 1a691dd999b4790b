//! Which pods have a wrong clock: one row a pod and hop.

use fleetdiff_schemas::rows::ClockRow;
use timely::dataflow::StreamVec;

use super::at_close::AtClose;

/// See [`AddUpClocks::add_up_clocks`].
pub trait AddUpClocks<'scope> {
    /// Adds up what single profiles of a pod show of its clock, once their hop is closed.
    fn add_up_clocks(self) -> StreamVec<'scope, u64, ClockRow>;
}

impl<'scope> AddUpClocks<'scope> for StreamVec<'scope, u64, Box<ClockRow>> {
    fn add_up_clocks(self) -> StreamVec<'scope, u64, ClockRow> {
        self.at_close("Clocks", |_| 0, |closed| added_up(closed.items.into_iter().map(|row| *row).collect()))
    }
}

fn added_up(mut shown: Vec<ClockRow>) -> Vec<ClockRow> {
    shown.sort();
    let mut rows: Vec<ClockRow> = Vec::new();
    for one in shown {
        match rows.last_mut() {
            Some(row) if row.key() == one.key() => row.add(&one),
            _ => rows.push(one),
        }
    }
    rows
}
