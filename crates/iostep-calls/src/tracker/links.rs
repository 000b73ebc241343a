//! Links of /proc that lead to what a process has open, and to where it is.
//!
//! The kernel follows them to the file itself and not by a path (fs/proc/base.c,
//! `proc_pid_get_link`; fs/proc/fd.c, `proc_fd_link`): the file may have lost its name, or never had
//! one. `/dev/fd`, `/dev/stdin` and the like are symbolic links to them on every system.

use iostep_model::syscall::raw::{Descriptor, DescriptorKind, Path, Returned};
use iostep_model::syscall::{HandleId, PathId};

use super::resolve::{Lead, Wanted};
use super::{At, Stop, Tracker, UNNAMED_DIRECTORY, place};
use crate::sink::Sink;

/// As many links as the kernel follows in one path (`MAXSYMLINKS`, include/linux/namei.h).
const MAX_LINKS: usize = 40;
/// The link is of a process of which nothing is known.
const OF_STRANGER: &str = "link of /proc to another process";

/// Whose link it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Caller,
    CallersProcess,
    Numbered(u32),
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Descriptor(i32),
    CurrentDirectory,
    Root,
    Program,
}

/// A path that begins with such a link.
#[derive(Debug, PartialEq, Eq)]
struct Link<'t> {
    owner: Owner,
    to: To,
    /// What is behind it, with the slash.
    rest: &'t [u8],
}

/// What a path in /proc is.
#[derive(Debug, PartialEq, Eq)]
enum InProc<'t> {
    Link(Link<'t>),
    /// A file or directory of a process: what is behind `/proc/PID`.
    Of(Owner, Vec<u8>),
}

/// Reads an absolute path; none if it is not about a process. What is in /proc has no symbolic links
/// but these, so that `..` is the directory above.
fn parse(path: &[u8]) -> Option<InProc<'_>> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    while let Some(begin) = path[at..].iter().position(|byte| *byte != b'/') {
        let begin = at + begin;
        let length = path[begin..].iter().position(|byte| *byte == b'/');
        at = length.map_or(path.len(), |length| begin + length);
        match &path[begin..at] {
            b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
        match names[..] {
            [b"dev", b"fd"] => names = vec![b"proc", b"self", b"fd"],
            [b"dev", b"stdin"] => names = vec![b"proc", b"self", b"fd", b"0"],
            [b"dev", b"stdout"] => names = vec![b"proc", b"self", b"fd", b"1"],
            [b"dev", b"stderr"] => names = vec![b"proc", b"self", b"fd", b"2"],
            [] | [b"dev" | b"proc", ..] => {}
            _ => return None,
        }
        if let [b"proc", process, below @ ..] = &names[..] {
            let (owner, below) = owner(process, below)?;
            if let Some(to) = link(below) {
                let rest = &path[at..];
                return Some(InProc::Link(Link { owner, to, rest }));
            }
        }
    }
    let [b"proc", process, below @ ..] = &names[..] else {
        return None;
    };
    let (owner, below) = owner(process, below)?;
    let mut rest = Vec::new();
    for name in below {
        rest.push(b'/');
        rest.extend_from_slice(name);
    }
    Some(InProc::Of(owner, rest))
}

/// Whose directory it is, and what is below it.
fn owner<'n, 't>(process: &[u8], below: &'n [&'t [u8]]) -> Option<(Owner, &'n [&'t [u8]])> {
    let owner = match process {
        b"self" => Owner::CallersProcess,
        b"thread-self" => Owner::Caller,
        _ => Owner::Numbered(number(process)?),
    };
    match below {
        [b"task", thread, below @ ..] => Some((Owner::Numbered(number(thread)?), below)),
        _ => Some((owner, below)),
    }
}

fn link(below: &[&[u8]]) -> Option<To> {
    Some(match below {
        [b"fd", number] => To::Descriptor(i32::try_from(self::number(number)?).ok()?),
        [b"cwd"] => To::CurrentDirectory,
        [b"root"] => To::Root,
        [b"exe"] => To::Program,
        _ => return None,
    })
}

/// The kernel takes no other form: `/proc/self/fd/03` is not there (fs/proc/generic.c, `name_to_int`).
fn number(text: &[u8]) -> Option<u32> {
    let plain = text.iter().all(u8::is_ascii_digit) && (text == b"0" || !text.starts_with(b"0"));
    std::str::from_utf8(text)
        .ok()
        .filter(|_| plain)?
        .parse()
        .ok()
}

impl<S: Sink> Tracker<S> {
    /// Where a call's path leads; by name, it is in `self.text`, absolute. `follow`: a link at its end
    /// is followed.
    pub(super) fn lead(
        &mut self,
        at: &At,
        path: &Path<'_>,
        follow: bool,
    ) -> std::result::Result<Lead, Stop> {
        self.absolute(at, path)?;
        for _ in 0..MAX_LINKS {
            if let Some(out) = self.initial.leads_out(&self.text, follow) {
                self.text = out;
            }
            if !self.text.starts_with(b"/proc/") && !self.text.starts_with(b"/dev/") {
                return Ok(Lead::Name);
            }
            let text = std::mem::take(&mut self.text);
            let (owner, below) = match parse(&text) {
                Some(InProc::Link(link)) => {
                    if link.rest.is_empty() && !follow {
                        return Err(Stop::LeftOut(place::reason(DescriptorKind::Kernel)));
                    }
                    if let Some(handle) = self.behind(at, &link)? {
                        return Ok(Lead::Open(handle));
                    }
                    continue;
                }
                Some(InProc::Of(owner, below)) => (owner, below),
                None => {
                    self.text = text;
                    return Ok(Lead::Name);
                }
            };
            // Who else comes to it, by fork or through a descriptor, is not the caller.
            self.text = match self.owner(at, owner) {
                Some(tid) => [format!("/proc/{tid}").as_bytes(), &below].concat(),
                None => text,
            };
            return Ok(Lead::Name);
        }
        Err(Stop::LeftOut(place::reason(DescriptorKind::Kernel)))
    }

