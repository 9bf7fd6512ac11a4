//! Parallel work whose results do not depend on the number of threads.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// More threads than this help on no machine.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The number of threads to use: the number that the caller asked for, or one per core available to this process.
///
/// Asking the system takes a few microseconds, so a kernel asks once and passes the answer on.
pub(crate) fn resolve(wish: Option<NonZeroUsize>) -> NonZeroUsize {
    wish.or_else(|| thread::available_parallelism().ok())
        .map_or(NonZeroUsize::MIN, |threads| threads.min(MOST_THREADS))
}

/// `[task(0), task(1), ..., task(count - 1)]`, computed by at most `threads` threads.
///
/// Threads take tasks one by one, so a slow task does not delay the others. A task's result must depend only on its
/// number; then the answer is the same for every number of threads.
pub(crate) fn map<R: Send>(
    count: usize,
    threads: NonZeroUsize,
    task: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let Ok(results) = try_map(count, threads, |number, (): &mut ()| {
        Ok::<R, Infallible>(task(number))
    });
    results
}

/// Like [`map`], for tasks that can fail and that reuse buffers: each thread has its own `S`.
///
/// # Errors
/// The error of the failed task with the lowest number. No task starts after an error.
pub(crate) fn try_map<S: Default, R: Send, E: Send>(
    count: usize,
    threads: NonZeroUsize,
    task: impl Fn(usize, &mut S) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let workers = threads.get().min(count);
    if workers <= 1 {
        let mut state = S::default();
        return (0..count).map(|number| task(number, &mut state)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || drain(&next, count, &task);
    let mut done = thread::scope(|scope| {
        // If the system refuses to start a thread, the threads that did start do its work.
        let others: Vec<_> = (1..workers)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    // Tasks start in the order of their numbers, so every task before the first error has a result.
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Calls `task(number, chunk)` for every chunk of `size` values of `values`, on at most `threads` threads.
pub(crate) fn for_each_chunk<T: Send>(
    values: &mut [T],
    size: usize,
    threads: NonZeroUsize,
    task: impl Fn(usize, &mut [T]) + Sync,
) {
    let chunks: Vec<Mutex<&mut [T]>> = values.chunks_mut(size).map(Mutex::new).collect();
    map(chunks.len(), threads, |number| {
        let mut chunk = chunks[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        task(number, &mut chunk);
    });
}

/// Runs tasks until none is left or one has failed.
fn drain<S: Default, R, E>(
    next: &AtomicUsize,
    count: usize,
    task: impl Fn(usize, &mut S) -> Result<R, E>,
) -> Vec<(usize, Result<R, E>)> {
    let mut done = Vec::new();
    let mut state = S::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return done;
        }
        let result = task(number, &mut state);
        if result.is_err() {
            next.store(count, Ordering::Relaxed);
        }
        done.push((number, result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [usize; 6] = [1, 2, 3, 7, 200, 100_000];

    fn threads(count: usize) -> NonZeroUsize {
        resolve(NonZeroUsize::new(count))
    }

    #[test]
    fn results_come_in_task_order_for_any_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|i| i * i).collect();
        for count in COUNTS {
            assert_eq!(map(100, threads(count), |i| i * i), expected);
        }
    }

    #[test]
    fn a_thread_keeps_its_state_from_task_to_task() {
        for count in COUNTS {
            let done = try_map(50, threads(count), |task, seen: &mut Vec<usize>| {
                seen.push(task);
                assert!(seen.is_sorted());
                Ok::<_, Infallible>(seen.len())
            });
            let Ok(done) = done;
            assert!(count > 1 || done.is_sorted());
        }
    }

    #[test]
    fn the_failed_task_with_the_lowest_number_gives_the_error() {
        for count in COUNTS {
            let failed = try_map(50, threads(count), |task, (): &mut ()| match task {
                0..20 => Ok(()),
                _ => Err(task),
            });
            assert_eq!(failed, Err(20));
        }
    }

    #[test]
    fn every_chunk_is_visited_once() {
        let mut values = [0; 10];
        for_each_chunk(&mut values, 4, threads(3), |number, chunk| {
            chunk.iter_mut().for_each(|v| *v += number + 1)
        });
        assert_eq!(values, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn no_tasks_give_no_results() {
        assert!(map(0, threads(4), |i| i).is_empty());
    }

    #[test]
    fn there_is_always_a_thread_and_never_more_than_help() {
        assert!(resolve(None).get() >= 1);
        assert_eq!(threads(1_000_000), MOST_THREADS);
    }
}
