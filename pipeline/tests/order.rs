//! The same rows whenever the records are read again, with the decisions of an earlier run: partitions that are added, idle or give only what
//! is refused. (`order_schedules` draws what happens at random.)

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "order/added.rs"]
mod added;
#[path = "order/idle.rs"]
mod idle;
#[path = "support/log.rs"]
mod log;
#[path = "order/refused.rs"]
mod refused;
