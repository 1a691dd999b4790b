//! Which failures of a server pass, and how long they are waited for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleetdiff_connectors::pull::PullError;

use super::super::wait;
use super::super::warnings::Warnings;

/// How long is waited for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often a request is repeated that the server failed at.
const TRIES: u32 = 3;
/// From one attempt to the next: this at first, then twice as long each time. Tests do not wait.
const FIRST: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(1) };
const LONGEST: Duration = Duration::from_secs(30);

/// Whether a failure is none of the request: nobody answers, or a server is busy or begins anew.
pub(super) fn is_of_server(fault: &PullError) -> bool {
    match fault {
        PullError::Silence(_) | PullError::Cut(_) => true,
        PullError::Refused { status, .. } => matches!(status, 429 | 502..=504),
        PullError::TooLarge(_) | PullError::Foreign(_) => false,
    }
}

/// Asks again and again while the failure may pass, and gives the last answer.
pub(super) fn patiently<T>(
    stop: &AtomicBool,
    warnings: &Warnings,
    mut ask: impl FnMut() -> Result<T, PullError>,
) -> Result<T, PullError> {
    let (begun, mut pause, mut tries) = (Instant::now(), FIRST, 1);
    loop {
        let fault = match ask() {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        let is_repeated = matches!(fault, PullError::Refused { status: 500, .. }) && tries < TRIES;
        let is_waited_for = is_of_server(&fault) && begun.elapsed() < PATIENCE;
        if !(is_repeated || is_waited_for) || stop.load(Ordering::Relaxed) {
            return Err(fault);
        }
        warnings.once(format!("Pyroscope gave no answer, and is asked again: {fault}"));
        wait(pause, || stop.load(Ordering::Relaxed));
        (pause, tries) = (LONGEST.min(pause * 2), tries + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_asked_again_and_nothing_else() {
        let refused = |status| PullError::Refused { status, excerpt: String::new() };
        let tries = |faults: &[PullError]| {
            let (stop, warnings) = (AtomicBool::new(false), Warnings::default());
            let mut asked = 0;
            let answer = patiently(&stop, &warnings, || {
                asked += 1;
                faults.get(asked - 1).cloned().map_or(Ok(()), Err)
            });
            (asked, answer.is_ok())
        };
        assert_eq!(tries(&[refused(503), PullError::Silence("refused".to_owned())]), (3, true));
        assert_eq!(tries(&[refused(401)]), (1, false));
        assert_eq!(tries(&[refused(500), refused(500), refused(500), refused(500)]), (3, false));
    }
}
