//! Panics of a library on forged files, as errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `body`; nothing if it panics, which is then not reported on standard error either.
///
/// Panics of other threads, and those outside of `body`, go to the hook that was there before.
pub(super) fn catch<T>(body: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                hook(info);
            }
        }));
    });
    QUIET.set(true);
    // Whatever `body` was making is dropped with the panic.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    QUIET.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_the_next_call_is_as_before() {
        assert_eq!(catch(|| -> u8 { panic!("on purpose") }), None);
        assert!(!QUIET.get());
        assert_eq!(catch(|| 7), Some(7));
    }
}
