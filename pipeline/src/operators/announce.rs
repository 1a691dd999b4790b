//! Announces to all workers through which hop everything has arrived.
//!
//! Every worker reports its partitions to worker 0, which alone decides and announces the decision to all. This is a
//! separate dataflow, so that it can make progress while the main one is busy.

use std::cell::Cell;
use std::rc::Rc;

use fleetdiff_schemas::time::Hop;
use serde::{Deserialize, Serialize};
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Broadcast;
use timely::dataflow::operators::{Input, Inspect};
use timely::worker::Worker;

use crate::checkpoint::Checkpoints;
use crate::rules::watermarks::{Announced, Report, WatermarkBoard};

/// What a worker reports to worker 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Announcement {
    /// The state of a partition.
    Partition(Report),
    /// All partitions of this worker have been named.
    Complete,
}

/// What is announced, and the boundary before it at which there will be a checkpoint, if there is a new one.
type Decided = (Announced, Option<Hop>);

/// One worker's end of the announcements.
pub struct Announcements {
    input: InputHandle<u64, timely::container::CapacityContainerBuilder<Vec<Announcement>>>,
    heard: Rc<Cell<Announced>>,
}

impl Announcements {
    /// Builds the dataflow.
    pub fn build(worker: &mut Worker, checkpoints: &Checkpoints) -> Self {
        let heard = Rc::new(Cell::new(Announced::Nothing));
        let hears = Rc::clone(&heard);
        let (decides, wants) = (checkpoints.clone(), checkpoints.clone());
        let input = worker.dataflow::<u64, _, _>(|scope| {
            let (input, announcement) = scope.new_input::<Vec<Announcement>>();
            let mut board = WatermarkBoard::awaiting(scope.peers());
            let mut before = Hop(0);
            let announced = announcement.unary::<timely::container::CapacityContainerBuilder<Vec<Decided>>, _, _, _>(
                Exchange::new(|_| 0),
                "Announce",
                move |_, _| {
                    move |input, output| {
                        input.for_each_time(|time, data| {
                            data.flat_map(|batch| batch.drain(..)).for_each(|announcement| match announcement {
                                Announcement::Partition(report) => board.report(report),
                                Announcement::Complete => board.reader_is_complete(),
                            });
                            let decided = board.announce().map(|announced| match announced {
                                Announced::OpenFrom(hop) => {
                                    let before = std::mem::replace(&mut before, hop);
                                    (announced, decides.decide(before, hop))
                                }
                                Announced::Nothing | Announced::All => (announced, None),
                            });
                            output.session(&time).give_iterator(decided.into_iter());
                        });
                    }
                },
            );
            announced.broadcast().inspect(move |(announced, boundary)| {
                // NB: before this worker lets anything close, so before any operator passes the boundary.
                boundary.iter().for_each(|boundary| wants.want(*boundary));
                hears.set(hears.get().max(*announced));
            });
            input
        });
        Self { input, heard }
    }

    /// Sends a report to worker 0.
    pub fn send(&mut self, announcement: Announcement) {
        self.input.send(announcement);
        // NB: an exchange holds back what does not fill a container until its epoch ends.
        let next = *self.input.time() + 1;
        self.input.advance_to(next);
    }

    /// What was announced last.
    pub fn heard(&self) -> Announced {
        self.heard.get()
    }
}
