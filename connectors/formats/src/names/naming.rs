//! What a decoder remembers of names from one profile to the next.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use fleetdiff_schemas::number::index_of;
use fleetdiff_schemas::profile::UNSYMBOLISED;

use super::rewrites::Rewrites;
use super::rules::NameRules;
use crate::decode::Options;

/// Bytes that a name takes besides its text: entries of maps and lists, counted pointers, and the counts.
const ENTRY: usize = 128;

type Map = HashMap<Arc<str>, u32, foldhash::fast::RandomState>;

/// The names that a decoder has met, and where the profile at hand has them.
#[derive(Debug)]
pub(crate) struct Naming {
    rules: NameRules,
    rewrites: Rewrites,
    /// Numbers of names as they came.
    raw: Map,
    /// By that number.
    came: Vec<Came>,
    /// Numbers of names as they are counted.
    counted: Map,
    /// By that number.
    names: Vec<Counted>,
    /// The profile at hand, from 1.
    profile: u64,
    /// Bytes that all of this takes.
    held: usize,
    most: usize,
}

/// A name as it came: the number of the name that it is counted as, and where the profile at hand has it.
#[derive(Clone, Copy, Debug)]
struct Came {
    counted: u32,
    place: Place,
}

/// A name as it is counted, and where the profile at hand has it.
#[derive(Clone, Debug)]
struct Counted {
    name: Arc<str>,
    place: Place,
}

/// An index into the names of a profile; of another profile than the one at hand, it means nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    profile: u64,
    index: u32,
}

/// What is known of a name that came.
pub(super) enum Known {
    /// The profile at hand has it at this index.
    Met(u32),
    /// It came for the first time in this profile.
    New(NewName),
}

/// A name that came for the first time in a profile.
pub(super) struct NewName {
    raw: u32,
    /// As it is counted.
    pub(super) name: Arc<str>,
    /// Where the profile has it already, since another that came is counted as the same.
    pub(super) index: Option<u32>,
}

impl Naming {
    /// Remembers nothing yet; later, between profiles, at most an eighth of the largest record.
    pub(crate) fn new(options: &Options) -> Self {
        Self::empty(options.name_rules.clone(), options.rewrites.clone(), options.max_bytes / 8)
    }

    fn empty(rules: NameRules, rewrites: Rewrites, most: usize) -> Self {
        Self {
            rules,
            rewrites,
            raw: Map::default(),
            came: Vec::new(),
            counted: Map::default(),
            names: Vec::new(),
            profile: 0,
            held: 0,
            most,
        }
    }

    /// Begins a profile.
    pub(super) fn begin(&mut self) {
        self.profile += 1;
    }

    /// Ends a profile: if more is remembered than may be, all is forgotten, and found again as it comes.
    pub(super) fn end(&mut self) {
        if self.held > self.most {
            *self = Self::empty(self.rules.clone(), self.rewrites.clone(), self.most);
        }
    }

