//! Moments as perf writes them and takes them: seconds with a fraction, of the file's own clock.

const SECOND: i64 = 1_000_000_000;

/// `seconds.fraction` as nanoseconds; at most nine digits behind the point.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let places = u32::try_from(9 - fraction.len()).ok()?;
    let fraction = fraction.parse::<i64>().ok()? * 10i64.pow(places);
    seconds.parse::<i64>().ok()?.checked_mul(SECOND)?.checked_add(fraction)
}
