//! Section 1: at which hop each profile of a partition is applied.

use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::RejectedRow;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::{Applied, Ledger, book, content_of, countable, held_back, index, samples};
use crate::clocks::{Believed, Clocks, Early, FUTURE, Fate, HOUR};

/// Section 1: one partition in its own order.
pub(super) struct Walk<'a, 'b> {
    pub config: &'b Config,
    pub believed: Believed,
    pub watermark: Option<Hop>,
    pub early: Vec<Early<'a>>,
    /// Rejected parts without a time.
    pub waiting: Vec<RejectedRow>,
    /// Where good profiles go, and the others.
    pub applied: &'b mut Vec<Applied<'a>>,
    pub ledger: &'b mut Ledger,
    pub rejected: &'b mut Vec<RejectedRow>,
    pub clocks: &'b mut Clocks,
}

impl<'a> Walk<'a, '_> {
    pub(super) fn whole(mut self, records: &'a [Decoded]) {
        records.iter().for_each(|record| self.record(record));
        let moved_with = self.believed.moved_with;
        self.believed.decide(self.config.agreement, true);
        let disputed: Vec<_> =
            self.early.iter().filter(|one| one.came_with < moved_with).map(|one| one.pod()).collect();
        for one in std::mem::take(&mut self.early) {
            let agreed = self.believed.agreed.unwrap_or_default();
            self.decided(one.last_fate(agreed, disputed.contains(&one.pod())), one);
        }
        self.advance();
        self.waiting.into_iter().for_each(|row| book(self.config, None, row, self.ledger, self.rejected));
    }

    fn record(&mut self, record: &'a Decoded) {
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for (part, decoded) in record.parts.iter().enumerate() {
            match decoded.clone().and_then(countable) {
                Ok(profile) => match from_future(record, &profile) {
                    None => good.push((part, profile)),
                    Some(rejection) => bad.push((part, rejection, Some(profile))),
                },
                Err(rejection) => bad.push((part, rejection, None)),
            }
        }
        let before = self.believed.agreed;
        self.believe(record.stamped, &good);
        if let Some(agreed) = self.believed.agreed.filter(|_| self.believed.agreed != before) {
            for mut one in std::mem::take(&mut self.early) {
                self.decided(one.fate(agreed, self.believed.silent > 0), one);
            }
        }
        for (part, profile) in good {
            let at = profile.window.midpoint();
            let agreed = self.believed.agreed;
            if matches!(record.stamped, Stamped::BySender(_)) && agreed.is_none_or(|agreed| at.since(agreed) > FUTURE) {
                let came_with = self.believed.records;
                self.early.push(Early {
                    profile,
                    position: &record.position,
                    part,
                    came_with,
                    since: agreed,
                    lead: None,
                });
            } else {
                let behind = agreed.filter(|agreed| agreed.since(at) > HOUR);
                let ahead = behind.and_then(|agreed| match record.stamped {
                    Stamped::No => None,
                    Stamped::BySender(_) => Some(at.since(agreed)),
                    Stamped::ByBroker(received) => Some(at.since(received)),
                });
                self.apply(profile, &record.position, part, (ahead, false));
            }
        }
        for (part, rejection, profile) in bad {
            let time = self.time_of(record.stamped, &rejection);
            self.reject((&record.position, part), rejection, time, profile.as_ref());
        }
        self.advance();
    }

    fn believe(&mut self, stamped: Stamped, good: &[(usize, Profile)]) {
        let latest = good.iter().map(|(_, profile)| profile.window.midpoint()).max();
        match (stamped, latest) {
            (_, None) => {}
            (Stamped::No, Some(latest)) => self.believed.vouched(latest),
            (Stamped::ByBroker(received), Some(latest)) => self.believed.vouched(latest.min(received)),
            (Stamped::BySender(_), Some(_)) => {
                let claims = good.iter().map(|(_, profile)| {
                    let pod = (profile.identity.service.clone(), profile.identity.pod.clone());
                    (pod, profile.window.midpoint())
                });
                self.believed.claimed(self.config.agreement, claims);
            }
        }
    }

    /// The time under which a rejected part is booked.
    fn time_of(&self, stamped: Stamped, rejection: &Rejection) -> Option<Nanos> {
        let time = rejection.at.or_else(|| stamped.time())?;
        match stamped {
            Stamped::No => Some(time),
            Stamped::ByBroker(received) => Some(time.min(received)),
            Stamped::BySender(_) => {
                let is_believed = self.believed.agreed.is_none_or(|agreed| time.since(agreed) <= FUTURE);
                is_believed.then_some(time)
            }
        }
    }

    fn decided(&mut self, fate: Fate, one: Early<'a>) {
        match fate {
            Fate::Waits => self.early.push(one),
            Fate::Applied => self.apply(one.profile, one.position, one.part, (one.lead, true)),
            Fate::Rejected(ahead) => {
                let rejection = Rejection {
                    profile_type: Some(one.profile.profile_type),
                    samples: one.profile.total(),
                    at: self.believed.agreed,
                    ..Rejection::new(Reason::FromFuture, format!("{} ns ahead of the agreed time", ahead.0))
                };
                let time = self.believed.agreed;
                let hop = self.reject((one.position, one.part), rejection, time, None);
                if let Some(hop) = hop {
                    let total = samples(one.profile.total());
                    let row = self.clocks.shown(hop, one.position, &one.profile.identity, ahead, total);
                    row.samples_rejected += total;
                }
            }
        }
    }

    /// `shown`: how far its clock is ahead, if it is wrong, and whether the profile has waited.
    fn apply(&mut self, profile: Profile, position: &'a Position, part: usize, shown: (Option<Nanos>, bool)) {
        let own = self.config.clock().hop_of(profile.window.midpoint());
        let late = self.watermark.is_some_and(|watermark| own < watermark);
        let at = self.watermark.filter(|_| late).unwrap_or(own).plus(held_back(self.config, &profile));
        if let (Some(ahead), has_waited) = shown {
            let total = samples(profile.total());
            let row = self.clocks.shown(at, position, &profile.identity, ahead, total);
            if own.plus(self.config.window_hops()) <= at {
                row.samples_late_dropped += total;
            } else if has_waited {
                row.samples_waited += total;
            }
        }
        let content = content_of(&profile);
        self.applied.push(Applied { profile: Arc::new(profile), content, position, part, own, at, late });
    }

    /// Books a rejected part, at once if it has a time; `ahead_of_broker` is the profile if that is why.
    fn reject(
        &mut self,
        (position, part): (&Position, usize),
        rejection: Rejection,
        time: Option<Nanos>,
        ahead_of_broker: Option<&Profile>,
    ) -> Option<Hop> {
        let hop = self.watermark.max(time.map(|at| self.config.clock().hop_of(at)));
        if let (Some(profile), Some(received), Some(hop)) = (ahead_of_broker, rejection.at, hop) {
            let total = samples(profile.total());
            let ahead = profile.window.midpoint().since(received);
            self.clocks.shown(hop, position, &profile.identity, ahead, total).samples_rejected += total;
        }
        let row = RejectedRow { hop_at: None, position: position.clone(), part: index(part), rejection };
        match hop {
            Some(_) => book(self.config, hop, row, self.ledger, self.rejected),
            None => self.waiting.push(row),
        }
        hop
    }

    fn advance(&mut self) {
        let reached = self.believed.agreed.map(|agreed| self.config.clock().hop_of(agreed.since(self.config.lateness)));
        self.watermark = self.watermark.max(reached);
        if self.watermark.is_some() {
            for row in self.waiting.drain(..) {
                book(self.config, self.watermark, row, self.ledger, self.rejected);
            }
        }
    }
}

/// Why a profile is refused whose time is after that of the broker.
fn from_future(record: &Decoded, profile: &Profile) -> Option<Rejection> {
    let Stamped::ByBroker(received) = record.stamped else { return None };
    (profile.window.midpoint().since(received) > FUTURE).then(|| Rejection {
        profile_type: Some(profile.profile_type),
        samples: profile.total(),
        at: Some(received),
        ..Rejection::new(Reason::FromFuture, "event time is more than 60 s after the broker's")
    })
}
