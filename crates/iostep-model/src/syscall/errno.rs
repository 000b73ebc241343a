//! Names of error numbers.

use super::Errno;

impl Errno {
    /// Not allowed.
    pub const EPERM: Errno = Errno(1);
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(2);
    /// Nobody is at the other end of a FIFO, or it is a socket.
    pub const ENXIO: Errno = Errno(6);
    /// Bad descriptor.
    pub const EBADF: Errno = Errno(9);
    /// Permission denied.
    pub const EACCES: Errno = Errno(13);
    /// In use: mounted, or a program's.
    pub const EBUSY: Errno = Errno(16);
    /// It is there already.
    pub const EEXIST: Errno = Errno(17);
    /// From one filesystem to another.
    pub const EXDEV: Errno = Errno(18);
    /// No directory.
    pub const ENOTDIR: Errno = Errno(20);
    /// A directory.
    pub const EISDIR: Errno = Errno(21);
    /// Makes no sense.
    pub const EINVAL: Errno = Errno(22);
    /// No such request of ioctl here.
    pub const ENOTTY: Errno = Errno(25);
    /// A program that runs.
    pub const ETXTBSY: Errno = Errno(26);
    /// A filesystem that is only read.
    pub const EROFS: Errno = Errno(30);
    /// No such system call.
    pub const ENOSYS: Errno = Errno(38);
    /// A directory with something in it.
    pub const ENOTEMPTY: Errno = Errno(39);
    /// A symbolic link where none is followed, or too many.
    pub const ELOOP: Errno = Errno(40);
    /// Not known to this filesystem.
    pub const EOPNOTSUPP: Errno = Errno(95);

    /// `ENOENT` and so on; none for a number that Linux does not use.
    pub fn name(self) -> Option<&'static str> {
        let found = NAMES.iter().find(|(number, _)| *number == self.0);
        found.map(|(_, name)| *name)
    }

    /// The number of a name, the kernel's own (`ERESTARTSYS`) included, which strace shows.
    pub fn from_name(name: &str) -> Option<Errno> {
        let mut all = NAMES.iter().chain(ALIASES);
        all.find(|(_, known)| *known == name)
            .map(|(number, _)| Errno(*number))
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "E{}", self.0),
        }
    }
}

/// include/uapi/asm-generic/errno-base.h, errno.h, and include/linux/errno.h from 512 on.
const NAMES: &[(i32, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (15, "ENOTBLK"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (33, "EDOM"),
    (34, "ERANGE"),
    (35, "EDEADLK"),
    (36, "ENAMETOOLONG"),
    (37, "ENOLCK"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (42, "ENOMSG"),
    (43, "EIDRM"),
    (44, "ECHRNG"),
    (45, "EL2NSYNC"),
    (46, "EL3HLT"),
    (47, "EL3RST"),
    (48, "ELNRNG"),
    (49, "EUNATCH"),
    (50, "ENOCSI"),
    (51, "EL2HLT"),
    (52, "EBADE"),
    (53, "EBADR"),
    (54, "EXFULL"),
    (55, "ENOANO"),
    (56, "EBADRQC"),
    (57, "EBADSLT"),
    (59, "EBFONT"),
    (60, "ENOSTR"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (63, "ENOSR"),
    (64, "ENONET"),
    (65, "ENOPKG"),
    (66, "EREMOTE"),
    (67, "ENOLINK"),
    (68, "EADV"),
    (69, "ESRMNT"),
    (70, "ECOMM"),
    (71, "EPROTO"),
    (72, "EMULTIHOP"),
    (73, "EDOTDOT"),
    (74, "EBADMSG"),
    (75, "EOVERFLOW"),
    (76, "ENOTUNIQ"),
    (77, "EBADFD"),
    (78, "EREMCHG"),
    (79, "ELIBACC"),
    (80, "ELIBBAD"),
    (81, "ELIBSCN"),
    (82, "ELIBMAX"),
    (83, "ELIBEXEC"),
    (84, "EILSEQ"),
    (85, "ERESTART"),
    (86, "ESTRPIPE"),
    (87, "EUSERS"),
    (88, "ENOTSOCK"),
    (89, "EDESTADDRREQ"),
    (90, "EMSGSIZE"),
    (91, "EPROTOTYPE"),
    (92, "ENOPROTOOPT"),
    (93, "EPROTONOSUPPORT"),
    (94, "ESOCKTNOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (96, "EPFNOSUPPORT"),
    (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (100, "ENETDOWN"),
    (101, "ENETUNREACH"),
    (102, "ENETRESET"),
    (103, "ECONNABORTED"),
    (104, "ECONNRESET"),
    (105, "ENOBUFS"),
    (106, "EISCONN"),
    (107, "ENOTCONN"),
    (108, "ESHUTDOWN"),
    (109, "ETOOMANYREFS"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (112, "EHOSTDOWN"),
    (113, "EHOSTUNREACH"),
    (114, "EALREADY"),
    (115, "EINPROGRESS"),
    (116, "ESTALE"),
    (117, "EUCLEAN"),
    (118, "ENOTNAM"),
    (119, "ENAVAIL"),
    (120, "EISNAM"),
    (121, "EREMOTEIO"),
    (122, "EDQUOT"),
    (123, "ENOMEDIUM"),
    (124, "EMEDIUMTYPE"),
    (125, "ECANCELED"),
    (126, "ENOKEY"),
    (127, "EKEYEXPIRED"),
    (128, "EKEYREVOKED"),
    (129, "EKEYREJECTED"),
    (130, "EOWNERDEAD"),
    (131, "ENOTRECOVERABLE"),
    (132, "ERFKILL"),
    (512, "ERESTARTSYS"),
    (513, "ERESTARTNOINTR"),
    (514, "ERESTARTNOHAND"),
    (516, "ERESTART_RESTARTBLOCK"),
];

/// Second names.
const ALIASES: &[(i32, &str)] = &[(11, "EWOULDBLOCK"), (35, "EDEADLOCK"), (95, "ENOTSUP")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_libc() {
        assert_eq!(Errno(libc::ENOENT).name(), Some("ENOENT"));
        assert_eq!(Errno(libc::EDQUOT).name(), Some("EDQUOT"));
        assert_eq!(Errno::from_name("ENOTSUP"), Some(Errno(libc::ENOTSUP)));
        assert_eq!(Errno(4095).to_string(), "E4095");
        for (number, name) in NAMES {
            assert_eq!(Errno::from_name(name), Some(Errno(*number)));
        }
    }
}
