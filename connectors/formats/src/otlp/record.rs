//! The middle of decoding: resources, scopes and what they hold become parts, each a profile or the reason why it is none.

use std::borrow::Cow;
use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Requests, Samples};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use super::details::PartDetails;
use super::dictionary::Dictionary;
use super::groups::{Group, Types};
use super::heads::ProfileHead;
use super::samples::Walk;
use super::symbols::Symbols;
use super::values::Attributes;
use crate::attributes::{OwnAttributes, REQUESTS_END, REQUESTS_START};
use crate::budget::Budget;
use crate::decode::Options;
use crate::labels::Contents;
use crate::names::Naming;
use crate::parts::Parts;
use crate::threads::is_by_thread;
use crate::values::Values;
use crate::wire::fields;

/// What a part is counted as besides what it holds.
const PART: usize = 512;

/// A record on its way to profiles.
pub(super) struct Record<'d, 'a> {
    dictionary: &'d Dictionary<'a>,
    symbols: Symbols<'d, 'a>,
    budget: Budget,
    options: &'d Options,
    /// Names are put into profiles at the end, when all are known.
    parts: Parts<Profile>,
    /// What stands beside the stacks of each part, if that is asked for; nothing for one that is no profile.
    details: Option<Vec<PartDetails>>,
    /// Whether the tick of times must be known.
    values: Values,
    /// Whose profiles are that name no service.
    stand_in: Option<&'d Arc<Identity>>,
}

/// Whose the profiles of a scope are.
struct Owner<'a> {
    resource: Attributes<'a>,
    scope: Attributes<'a>,
    identity: Result<Arc<Identity>, Rejection>,
    /// Where in the message it stands.
    place: String,
}

impl Owner<'_> {
    /// What is said of a profile: by itself, else by its scope, else by its resource.
    fn attribute<'s>(&'s self, columns: &'s [ProfileHead<'_>], name: &str) -> Option<Cow<'s, str>> {
        let own = columns.iter().find_map(|column| column.attributes.get(name));
        own.or_else(|| self.scope.get(name)).or_else(|| self.resource.get(name)).map(Cow::Borrowed)
    }
}

impl<'d, 'a> Record<'d, 'a> {
    /// Begins a record with these tables.
    pub(super) fn of(
        dictionary: &'d Dictionary<'a>,
        budget: Budget,
        options: &'d Options,
        naming: &'d mut Naming,
    ) -> Result<Self, Rejection> {
        let symbols = Symbols::of(dictionary, &options.cohort_label, naming, &budget)?;
        Ok(Self {
            dictionary,
            symbols,
            budget,
            options,
            parts: Parts::default(),
            details: None,
            values: Values::Samples,
            stand_in: None,
        })
    }

