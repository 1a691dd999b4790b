//! The options of `pull` that are of Pyroscope alone.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::Args;
use fleetdiff_connectors::pull::pyroscope::{Credentials, PodLabels, Query};
use fleetdiff_connectors::receivers::Secret;
use fleetdiff_formats::Period;
use fleetdiff_formats::identity::instant;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::time::Nanos;

use crate::failure::Failure;
use crate::ranges::length;
use crate::secrets;

/// What is asked of a target pyroscope:URL, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Profiles that Pyroscope has stored (target pyroscope:URL)")]
pub(crate) struct PyroscopeArgs {
    /// Whose profiles, by labels as Pyroscope selects them: '{service_name="shop", namespace="prod"}' [default: all]
    #[arg(long, value_name = "SELECTOR", value_parser = |text: &str| Query::of(text).map_err(|fault| fault.to_string()))]
    pub(crate) query: Option<Query>,
    /// Label that names a part of the identity (service, build, region, cohort, hardware, node, pod), as in build=app_version; may be repeated
    #[arg(long, value_name = "PART=LABEL", value_parser = pair)]
    pub(crate) label: Vec<(String, String)>,
    /// Where to begin, in RFC 3339, or from the present as in now-2h [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) from: Option<Nanos>,
    /// Where to end, written as --from [default: follow what comes]
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "lasts")]
    pub(crate) until: Option<Nanos>,
    /// How long after its end a slice of --every is asked for, so that all of it has arrived
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = length)]
    pub(crate) delay: Nanos,
    /// From one sample of the processor to the next, where times are stored and no samples, as in 10ms [default: as the values show]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| text.parse::<Period>())]
    pub(crate) period: Option<Period>,
    /// Tenant, sent as X-Scope-OrgID
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// User of basic authentication
    #[arg(long, value_name = "NAME", requires = "password", conflicts_with = "token")]
    pub(crate) user: Option<String>,
    /// File with the password of --user
    #[arg(long, value_name = "FILE", group = "password", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    /// Variable of the environment with the password of --user, in place of a file
    #[arg(long, value_name = "VARIABLE", group = "password", requires = "user")]
    pub(crate) password_env: Option<String>,
    /// File with the token of the header Authorization: Bearer
    #[arg(long, value_name = "FILE", group = "token")]
    pub(crate) bearer_token_file: Option<PathBuf>,
    /// Variable of the environment with that token, in place of a file
    #[arg(long, value_name = "VARIABLE", group = "token")]
    pub(crate) bearer_token_env: Option<String>,
}

impl PyroscopeArgs {
    /// The first option that was given and means nothing without Pyroscope.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--query", self.query.is_some()),
            ("--label", !self.label.is_empty()),
            ("--from", self.from.is_some()),
            ("--until", self.until.is_some()),
            ("--period", self.period.is_some()),
            ("--tenant", self.tenant.is_some()),
            ("--user", self.user.is_some()),
            ("--bearer-token-file", self.bearer_token_file.is_some()),
            ("--bearer-token-env", self.bearer_token_env.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Which labels name which part of an identity.
    pub(super) fn labels(&self, otherwise: Identity) -> Result<PodLabels, Failure> {
        let mut labels = PodLabels::new(otherwise);
        for (part, label) in &self.label {
            if !labels.set(part, label) {
                let parts = PodLabels::PARTS.map(|(part, _)| part).join(", ");
                return Err(Failure::usage(
                    format!("{part} is no part of an identity"),
                    format!("the parts are {parts}"),
                ));
            }
        }
        Ok(labels)
    }

    /// Who asks, with what files and the environment hold.
    pub(super) fn credentials(&self) -> Result<Credentials, Failure> {
        let password = secret(self.password_file.as_deref(), self.password_env.as_deref())?;
        let token = secret(self.bearer_token_file.as_deref(), self.bearer_token_env.as_deref())?;
        let basic = self.user.as_deref().zip(password).map(|(user, password)| Credentials::basic(user, &password));
        let authorization = basic.or_else(|| token.map(|token| token.with_prefix("Bearer ")));
        Ok(Credentials { authorization, tenant: self.tenant.clone() })
    }
}

fn secret(file: Option<&Path>, variable: Option<&str>) -> Result<Option<Secret>, Failure> {
    let found = match (file, variable) {
        (Some(path), _) => secrets::of_file(path).map_err(|refusal| (refusal, "give a file that holds the secret")),
        (None, Some(name)) => {
            secrets::of_variable(name).map_err(|refusal| (refusal, "export it, or give the secret in a file"))
        }
        (None, None) => return Ok(None),
    };
    found.map(Some).map_err(|(refusal, hint)| Failure::usage(refusal, hint))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(part, label)| !part.is_empty() && !label.is_empty());
    pair.map(|(part, label)| (part.to_owned(), label.to_owned())).ok_or_else(|| "expected PART=LABEL".to_owned())
}

/// What `now` means: the same in all options.
static NOW: LazyLock<Nanos> = LazyLock::new(super::super::now);

/// A moment, to the millisecond below it, as Pyroscope takes them.
fn moment(text: &str) -> Result<Nanos, String> {
    let expected = || "expected a time such as 2026-03-01T12:00:00Z, now or now-2h".to_owned();
    let at = match text.trim().strip_prefix("now") {
        None => instant::parse(text).filter(|_| text.contains('T')).ok_or_else(expected)?,
        Some("") => *NOW,
        Some(back) => {
            let back = back.strip_prefix('-').and_then(|back| length(back).ok()).ok_or_else(expected)?;
            NOW.since(back)
        }
    };
    Ok(Nanos(at.0.div_euclid(1_000_000) * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_before_now() {
        assert_eq!(moment("1970-01-01T00:00:01.0019Z"), Ok(Nanos(1_001_000_000)));
        let two_hours = moment("now").unwrap().since(moment("now-2h").unwrap());
        assert_eq!(two_hours, Nanos::from_seconds(7_200));
        for wrong in ["now+1h", "yesterday", "1700000000000", "now-"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
