//! What a row of a group says of it.

use fleetdiff_statistics::special::z_two_sided;

use super::{Group, How, Member};
use crate::evidence::row::LEVEL;
use crate::rules::advice::named;

impl Group {
    /// For the member of a place.
    pub fn sentence(&self, place: usize) -> String {
        let member = &self.members[place];
        let (is_new, here, other) = if member.change > 0.0 { (true, "head", "base") } else { (false, "base", "head") };
        let words = match self.how {
            How::Renamed => {
                let also = self.members.iter().find(|also| also.function != member.function);
                let also = also.map_or("another", |also| also.name.as_str());
                format!("moved or renamed: it {} {also} in the {other}", if is_new { "was" } else { "is" })
            }
            How::Renumbered => {
                format!("renumbered with {}", self.named(|one| one.function != member.function))
            }
            How::Inlined if member.into.is_some() => {
                let into = self.members.iter().find(|into| Some(into.function) == member.into);
                format!("inlined in {} in the {other}", into.map_or("its callers", |into| into.name.as_str()))
            }
            How::Inlined => {
                let verb = if self.members.iter().filter(|one| one.into.is_some()).count() == 1 { "is" } else { "are" };
                format!("{} {verb} inlined in it in the {here}", self.named(|one| one.into.is_some()))
            }
        };
        if self.stands.is_none() {
            return words;
        }
        let z = z_two_sided(libm::log1p(-LEVEL));
        let [ratio, low, high] = [0.0, -z, z].map(|z| libm::exp(self.theta + z * self.se));
        format!("{words}; together x {ratio:.2} ({low:.2} to {high:.2})")
    }

    fn named(&self, is: impl Fn(&Member) -> bool) -> String {
        named(&self.members.iter().filter(|one| is(one)).map(|one| one.name.clone()).collect::<Vec<_>>())
    }
}