    /// Its parts, at least one, and what stands beside the stacks of each.
    pub(super) fn read_with_details(
        mut self,
        resources: &[&'a [u8]],
        values: Values,
        stand_in: &'d Arc<Identity>,
    ) -> Vec<(Result<Profile, Rejection>, PartDetails)> {
        (self.details, self.values, self.stand_in) = (Some(Vec::new()), values, Some(stand_in));
        self.read_all(resources);
        let details = self.details.take().unwrap_or_default();
        self.into_parts(details)
    }

    /// Its parts, at least one.
    pub(super) fn read(
        mut self,
        resources: &[&'a [u8]],
        stand_in: Option<&'d Arc<Identity>>,
    ) -> Vec<Result<Profile, Rejection>> {
        self.stand_in = stand_in;
        self.read_all(resources);
        self.into_parts(Vec::<()>::new()).into_iter().map(|(part, ())| part).collect()
    }

    fn read_all(&mut self, resources: &[&'a [u8]]) {
        for (number, resource) in resources.iter().enumerate() {
            let place = format!("resource_profiles[{number}]");
            if let Err(fault) = self.resource(resource, &place) {
                self.parts.push(Err(placed(fault, &place)));
            }
            if let Err(fault) = self.budget.take(PART) {
                self.parts.push(Err(fault));
                break;
            }
        }
        if self.parts.is_empty() {
            self.parts.push(Err(Rejection::new(Reason::Empty, "the record holds no profile")));
        }
    }

    /// The parts with their names.
    fn into_parts<D: Default>(self, beside: Vec<D>) -> Vec<(Result<Profile, Rejection>, D)> {
        let names = self.symbols.into_names();
        let mut parts = self.parts.with(beside);
        for (part, _) in &mut parts {
            if let Ok(profile) = part {
                profile.names = Arc::clone(&names);
            }
        }
        parts
    }

    /// Reads a `ResourceProfiles`. A fault is one of all its profiles.
    fn resource(&mut self, message: &'a [u8], place: &str) -> Result<(), Rejection> {
        let (mut attributes, mut scopes) = (Attributes::default(), Vec::new());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => self.attributes_of(value.bytes()?, 1, &mut attributes)?,
                2 => self.budget.push(&mut scopes, value.bytes()?)?,
                _ => {}
            }
        }
        let identity = self.identity(&attributes, &Attributes::default());
        let mut owner = Owner { resource: attributes, scope: Attributes::default(), identity, place: String::new() };
        for (number, scope) in scopes.into_iter().enumerate() {
            owner.place = format!("{place}.scope_profiles[{number}]");
            if let Err(fault) = self.scope(scope, &mut owner) {
                self.parts.push(Err(placed(fault, &owner.place)));
            }
        }
        Ok(())
    }

    /// Reads a `ScopeProfiles`. A fault is one of all its profiles.
    fn scope(&mut self, message: &'a [u8], owner: &mut Owner<'a>) -> Result<(), Rejection> {
        let (mut attributes, mut profiles) = (Attributes::default(), Vec::new());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => self.attributes_of(value.bytes()?, 3, &mut attributes)?,
                2 => self.budget.push(&mut profiles, value.bytes()?)?,
                _ => {}
            }
        }
        if !attributes.is_empty() || !owner.scope.is_empty() {
            owner.identity = self.identity(&owner.resource, &attributes);
        }
        owner.scope = attributes;
        let own = OwnAttributes { what: "attribute", lookup: &|name| owner.attribute(&[], name) };
        let types = Types { stated: own.profile_type()?, contention: self.options.contention };
        let heads = self.heads(&profiles, owner);
        for group in types.group(heads) {
            self.budget.take(PART)?;
            let part = self.part(&group, owner);
            self.parts.push(part.map_err(|fault| placed(fault, &group.place(owner))));
        }
        Ok(())
    }

    /// The profiles of a scope without their samples, and the type that they say; one that cannot be read becomes a part.
    fn heads(&mut self, profiles: &[&'a [u8]], owner: &Owner<'a>) -> Vec<(ProfileHead<'a>, Option<ProfileType>)> {
        let mut heads = Vec::new();
        for (number, profile) in profiles.iter().enumerate() {
            let head = self.budget.take(PART).and_then(|()| {
                let head = ProfileHead::read(number, profile, self.dictionary, &self.budget)?;
                let own =
                    OwnAttributes { what: "attribute", lookup: &|name| head.attributes.get(name).map(Cow::Borrowed) };
                let stated = own.profile_type()?;
                Ok((head, stated))
            });
            match head {
                Ok(head) => heads.push(head),
                Err(fault) => {
                    let ended = fault.reason == Reason::TooLarge;
                    self.parts.push(Err(placed(fault, &format!("{}.profiles[{number}]", owner.place))));
                    if ended {
                        break;
                    }
                }
            }
        }
        heads
    }

    /// Adds the attributes of a resource or scope, which stand under this tag.
    fn attributes_of(&mut self, message: &'a [u8], tag: u32, into: &mut Attributes<'a>) -> Result<(), Rejection> {
        let mut parts = fields(message);
        while let Some((found, value)) = parts.next()? {
            if found == tag {
                into.add(value.bytes()?, self.dictionary, &self.budget)?;
            }
        }
        Ok(())
    }

    fn identity(&mut self, resource: &Attributes<'a>, scope: &Attributes<'a>) -> Result<Arc<Identity>, Rejection> {
        let lookup = |name: &str| resource.get(name).or_else(|| scope.get(name)).map(Cow::Borrowed);
        if let Some(identity) = self.stand_in
            && self.options.identity.service(&lookup).is_none()
        {
            return Ok(Arc::clone(identity));
        }
        let identity = self.options.identity.resolve(&lookup).map_err(|fault| match resource.are_nameless() {
            true => Rejection {
                detail: format!(
                    "{}; all attributes of the resource have lost their names, as they do on \
                 the way through a Collector's kafkareceiver of v0.155.0",
                    fault.detail
                ),
                ..fault
            },
            false => fault,
        })?;
        self.budget.take(size(&identity))?;
        Ok(Arc::new(identity))
    }

    /// One profile, its names left out.
    fn part(&mut self, group: &Group<'a>, owner: &Owner<'a>) -> Result<Profile, Rejection> {
        let at = group.window.map(TimeRange::midpoint);
        let labelled = |fault: Rejection| Rejection { profile_type: Some(group.profile_type), at, ..fault };
        let own = OwnAttributes { what: "attribute", lookup: &|name| owner.attribute(&group.columns, name) };
        let mut details = self.details.is_some().then(PartDetails::default);
        let stacks = own.period().and_then(|period| {
            let (details, values) = (details.as_mut(), self.values);
            let by_thread = details.is_none() && is_by_thread(group.profile_type);
            let mut walk = Walk { symbols: &mut self.symbols, budget: &self.budget, details, values, by_thread };
            walk.stacks(group, period)
        });
        if let Some((all, details)) = self.details.as_mut().zip(details) {
            // This part comes behind those that are there.
            all.resize_with(self.parts.len(), PartDetails::default);
            all.push(details);
        }
        let level = group.profile_type.is_level();
        let temporality =
            own.temporality().map(|stated| stated.filter(|_| !level).unwrap_or_else(|| group.temporality()));
        let expected = temporality.as_ref().copied().unwrap_or_default();
        let contents =
            stacks.and_then(|stacks| Contents { names: Arc::default(), stacks }.checked(group.profile_type, expected));
        let identity = owner.identity.clone().map_err(|fault| {
            let samples = contents.as_ref().map_or(0, Contents::total);
            labelled(Rejection { samples, ..fault })
        })?;
        let contents = contents.map_err(labelled)?;
        let window = group.window.ok_or_else(|| labelled(timeless()))?;
        let requests_window = own.window(REQUESTS_START, REQUESTS_END).map_err(labelled)?.unwrap_or(window);
        let requests = own.requests().map_err(labelled)?.filter(|_| !level);
        Ok(Profile {
            identity,
            profile_type: group.profile_type,
            temporality: temporality.map_err(labelled)?,
            window,
            requests: requests.map(|count| Requests { count, window: requests_window }),
            names: contents.names,
            samples: Samples::Stacks(contents.stacks),
        })
    }
}

impl Group<'_> {
    fn place(&self, owner: &Owner<'_>) -> String {
        let number = self.columns.first().map_or(0, |column| column.number);
        format!("{}.profiles[{number}]", owner.place)
    }
}

/// A fault with its place before it.
pub(super) fn placed(fault: Rejection, place: &str) -> Rejection {
    Rejection { detail: format!("{place}: {}", fault.detail), ..fault }
}

fn timeless() -> Rejection {
    Rejection::new(Reason::Malformed, "it does not say when it was taken: time_unix_nano is 0")
}

/// Bytes that the texts of an identity take.
pub(super) fn size(identity: &Identity) -> usize {
    let node = identity.node.as_ref().map_or(0, |node| node.as_str().len());
    let texts = [
        identity.service.as_str(),
        identity.build.as_str(),
        identity.region.as_str(),
        identity.cohort.as_str(),
        identity.hardware.as_str(),
        identity.pod.as_str(),
    ];
    texts.iter().map(|text| text.len()).sum::<usize>() + node + size_of::<Identity>()
}
