//! What functions of the kernel were in: the names of these say little to whoever does not write kernels, so the functions outside the
//! kernel that called them are named too.

use fleetdiff_schemas::profile::{function_and_thread, is_of_kernel};

/// How a caller is listed in what moves with a cause.
const TOTAL: &str = " (total)";

/// The functions outside the kernel that move with a cause inside it, by name; none of another cause. `explains` is what moves with it,
/// such as `fdatasync (total)`. The thread of the cause is not said again.
///
/// ```
/// use fleetdiff_pipeline::rules::kernel::callers_outside;
///
/// let explains = ["do_fsync_[k] @ main (total)", "fdatasync @ main (total)", "poll (share)"].map(str::to_owned);
/// assert_eq!(callers_outside("__schedule_[k] @ main", &explains), ["fdatasync"]);
/// assert!(callers_outside("encode", &explains).is_empty());
/// ```
pub fn callers_outside(cause: &str, explains: &[String]) -> Vec<String> {
    if !is_of_kernel(cause) {
        return Vec::new();
    }
    let thread = function_and_thread(cause).1;
    let callers = explains.iter().filter_map(|name| name.strip_suffix(TOTAL)).filter(|name| !is_of_kernel(name));
    let named = callers.map(|name| match function_and_thread(name) {
        (function, of) if of == thread => function.to_owned(),
        _ => name.to_owned(),
    });
    named.collect()
}
