//! Which services of a topic a process counts, if several processes share them.

use std::fmt;
use std::str::FromStr;

use crate::identity::{Service, stable_hash};

/// One of several parts of all services, by the stable hash of their names. Every service belongs to exactly one of them, and so
/// does every partition: what was refused names no service. Written `2/3`: the second of three.
///
/// ```
/// use fleetdiff_schemas::config::Shard;
///
/// let shards = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().unwrap());
/// assert_eq!(shards.iter().filter(|shard| shard.has_service(&"checkout".into())).count(), 1);
/// assert!("1/1".parse::<Shard>().unwrap().is_whole() && "4/3".parse::<Shard>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Counted from 1.
    number: u32,
    /// At least `number`.
    of: u32,
}

/// A text does not name a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shard is I/N, as in 2/3, with I from 1 to N")]
pub struct NoShard;

impl Shard {
    /// All services.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// The part with this number, counted from 1, of so many; `None` if there is none.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Whether there is no other.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Whether a service belongs to it.
    pub fn has_service(self, service: &Service) -> bool {
        self.has(|| stable_hash(service.as_str().as_bytes()))
    }

    /// Whether what belongs to no service belongs to it, if it comes from this partition of a topic or folder.
    pub fn has_partition(self, source: &str, partition: i32) -> bool {
        self.has(|| stable_hash(format!("{source}\0{partition}").as_bytes()))
    }

    fn has(self, hash: impl FnOnce() -> u64) -> bool {
        self.is_whole() || hash() % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (number, of) = text.split_once('/').ok_or(NoShard)?;
        // NB: `parse` alone takes a sign.
        let number_of = |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let (number, of) = number_of(number).zip(number_of(of)).ok_or(NoShard)?;
        Self::new(number, of).ok_or(NoShard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_read_as_it_is_written_and_nothing_else_is_one() {
        for text in ["1/1", "1/3", "3/3", "17/64", "4294967295/4294967295"] {
            assert_eq!(text.parse::<Shard>().map(|shard| shard.to_string()).as_deref(), Ok(text));
        }
        let junk = ["", "1", "/", "1/", "/3", "0/3", "4/3", "0/0", "-1/3", "+1/3", "1/+3", " 1/3", "1 / 3", "1/3/3"];
        for text in junk.into_iter().chain(["a/b", "1/4294967296", "1.0/3", "٢/3"]) {
            assert_eq!(text.parse::<Shard>(), Err(NoShard), "{text}");
        }
    }

    #[test]
    fn every_service_and_every_partition_belongs_to_one_shard_of_each_number() {
        for of in [1, 2, 3, 7] {
            let shards: Vec<Shard> = (1..=of).filter_map(|number| Shard::new(number, of)).collect();
            let mut found = vec![[0, 0]; shards.len()];
            for number in 0..200_i32 {
                let service = format!("service-{number}").as_str().into();
                let (mut of_service, mut of_partition) = (0, 0);
                for (shard, found) in shards.iter().zip(&mut found) {
                    let has = [shard.has_service(&service), shard.has_partition("topic", number)].map(usize::from);
                    (of_service, of_partition) = (of_service + has[0], of_partition + has[1]);
                    *found = [found[0] + has[0], found[1] + has[1]];
                }
                assert_eq!((of_service, of_partition), (1, 1), "{service} of {of}");
            }
            assert!(found.iter().flatten().all(|found| *found > 100 / shards.len()), "{of}: {found:?}");
        }
    }
}
