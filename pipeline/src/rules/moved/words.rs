//! What a row of a group says of it.

use super::{Group, How, Member};
use crate::rules::advice::named;

/// A normal deviate lies within so many standard deviations with probability 95 %.
const Z95: f64 = 1.959_963_984_540_054;

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
                let others: Vec<String> = self
                    .members
                    .iter()
                    .filter(|one| one.function != member.function)
                    .map(|one| one.name.clone())
                    .collect();
                format!("renumbered with {}", named(&others))
            }
            How::Inlined if member.into.is_some() => {
                let into = self.members.iter().find(|into| Some(into.function) == member.into);
                format!("inlined in {} in the {other}", into.map_or("its callers", |into| into.name.as_str()))
            }
            How::Inlined => {
                let inlined: Vec<String> =
                    self.members.iter().filter(|one| one.into.is_some()).map(|one: &Member| one.name.clone()).collect();
                let verb = if inlined.len() == 1 { "is" } else { "are" };
                format!("{} {verb} inlined in it in the {here}", named(&inlined))
            }
        };
        if self.stands.is_none() {
            return words;
        }
        let [ratio, low, high] = [0.0, -Z95, Z95].map(|z| libm::exp(self.theta + z * self.se));
        format!("{words}; together x {ratio:.2} ({low:.2} to {high:.2})")
    }
}
