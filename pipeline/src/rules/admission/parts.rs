//! The parts of a record, and what their times say of the sender's clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, RequestPoint, Stamped, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::ClockRow;
use fleetdiff_schemas::time::{Nanos, TimeRange};
use serde::{Deserialize, Serialize};

use crate::rules::clocks::{AHEAD, APART, Agreement, Sender};

/// What can be counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Good {
    /// A profile.
    Profile(Profile),
    /// Requests of a metric.
    Requests(RequestPoint),
}

impl Good {
    pub(super) fn at(&self) -> Nanos {
        match self {
            Self::Profile(profile) => profile.event_time(),
            Self::Requests(point) => point.event_time(),
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        match self {
            Self::Profile(profile) => &profile.identity,
            Self::Requests(point) => &point.identity,
        }
    }

    pub(super) fn sender(&self) -> Sender {
        (self.identity().service.clone(), self.identity().pod.clone())
    }

    /// How long it took to observe; 0 for what was counted since the process began.
    pub(super) fn length(&self) -> Nanos {
        let of = |temporality: Temporality, window| {
            let TimeRange { start, end } = temporality.window(window);
            end.since(start)
        };
        match self {
            Self::Profile(profile) => of(profile.temporality, profile.window),
            Self::Requests(point) => of(point.temporality, point.window),
        }
    }
}

/// A part of a record: what it holds, and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part<T> {
    pub(super) holds: T,
    pub(super) position: Position,
    pub(super) part: u32,
}

/// What is not counted.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) rejection: Rejection,
    /// Whose clock is the reason, and how far it is ahead.
    pub(super) clock: Option<(Arc<Identity>, Nanos)>,
}

/// A record by what becomes of its parts.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) stamped: Stamped,
    pub(super) good: Vec<Part<Good>>,
    pub(super) refused: Vec<Part<Refused>>,
}

impl Parts {
    pub(super) fn of(record: Decoded) -> Self {
        let Decoded { position, stamped, parts, points } = record;
        let mut sorted = Self { stamped, good: Vec::with_capacity(parts.len()), refused: Vec::new() };
        let profiles = (0..).zip(parts.into_iter().map(|part| part.map(Good::Profile)));
        let points = (0..).zip(points.into_iter().map(|point| Ok(Good::Requests(point))));
        for (part, content) in profiles.chain(points) {
            let position = position.clone();
            let unclocked = |rejection| Refused { rejection, clock: None };
            match content.and_then(countable).map_err(unclocked).and_then(|good| not_ahead_of_broker(good, stamped)) {
                Ok(holds) => sorted.good.push(Part { holds, position, part }),
                Err(holds) => sorted.refused.push(Part { holds, position, part }),
            }
        }
        sorted
    }

    /// Lets the time of a partition follow the times of this record, as far as they can be believed.
    pub(super) fn tell(&self, clocks: &mut Agreement) {
        let times = self.good.iter().map(|part| part.holds.at());
        match self.stamped {
            Stamped::BySender(_) if self.good.is_empty() => {}
            Stamped::BySender(_) => {
                let mut latest: BTreeMap<Sender, Nanos> = BTreeMap::new();
                for (part, at) in self.good.iter().zip(times) {
                    latest.entry(part.holds.sender()).and_modify(|known| *known = at.max(*known)).or_insert(at);
                }
                clocks.hear(latest);
            }
            Stamped::ByBroker(received) => times.max().into_iter().for_each(|at| clocks.follow(at.min(received))),
            Stamped::No => times.max().into_iter().for_each(|at| clocks.follow(at)),
        }
    }

    /// How far the clock is behind that gave something this time, if it is wrong.
    pub(super) fn behind(&self, at: Nanos, agreed: Option<Nanos>) -> Option<Nanos> {
        let agreed = agreed.filter(|agreed| agreed.since(at) > APART)?;
        match self.stamped {
            Stamped::No => None,
            Stamped::BySender(_) => Some(at.since(agreed)),
            Stamped::ByBroker(received) => Some(at.since(received)),
        }
    }
}

/// The time under which a refused part is booked, as far as it can be believed: while nothing good has come, as it says.
pub(super) fn time_of(stamped: Stamped, rejection: &Rejection, agreed: Option<Nanos>) -> Option<Nanos> {
    match stamped {
        Stamped::No => rejection.at,
        Stamped::ByBroker(received) => Some(rejection.at.map_or(received, |at| at.min(received))),
        Stamped::BySender(sent) => rejection.at.or(sent).filter(|at| agreed.is_none() || !is_ahead(*at, agreed)),
    }
}

/// Whether something is further ahead of the agreed time than clocks may be.
pub(super) fn is_ahead(at: Nanos, agreed: Option<Nanos>) -> bool {
    agreed.is_none_or(|agreed| at.since(agreed) > AHEAD)
}

/// Refuses what waited and is still so far ahead that a clock must be wrong.
pub(super) fn refused(part: Part<Good>, agreed: Nanos, lead: Nanos) -> Part<Refused> {
    let Part { holds, position, part } = part;
    let detail = format!(
        "event time {} ns lies {} s ahead of the time on which the pods of its partition agree ({} ns); check the sender's clock",
        holds.at().0,
        lead.0 / 1_000_000_000,
        agreed.0
    );
    Part { holds: from_future(holds, agreed, lead, detail), position, part }
}

/// What a profile shows of its sender's clock, which is this far ahead; of its samples nothing yet.
pub(super) fn clock_row(identity: &Identity, position: &Position, ahead: Nanos, samples: u64) -> ClockRow {
    ClockRow {
        hop_at: Nanos(0),
        source: Arc::clone(&position.source),
        partition: position.partition,
        service: identity.service.clone(),
        build: identity.build.clone(),
        pod: identity.pod.clone(),
        ahead: ahead.0,
        profiles: 1,
        samples: table_count(samples),
        samples_waited: 0,
        samples_rejected: 0,
        samples_late_dropped: 0,
    }
}

fn countable(good: Good) -> Result<Good, Rejection> {
    match good {
        Good::Profile(profile) => match profile.uncountable() {
            Some(fault) => Err(Rejection { samples: profile.total(), ..fault }),
            None => Ok(Good::Profile(profile)),
        },
        Good::Requests(_) => Ok(good),
    }
}

/// Refuses an event time that lies so far after the moment at which the broker received the record that a clock must be
/// wrong.
fn not_ahead_of_broker(good: Good, stamped: Stamped) -> Result<Good, Refused> {
    match stamped {
        Stamped::ByBroker(received) if good.at().since(received) > AHEAD => {
            let detail = format!(
                "event time {} ns lies more than 60 s after the broker took the record ({} ns); check the sender's clock",
                good.at().0,
                received.0
            );
            let lead = good.at().since(received);
            Err(from_future(good, received, lead, detail))
        }
        _ => Ok(good),
    }
}

/// The refusal of something ahead of its time; it is booked at that time.
fn from_future(good: Good, booked: Nanos, lead: Nanos, detail: String) -> Refused {
    let rejection = Rejection { at: Some(booked), ..Rejection::new(Reason::FromFuture, detail) };
    match good {
        Good::Requests(_) => Refused { rejection, clock: None },
        Good::Profile(profile) => Refused {
            rejection: Rejection { profile_type: Some(profile.profile_type), samples: profile.total(), ..rejection },
            clock: Some((profile.identity, lead)),
        },
    }
}
