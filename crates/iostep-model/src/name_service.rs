//! Where the C library looks up the names of users and hosts: its name service switch, NSS.

/// Keeps a program with the GNU C library inside to the sources that are inside, too: files, and for
/// hosts DNS. The others that nsswitch.conf(5) may name are libraries for the C library that is
/// installed, and load that beside the one inside: together they may crash (glibc's FAQ on linking
/// statically). Other programs are left as they are.
///
/// To be called before a name is looked up, while no other thread looks one up; again is of no effect.
pub fn use_sources_inside() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    inside::choose();
}

#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod inside {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::Once;

    /// glibc has `dns` inside since 2.34.
    const SOURCES: [(&CStr, &CStr); 4] = [
        (c"passwd", c"files"),
        (c"group", c"files"),
        (c"initgroups", c"files"),
        (c"hosts", c"files dns"),
    ];

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }

    pub(super) fn choose() {
        static CHOSEN: Once = Once::new();
        CHOSEN.call_once(|| {
            for (database, sources) in SOURCES {
                // SAFETY: it copies both strings, and no other thread looks a name up.
                unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
            }
        });
    }
}
