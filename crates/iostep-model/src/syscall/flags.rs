//! Flags of open(2), in bits of our own: O_DIRECT and others differ between architectures.

use serde::{Deserialize, Serialize};

/// A set of flags of open(2), access mode included. In files they go by their names.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct OpenFlags(pub u32);

macro_rules! open_flags {
    ($($name:ident = $bit:expr, $native:expr;)+) => {
        impl OpenFlags {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $name: OpenFlags = OpenFlags(1 << $bit);
            )+
            /// Every single flag with the name that open(2) gives it. `O_SYNC` comes before
            /// `O_DSYNC`, whose bit it includes in the kernel and not here.
            pub const NAMES: &'static [(&'static str, OpenFlags)] = &[
                $((stringify!($name), OpenFlags::$name),)+
            ];
            /// The kernel's value of each flag on this architecture.
            const NATIVE: &'static [(OpenFlags, i32)] = &[$((OpenFlags::$name, $native),)+];
        }
    };
}

open_flags! {
    O_WRONLY = 0, libc::O_WRONLY;
    O_RDWR = 1, libc::O_RDWR;
    O_CREAT = 2, libc::O_CREAT;
    O_EXCL = 3, libc::O_EXCL;
    O_NOCTTY = 4, libc::O_NOCTTY;
    O_TRUNC = 5, libc::O_TRUNC;
    O_APPEND = 6, libc::O_APPEND;
    O_NONBLOCK = 7, libc::O_NONBLOCK;
    O_SYNC = 8, libc::O_SYNC;
    O_DSYNC = 9, libc::O_DSYNC;
    O_ASYNC = 10, libc::O_ASYNC;
    O_DIRECT = 11, libc::O_DIRECT;
    O_LARGEFILE = 12, LARGEFILE;
    O_DIRECTORY = 13, libc::O_DIRECTORY;
    O_NOFOLLOW = 14, libc::O_NOFOLLOW;
    O_NOATIME = 15, libc::O_NOATIME;
    O_CLOEXEC = 16, libc::O_CLOEXEC;
    O_PATH = 17, libc::O_PATH;
    O_TMPFILE = 18, libc::O_TMPFILE;
}

/// What 64-bit kernels add to every open by themselves; libc says 0 there
/// (include/uapi/asm-generic/fcntl.h, arch/arm64/include/uapi/asm/fcntl.h).
const LARGEFILE: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    0o400_000
} else {
    0o100_000
};

impl OpenFlags {
    /// Neither `O_WRONLY` nor `O_RDWR`: `O_RDONLY`.
    pub const NONE: OpenFlags = OpenFlags(0);

    /// From the value that a system call of this architecture takes. Bits without a name are
    /// returned beside.
    pub fn from_native(native: i32) -> (OpenFlags, i32) {
        let mut flags = OpenFlags::NONE;
        let mut rest = native;
        // O_SYNC and O_TMPFILE are several bits, of which O_DSYNC and O_DIRECTORY are one.
        let composite = [OpenFlags::O_SYNC, OpenFlags::O_TMPFILE];
        let whole = Self::NATIVE.iter().filter(|(f, _)| composite.contains(f));
        let single = Self::NATIVE.iter().filter(|(f, _)| !composite.contains(f));
        for &(flag, value) in whole.chain(single) {
            if rest & value == value && value != 0 {
                flags = flags.with(flag);
                rest &= !value;
            }
        }
        (flags, rest)
    }

    /// The value for a system call of this architecture.
    pub fn to_native(self) -> i32 {
        let set = Self::NATIVE.iter().filter(|(flag, _)| self.has(*flag));
        set.fold(0, |native, (_, value)| native | value)
    }

    /// True if every flag of `other` is set.
    pub fn has(self, other: OpenFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
    pub fn with(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 | other.0)
    }

    /// The flags that `other` has not.
    pub fn without(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 & !other.0)
    }

    /// True if data can be written through the descriptor.
    pub fn writes(self) -> bool {
        self.has(Self::O_WRONLY) || self.has(Self::O_RDWR)
    }
}

impl std::fmt::Display for OpenFlags {
    /// As strace writes them: the access mode first, `|` between.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.writes() && !self.has(Self::O_PATH) {
            f.write_str("O_RDONLY")?;
        }
        let mut first = self.writes() || self.has(Self::O_PATH);
        for (name, _) in Self::NAMES.iter().filter(|(_, flag)| self.has(*flag)) {
            if !std::mem::take(&mut first) {
                f.write_str("|")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for OpenFlags {
    /// The name that is none of open(2)'s.
    type Err = String;

    fn from_str(text: &str) -> Result<OpenFlags, String> {
        let mut flags = OpenFlags::NONE;
        for name in text.split('|').filter(|name| *name != "O_RDONLY") {
            let known = Self::NAMES.iter().find(|(known, _)| *known == name);
            flags = flags.with(known.ok_or_else(|| name.to_owned())?.1);
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_native_values_read_back() {
        for (_, flag) in OpenFlags::NAMES {
            assert_eq!(OpenFlags::from_native(flag.to_native()), (*flag, 0));
            assert_eq!(flag.to_string().parse(), Ok(*flag), "{flag}");
        }
        let many = OpenFlags::from_native(libc::O_RDWR | libc::O_CREAT | libc::O_SYNC);
        assert_eq!(many.0.to_string(), "O_RDWR|O_CREAT|O_SYNC");
        assert_eq!(OpenFlags::NONE.to_string(), "O_RDONLY");
        assert_eq!(
            "O_RDONLY|O_MAGIC".parse::<OpenFlags>(),
            Err("O_MAGIC".into())
        );
        assert_eq!(OpenFlags::from_native(1 << 29).1, 1 << 29);
    }
}
