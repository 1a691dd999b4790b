//! Signals that end a command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::failure::Failure;

/// Set by SIGINT or SIGTERM; a second one ends the program at once.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // NB: in this order, so that the first signal does not see the flag that it sets itself.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
