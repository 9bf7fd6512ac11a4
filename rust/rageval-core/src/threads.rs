//! Work shared out over threads, with results that do not depend on how many there are.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// No machine gains from more.
pub(crate) const MOST_THREADS: usize = 1024;

/// The number of threads to use: the caller's wish, or one per core this process may run on.
pub(crate) fn resolve(wish: Option<NonZeroUsize>) -> usize {
    wish.or_else(|| thread::available_parallelism().ok())
        .map_or(1, |threads| threads.get().min(MOST_THREADS))
}

/// `[task(0), task(1), ..., task(count - 1)]`, computed by at most `threads` threads.
///
/// Tasks are handed out one by one, so a slow one holds nobody up. What a task returns must depend
/// on its number alone; then the answer is the same for every number of threads.
pub(crate) fn map<R: Send>(
    count: usize,
    threads: usize,
    task: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let workers = threads.min(count);
    if workers <= 1 {
        return (0..count).map(task).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || drain(&next, count, &task);
    let mut done = thread::scope(|scope| {
        // Where the system refuses a thread, those there are do its work.
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
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Calls `task(number, chunk)` for every chunk of `size` values of `values`, on at most `threads` threads.
pub(crate) fn for_each_chunk<T: Send>(
    values: &mut [T],
    size: usize,
    threads: usize,
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

fn drain<R>(next: &AtomicUsize, count: usize, task: impl Fn(usize) -> R) -> Vec<(usize, R)> {
    let mut done = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return done;
        }
        done.push((number, task(number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_task_order_for_any_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|i| i * i).collect();
        for threads in [0, 1, 2, 3, 200] {
            assert_eq!(map(100, threads, |i| i * i), expected);
        }
    }

    #[test]
    fn every_chunk_is_visited_once() {
        let mut values = [0; 10];
        for_each_chunk(&mut values, 4, 3, |number, chunk| {
            chunk.iter_mut().for_each(|v| *v += number + 1)
        });
        assert_eq!(values, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn no_tasks_give_no_results() {
        assert!(map(0, 4, |i| i).is_empty());
    }
}
