//! What the configuration adds to an alert for the person who reads it: whose it is, what to do by its runbook, and where
//! to look.

use serde_json::json;

use super::percent_encoded;
use crate::identity::Service;
use crate::rows::IncidentRow;

/// Owners, runbooks and the template of links; by default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guidance {
    /// Who owns what; the first rule that fits decides.
    pub owners: Vec<GuidanceRule>,
    /// Which runbook applies; the first rule that fits decides.
    pub runbooks: Vec<GuidanceRule>,
    /// A URL in which `{service}`, `{head}`, `{base}`, `{cause}` and `{incident}` are replaced, percent-encoded. Empty
    /// for none.
    pub link: String,
}

/// A value for some services and functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidanceRule {
    service: String,
    function: String,
    value: String,
}

impl GuidanceRule {
    /// Reads `SERVICE -> VALUE` or `SERVICE:FUNCTION -> VALUE`; `*` in service or function stands for any text. A rule
    /// without a function fits every function, and the verdict of the whole service. `None` if it is not of this form.
    ///
    /// ```
    /// use fleetdiff_schemas::alert::GuidanceRule;
    ///
    /// let rule = GuidanceRule::parse("checkout:video::* -> team-video").unwrap();
    /// assert!(rule.fits("checkout", Some("video::encode")) && !rule.fits("checkout", Some("gc::mark")));
    /// assert!(!rule.fits("checkout", None), "a verdict is about every function");
    /// assert!(GuidanceRule::parse("check* -> team-shop").unwrap().fits("checkout", None));
    /// assert_eq!(GuidanceRule::parse("checkout team-shop"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (subject, value) = text.split_once("->")?;
        let (service, function) = subject.split_once(':').unwrap_or((subject, "*"));
        let [service, function, value] = [service, function, value].map(|part| part.trim().to_owned());
        (!service.is_empty() && !function.is_empty() && !value.is_empty()).then_some(Self { service, function, value })
    }

    /// Whether the rule applies to a function of a service, or to the whole service.
    pub fn fits(&self, service: &str, function: Option<&str>) -> bool {
        fits_pattern(&self.service, service)
            && function.map_or(self.function == "*", |function| fits_pattern(&self.function, function))
    }
}

impl Guidance {
    /// The members that an incident's data gain, each with its value as JSON.
    pub(super) fn members(&self, row: &IncidentRow) -> Vec<(&'static str, String)> {
        let link = [
            ("{service}", row.service.as_str()),
            ("{head}", row.head_build.as_str()),
            ("{base}", row.base_build.as_str()),
            ("{cause}", &row.cause),
            ("{incident}", &row.incident_id),
        ];
        let link = link.iter().fold(self.link.clone(), |url, (name, value)| url.replace(name, &percent_encoded(value)));
        let mut members = self.responsible(&row.service, Some(&row.cause));
        members.push(("link", json!((!link.is_empty()).then_some(link)).to_string()));
        members
    }

    /// Who is responsible for a function of a service, or for the whole of it: members that the data of every alert gain.
    pub(super) fn responsible(&self, service: &Service, function: Option<&str>) -> Vec<(&'static str, String)> {
        let first = |rules: &[GuidanceRule]| {
            let rule = rules.iter().find(|rule| rule.fits(service.as_str(), function));
            json!(rule.map(|rule| &rule.value)).to_string()
        };
        vec![("owner", first(&self.owners)), ("runbook", first(&self.runbooks))]
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
pub fn fits_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_suffix(end) else { return false };
    for part in middle.split('*') {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::fits_pattern;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [("*", ""), ("*", "f"), ("a*", "a"), ("a*c", "abc"), ("*b*", "abc"), ("a*b*c", "axbxbc")]
        {
            assert!(fits_pattern(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*a", "a"), ("*b*", "ac"), ("a*b*c", "abb"), ("", "a")] {
            assert!(!fits_pattern(pattern, text), "{pattern} {text}");
        }
    }
}