    /// Follows one link. If that leads to a name, it is in `self.text`.
    fn behind(&mut self, at: &At, link: &Link<'_>) -> std::result::Result<Option<HandleId>, Stop> {
        let tid = self
            .owner(at, link.owner)
            .ok_or(Stop::LeftOut(OF_STRANGER))?;
        let below = link.rest.iter().position(|byte| *byte != b'/');
        let below = below.map_or(&b""[..], |begin| &link.rest[begin..]);
        let mut text = Vec::new();
        match link.to {
            To::Root => {
                let slot = self.task(tid).directory;
                place::join(
                    self.tasks.directories[slot].root_or_slash(),
                    below,
                    &mut text,
                );
            }
            To::CurrentDirectory => {
                let slot = self.task(tid).directory;
                place::join(&self.tasks.directories[slot].current, below, &mut text);
            }
            To::Program => {
                if matches!(at.returned, Returned::Failed(_)) {
                    return Err(Stop::LeftOut(place::reason(DescriptorKind::Kernel)));
                }
                self.made_up = true;
                text = [UNNAMED_DIRECTORY, format!("/program-{tid}").as_bytes()].concat();
            }
            To::Descriptor(number) => {
                let wanted = match below.is_empty() && link.rest.is_empty() {
                    true => Wanted::File,
                    false => Wanted::Directory,
                };
                let whose = At { tid, ..*at };
                let handle = self.descriptor(&whose, &Descriptor::number(number), wanted)?;
                if wanted == Wanted::File {
                    return Ok(Some(handle));
                }
                place::join(self.paths.get(self.path_of(handle)?), below, &mut text);
            }
        }
        self.text = text;
        Ok(None)
    }

    /// A thread of the owner; none if it is not known.
    fn owner(&mut self, at: &At, owner: Owner) -> Option<u32> {
        match owner {
            Owner::Caller => Some(at.tid),
            Owner::CallersProcess => {
                let process = self.task(at.tid).process;
                let tids = &self.tasks.processes[process].tids;
                // The threads of a process that share no descriptors are rare; it is the first's.
                Some(tids.first().copied().unwrap_or(at.tid))
            }
            Owner::Numbered(number) => self.tasks.named_by(at.tid, number),
        }
    }

    /// The path that an open file was opened by, or has now.
    pub(super) fn path_of(&self, handle: HandleId) -> std::result::Result<PathId, Stop> {
        let file = self.files.get(&handle);
        file.map(|file| file.path)
            .ok_or(Stop::LeftOut("closed descriptor"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(owner: Owner, to: To, rest: &str) -> Option<InProc<'_>> {
        let rest = rest.as_bytes();
        Some(InProc::Link(Link { owner, to, rest }))
    }

    #[test]
    fn every_spelling_of_a_link_is_one() {
        use Owner::{Caller, CallersProcess, Numbered};
        let fd = To::Descriptor;
        for (path, is) in [
            ("/proc/self/fd/3", link(CallersProcess, fd(3), "")),
            ("/dev/fd/3/", link(CallersProcess, fd(3), "/")),
            ("/dev/stdin", link(CallersProcess, fd(0), "")),
            ("/dev/stderr", link(CallersProcess, fd(2), "")),
            ("/proc/self/task/7/fd/3", link(Numbered(7), fd(3), "")),
            ("/proc/9/task/7/fd/3", link(Numbered(7), fd(3), "")),
            (
                "/proc/thread-self/fd/3/a/../b",
                link(Caller, fd(3), "/a/../b"),
            ),
            (
                "/proc/9/cwd/a",
                link(Numbered(9), To::CurrentDirectory, "/a"),
            ),
            ("/proc/self/root", link(CallersProcess, To::Root, "")),
            ("/proc/self/exe", link(CallersProcess, To::Program, "")),
            ("/proc/1/../self/fd/./3", link(CallersProcess, fd(3), "")),
            (
                "/dev/../proc/self/cwd",
                link(CallersProcess, To::CurrentDirectory, ""),
            ),
        ] {
            assert_eq!(parse(path.as_bytes()), is, "{path}");
        }
    }

    #[test]
    fn other_paths_are_none() {
        for path in [
            "/",
            "/proc",
            "/dev/null",
            "/proc/meminfo",
            "/dev/sda",
            "/proc/self/../x",
        ] {
            assert_eq!(parse(path.as_bytes()), None, "{path}");
        }
        for (path, below) in [
            ("/proc/self/fd/03", "/fd/03"),
            ("/proc/self/fd/-1", "/fd/-1"),
            ("/proc/self/fd/4294967296", "/fd/4294967296"),
            ("/dev/fd", "/fd"),
            ("/proc/self/fdinfo/3", "/fdinfo/3"),
        ] {
            let of = InProc::Of(Owner::CallersProcess, below.into());
            assert_eq!(parse(path.as_bytes()), Some(of), "{path}");
        }
    }
}
