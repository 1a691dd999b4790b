//! Work on numbered items that is done ahead on threads, and taken in the order of the numbers.
//!
//! What was taken is the same with any number of threads, if the work on an item depends on that item alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Results that may wait, for each thread. They bridge the time in which the one who takes them does something else.
const WAITING: usize = 32;

/// Bytes of results that may wait; a larger one waits alone.
const ROOM: usize = 32 << 20;

/// Threads at work, and what they have done. They end with it.
pub(super) struct Ahead<T> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<T> {
    progress: Mutex<Progress<T>>,
    changed: Condvar,
}

struct Progress<T> {
    /// How many items there are.
    items: usize,
    /// The item that a thread begins next.
    next: usize,
    /// The item that is taken next.
    taken: usize,
    /// Items that are done, with their sizes.
    done: BTreeMap<usize, (T, usize)>,
    /// The sum of these sizes.
    bytes: usize,
    /// How many results may wait.
    waiting: usize,
    /// Whether nobody wants any more, or a thread has failed.
    is_over: bool,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts a thread for each of `workers`, which gives the result of an item and about how many bytes it takes.
    pub(super) fn start<W>(items: usize, workers: impl IntoIterator<Item = W>) -> Self
    where
        W: FnMut(usize) -> (T, usize) + Send + 'static,
    {
        let workers: Vec<W> = workers.into_iter().collect();
        let waiting = workers.len() * WAITING;
        let progress = Progress { items, next: 0, taken: 0, done: BTreeMap::new(), bytes: 0, waiting, is_over: false };
        let shared = Arc::new(Shared { progress: Mutex::new(progress), changed: Condvar::new() });
        let start = |worker| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(worker))
        };
        let threads = workers.into_iter().map(start).collect();
        Self { shared, threads }
    }

    /// The result of the next item; nothing after the last one. Waits for it.
    ///
    /// # Panics
    /// As the work itself, if a thread did.
    pub(super) fn take(&mut self) -> Option<T> {
        let mut progress = self.shared.lock();
        loop {
            if let Some(done) = progress.take() {
                drop(progress);
                self.shared.changed.notify_all();
                return Some(done);
            }
            if progress.is_over {
                drop(progress);
                self.join();
                return None;
            }
            if progress.taken == progress.items {
                return None;
            }
            progress = self.shared.wait(progress);
        }
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            // NB: a panic of a thread is passed on by `take`; here nobody waits for what it would have given.
            drop(thread.join());
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, Progress<T>>) -> MutexGuard<'a, Progress<T>> {
        self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    fn work(&self, mut worker: impl FnMut(usize) -> (T, usize)) {
        let _ends = EndsOnPanic(self);
        while let Some(item) = self.begin() {
            let (result, bytes) = worker(item);
            self.lock().finish(item, result, bytes);
            self.changed.notify_all();
        }
    }

    /// The next item to work on, once there is room for its result.
    fn begin(&self) -> Option<usize> {
        let mut progress = self.lock();
        loop {
            if progress.is_over || progress.next == progress.items {
                return None;
            }
            if progress.has_room() {
                let item = progress.next;
                progress.next += 1;
                return Some(item);
            }
            progress = self.wait(progress);
        }
    }
}

impl<T> Progress<T> {
    fn has_room(&self) -> bool {
        let begun = self.next - self.taken;
        begun == 0 || (begun < self.waiting && self.bytes < ROOM)
    }

    fn finish(&mut self, item: usize, result: T, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.done.insert(item, (result, bytes));
    }

    fn take(&mut self) -> Option<T> {
        let (result, bytes) = self.done.remove(&self.taken)?;
        self.taken += 1;
        self.bytes -= bytes;
        Some(result)
    }
}

/// Ends all threads if one panics.
struct EndsOnPanic<'a, T>(&'a Shared<T>);

impl<T> Drop for EndsOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn squares(threads: usize, items: usize, bytes: usize) -> Vec<usize> {
        let workers = (0..threads).map(|thread| {
            move |item: usize| {
                // Items take unequal times, so that they are done out of order.
                thread::sleep(Duration::from_micros(u64::try_from((item * 7 + thread) % 5 * 40).unwrap()));
                (item * item, bytes)
            }
        });
        let mut ahead = Ahead::start(items, workers);
        std::iter::from_fn(|| ahead.take()).collect()
    }

    #[test]
    fn order_of_items_is_kept_with_any_number_of_threads() {
        let expected: Vec<usize> = (0..300).map(|item| item * item).collect();
        for threads in [1, 2, 5] {
            for bytes in [0, ROOM / 3, ROOM + 1] {
                assert_eq!(squares(threads, 300, bytes), expected, "{threads} threads, {bytes} bytes");
            }
        }
        assert!(squares(2, 0, 1).is_empty());
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes() {
        for (bytes, most) in [(0, 2 * WAITING), (ROOM / 4, 4 + 2), (2 * ROOM, 1 + 2)] {
            let begun = Arc::new(AtomicUsize::new(0));
            let workers = (0..2).map(|_| {
                let begun = Arc::clone(&begun);
                move |item: usize| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    (item, bytes)
                }
            });
            let mut ahead = Ahead::start(1_000, workers);
            for taken in 0..50 {
                assert_eq!(ahead.take(), Some(taken));
                thread::sleep(Duration::from_millis(1));
                let waiting = begun.load(Ordering::SeqCst) - taken - 1;
                assert!(waiting <= most, "{waiting} of {bytes} bytes wait, at most {most}");
            }
            drop(ahead);
            assert!(begun.load(Ordering::SeqCst) <= 50 + most);
        }
    }

    #[test]
    fn a_panic_reaches_the_one_who_takes() {
        let workers = (0..3).map(|_| |item: usize| if item == 40 { panic!("item 40") } else { (item, 0) });
        let mut ahead = Ahead::start(100, workers);
        let taken =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| std::iter::from_fn(|| ahead.take()).count()));
        assert_eq!(taken.unwrap_err().downcast_ref::<&str>(), Some(&"item 40"));
    }
}
