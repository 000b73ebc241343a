//! Another user for a recorded command.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use iostep_model::name_service;
use iostep_model::rights::way_to_capabilities;

use crate::error::{Error, Result};
use crate::rights::{USER, give_up_all, missing_rights};

/// Room for an entry of the user database; it grows until it is enough.
const ENTRY_BYTES: usize = 1 << 12;
const MOST_ENTRY_BYTES: usize = 1 << 24;
/// `NGROUPS_MAX` (include/uapi/linux/limits.h).
const MOST_GROUPS: usize = 1 << 16;

/// A user of this machine, with all their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: OsString,
    home: OsString,
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

impl User {
    /// Looks a user up, whom this process must be able to become.
    ///
    /// Errors: `Usage` without such a user; `Unsupported` without the rights; `Io`.
    pub fn named(name: &str) -> Result<User> {
        let object = || format!("--user {name}");
        let missing = || Error::usage(object(), "there is no such user");
        let wanted = CString::new(name).map_err(|_| missing())?;
        let user = look_up(&wanted).map_err(Error::io(object(), "look up"))?;
        let user = user.ok_or_else(missing)?;
        match missing_rights(&USER) {
            None => Ok(user),
            Some(rights) => Err(Error::unsupported(
                object(),
                format!(
                    "no right to become another user: {rights} missing; {}",
                    way_to_capabilities()
                ),
            )),
        }
    }

    /// The names of [`User::environment`].
    pub const VARIABLES: [&'static str; 3] = ["HOME", "USER", "LOGNAME"];

    /// What is different in the environment of this user's programs.
    pub fn environment(&self) -> [(&'static str, &OsStr); 3] {
        let [home, user, login] = User::VARIABLES;
        [(home, &self.home), (user, &self.name), (login, &self.name)]
    }

    /// The calling process becomes this user, without any capability. Makes only system calls, so
    /// that it is safe between fork and exec.
    ///
    /// Errors: the kernel's.
    pub fn enter(&self) -> io::Result<()> {
        let (groups, count) = (self.groups.as_ptr(), self.groups.len());
        let (user, group) = (self.user, self.group);
        // The C library's own functions would ask the other threads, which are not in a child.
        // SAFETY: the kernel reads as many groups as there are.
        check(unsafe { libc::syscall(libc::SYS_setgroups, count, groups) })?;
        // SAFETY: these take numbers and touch no memory.
        check(unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) })?;
        // SAFETY: as above.
        check(unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) })?;
        Ok(give_up_all()?)
    }
}

fn check(returned: libc::c_long) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn look_up(name: &CStr) -> io::Result<Option<User>> {
    name_service::use_sources_inside();
    let mut bytes = ENTRY_BYTES;
    loop {
        let mut text: Vec<c_char> = vec![0; bytes];
        let mut found = ptr::null_mut();
        // SAFETY: a passwd of zeros is one, and it lives as long as what is written to it.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        // SAFETY: all pointers are good, and the length is the buffer's.
        let failed = unsafe {
            let (text, found) = (text.as_mut_ptr(), &raw mut found);
            libc::getpwnam_r(name.as_ptr(), &raw mut entry, text, bytes, found)
        };
        match failed {
            0 if found.is_null() => return Ok(None),
            0 => {}
            libc::ERANGE if bytes < MOST_ENTRY_BYTES => {
                bytes *= 2;
                continue;
            }
            // What a name that is not there gives, depending on where it is looked for.
            libc::ENOENT | libc::ESRCH => return Ok(None),
            failed => return Err(io::Error::from_raw_os_error(failed)),
        }
        // SAFETY: the function succeeded, so this is a string in `text`.
        let home = unsafe { CStr::from_ptr(entry.pw_dir) };
        return Ok(Some(User {
            name: OsStr::from_bytes(name.to_bytes()).to_owned(),
            home: OsStr::from_bytes(home.to_bytes()).to_owned(),
            user: entry.pw_uid,
            group: entry.pw_gid,
            groups: groups_of(name, entry.pw_gid)?,
        }));
    }
}

fn groups_of(name: &CStr, group: u32) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = i32::try_from(groups.len()).unwrap_or(i32::MAX);
        // SAFETY: there is room for as many groups as it is told.
        let all = unsafe {
            let groups = groups.as_mut_ptr();
            libc::getgrouplist(name.as_ptr(), group, groups, &raw mut count)
        };
        if all >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups);
        }
        if groups.len() >= MOST_GROUPS {
            return Err(io::Error::other("the user is in too many groups"));
        }
        groups.resize(groups.len() * 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_with_the_own_group_and_nobody_else_is() {
        let root = look_up(c"root").expect("a database").expect("root");
        assert_eq!((root.user, root.group), (0, 0));
        assert!(root.groups.contains(&0));
        let environment = root.environment();
        assert_eq!(environment[1], ("USER", OsStr::new("root")));
        assert_eq!(look_up(c"no such user").expect("a database"), None);
        let error = User::named("no such user").expect_err("nobody");
        assert_eq!(
            error.to_string(),
            "--user no such user: there is no such user"
        );
    }
}
