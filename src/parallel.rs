//! Work on all cores.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

static RUNNING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static ENDED: Condvar = Condvar::new();

/// The results of `work` on each item, in the order of the items. There are at most as many threads
/// as this process may use cores. Where the system refuses a thread, the others do its work.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    on(cores().min(items.len()), items, work)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Work that has a core until it is dropped.
pub struct Work {
    name: String,
}

/// Waits for a core, and for the end of work of the same name. All that asks for one in this process shares
/// the cores.
pub fn core_for(name: String) -> Work {
    let waits =
        |running: &mut BTreeSet<String>| running.len() >= cores() || running.contains(&name);
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let running = ENDED.wait_while(running, waits);
    let mut running = running.unwrap_or_else(PoisonError::into_inner);
    running.insert(name.clone());
    Work { name }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&self.name);
        ENDED.notify_all();
    }
}

/// The results of two pieces of work that are done at once, or one after the other.
pub fn both<A: Send, B>(
    at_once: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if !at_once {
        return (first(), second());
    }
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        (
            first.join().unwrap_or_else(|panic| resume_unwind(panic)),
            second,
        )
    })
}

/// The same with a thread for each item.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    on(items.len(), items, work)
}

/// The same with a number of threads.
fn on<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, take).ok())
            .collect();
        let mut all = take();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_results_have_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled: Vec<usize> = items.iter().map(|item| 2 * item).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(on(threads, &items, |item| 2 * item), doubled);
        }
        assert_eq!(map(&items, |item| 2 * item), doubled);
        assert!(map(&[0_u8; 0], |item| *item).is_empty());
    }

    #[test]
    fn as_many_threads_work_as_are_asked_for() {
        // Each item waits until another thread works on another item.
        let both = Barrier::new(2);
        let threads = on(2, &[0, 1], |_| {
            both.wait();
            thread::current().id()
        });
        assert_eq!(HashSet::<_>::from_iter(threads).len(), 2);
    }

    #[test]
    fn work_of_one_name_is_done_by_one_at_a_time() {
        let at_work = AtomicUsize::new(0);
        let work = |_: &i32| {
            let _core = core_for("the same".to_owned());
            assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
            thread::yield_now();
            at_work.fetch_sub(1, Ordering::SeqCst);
        };
        assert_eq!(on(8, &[0; 100], work).len(), 100);
    }

    #[test]
    fn two_pieces_of_work_are_done_at_once_where_that_is_asked_for() {
        // Each waits for the other one.
        let meet = Barrier::new(2);
        assert!(both(true, || meet.wait().is_leader(), || meet.wait().is_leader()) != (true, true));
        let order = AtomicUsize::new(0);
        let next = || order.fetch_add(1, Ordering::SeqCst);
        assert_eq!(both(false, next, next), (0, 1));
    }

    #[test]
    #[should_panic(expected = "of an item")]
    fn a_panic_is_passed_on() {
        let both = Barrier::new(2);
        on(2, &[false, true], |panics| {
            both.wait();
            assert!(!panics, "of an item");
        });
    }
}
