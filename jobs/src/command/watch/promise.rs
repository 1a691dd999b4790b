//! The expected number of false alerts of a configuration.

use std::time::Duration;

use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::time::Nanos;

use crate::configuration::Setting;

/// Seconds of a week.
const WEEK: f64 = 604_800.0;

/// The expected number if nothing changed, in words: comparisons x epochs x q.
///
/// An epoch of a comparison is one family of the live rule, over all its cells, types and kinds, and raises any flag falsely with
/// probability at most q, however often it is looked at (e-BH). Each new epoch is a new chance. How many comparisons are open is
/// known only for a named one.
pub(crate) fn false_alerts(config: &Config) -> String {
    let (q, epoch) = (config.q, length(config.epoch));
    let a_week = q * epochs_a_week(config.epoch);
    let open = match &config.comparing {
        Comparing::Named { .. } => {
            format!("{} a week for the one comparison named here, if it is open all week", number(a_week))
        }
        Comparing::Rings(rings) => {
            let pairs = rings.len().saturating_mul(2).saturating_sub(3);
            let all = (1..=pairs).map(|_| a_week).sum();
            format!(
                "{} a week for the {pairs} comparisons between the rings named here, if all are open all week",
                number(all)
            )
        }
        Comparing::Deploys => {
            format!(
                "{} a week for each comparison that is open all week, {} for each deploy that is over within {epoch}",
                number(a_week),
                number(q)
            )
        }
    };
    format!(
        "false alerts expected where nothing changed: at most {open} (an epoch of {epoch} of a comparison, with all its cells, types and kinds, raises any with probability q = {q})"
    )
}

fn epochs_a_week(epoch: Nanos) -> f64 {
    let seconds = u64::try_from(epoch.0).map_or(0.0, |nanos| Duration::from_nanos(nanos).as_secs_f64());
    WEEK / seconds
}

fn length(length: Nanos) -> String {
    length.to_json().as_str().unwrap_or_default().to_owned()
}

/// Two significant digits.
fn number(expected: f64) -> String {
    let rounded = format!("{expected:.1e}").parse::<f64>().unwrap_or(expected);
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_and_q_of_the_configuration_are_multiplied() {
        let text = false_alerts(&Config::default());
        assert!(text.contains("at most 1.4 a week for each comparison that is open all week, 0.05 for each deploy that is over within 6h"), "{text}");
        let config = Config { q: 0.01, epoch: Nanos::from_seconds(86_400), ..Config::default() };
        assert!(false_alerts(&config).contains("at most 0.07 a week for each comparison"), "{}", false_alerts(&config));
        let comparing = Comparing::Named { base: vec!["a".into()], head: "b".into() };
        let text = false_alerts(&Config { comparing, epoch: Nanos::from_seconds(600), ..Config::default() });
        assert!(text.contains("at most 50 a week for the one comparison named here"), "{text}");
        let rings = Comparing::Rings(["a", "b", "c"].map(Into::into).to_vec());
        let text = false_alerts(&Config { comparing: rings, epoch: Nanos::from_seconds(600), ..Config::default() });
        assert!(text.contains("at most 150 a week for the 3 comparisons between the rings named here"), "{text}");
    }
}