    /// A name as the rules leave it, before any rewrite.
    pub(super) fn normalised<'n>(&self, raw: &'n str) -> Cow<'n, str> {
        self.rules.apply(raw)
    }

    /// What is known of a name as it came.
    #[inline]
    pub(super) fn find(&mut self, raw: &str) -> Known {
        let number = self.raw.get(raw).copied().unwrap_or_else(|| self.remember(raw));
        let came = self.came[index_of(number)];
        if let Some(index) = self.index_at(came.place) {
            return Known::Met(index);
        }
        let Counted { name, place } = &self.names[index_of(came.counted)];
        Known::New(NewName { raw: number, name: Arc::clone(name), index: self.index_at(*place) })
    }

    /// A new name is at this index of the profile.
    pub(super) fn put(&mut self, new: &NewName, index: u32) {
        let place = Place { profile: self.profile, index };
        let came = &mut self.came[index_of(new.raw)];
        came.place = place;
        self.names[index_of(came.counted)].place = place;
    }

    /// The index of a name that is counted as it is, if the profile has it.
    pub(super) fn find_counted(&self, name: &str) -> Option<u32> {
        self.index_at(self.names[index_of(*self.counted.get(name)?)].place)
    }

    /// A name that is counted as it is, is at this index of the profile.
    pub(super) fn put_counted(&mut self, name: &Arc<str>, index: u32) {
        let number = self.number_of(name);
        self.names[index_of(number)].place = Place { profile: self.profile, index };
    }

    fn index_at(&self, place: Place) -> Option<u32> {
        (place.profile == self.profile).then_some(place.index)
    }

    fn remember(&mut self, raw: &str) -> u32 {
        let counted = self.number_of(&self.counted_as(raw));
        let name = &self.names[index_of(counted)].name;
        let text = if **name == *raw { Arc::clone(name) } else { Arc::from(raw) };
        self.held += ENTRY + raw.len();
        let number = short(self.came.len());
        self.came.push(Came { counted, place: Place::default() });
        self.raw.insert(text, number);
        number
    }

    fn number_of(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&number) = self.counted.get(name) {
            return number;
        }
        self.held += ENTRY + name.len();
        let number = short(self.names.len());
        self.names.push(Counted { name: Arc::clone(name), place: Place::default() });
        self.counted.insert(Arc::clone(name), number);
        number
    }

    fn counted_as(&self, raw: &str) -> Arc<str> {
        let name = self.normalised(raw);
        if name == UNSYMBOLISED {
            return UNSYMBOLISED.into();
        }
        let name = self.rewrites.apply(name);
        if name.is_empty() { UNSYMBOLISED.into() } else { name.into() }
    }
}

/// NB: a decoder reads fewer than 2^32 bytes a record, thus fewer names, and what it remembers between records is less.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::names) fn naming(max_bytes: usize, rewrites: &[&str]) -> Naming {
        let rewrites = Rewrites::parse(rewrites).unwrap();
        Naming::new(&Options { max_bytes, rewrites, ..Options::default() })
    }

    fn index(naming: &mut Naming, raw: &str, next: u32) -> u32 {
        match naming.find(raw) {
            Known::Met(index) => index,
            Known::New(new) => {
                let index = new.index.unwrap_or(next);
                naming.put(&new, index);
                index
            }
        }
    }

    #[test]
    fn a_name_is_made_once_a_decoder() {
        let mut naming = naming(1 << 20, &[]);
        let mut name = || {
            naming.begin();
            let Known::New(new) = naming.find("run (a.py:1)") else { panic!("met in a new profile") };
            naming.put(&new, 0);
            naming.end();
            new.name
        };
        assert!(Arc::ptr_eq(&name(), &name()));
    }

    #[test]
    fn what_a_profile_has_is_not_there_in_the_next() {
        let mut naming = naming(1 << 20, &["^v[0-9]+ => v"]);
        for first in [0, 3] {
            naming.begin();
            assert_eq!(naming.find_counted("v.run"), None);
            assert_eq!([index(&mut naming, "v1.run", first), index(&mut naming, "v2.run", 9)], [first; 2]);
            assert_eq!((naming.find_counted("v.run"), naming.find_counted("v1.run")), (Some(first), None));
            naming.put_counted(&"v1.run".into(), first + 1);
            assert_eq!(naming.find_counted("v1.run"), Some(first + 1));
            assert_eq!(index(&mut naming, "v1.run", 9), first);
            naming.end();
        }
    }

    #[test]
    fn what_is_remembered_between_profiles_is_bounded_and_no_less_right() {
        let mut naming = naming(80_000, &["x => y"]);
        let mut most = 0;
        for number in 0..5_000 {
            naming.begin();
            let Known::New(new) = naming.find(&format!("x{number} (a.py:3)")) else { panic!("met before it came") };
            assert_eq!(*new.name, format!("y{number} (a.py)"));
            naming.put(&new, 0);
            naming.end();
            let texts = |map: &Map| map.keys().map(|name| name.len() + ENTRY).sum::<usize>();
            assert_eq!(naming.held, texts(&naming.raw) + texts(&naming.counted));
            most = most.max(naming.held);
        }
        assert!(most <= 10_000 && most > 9_000, "{most}");
    }
}
