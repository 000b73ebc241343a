//! `iostep bench` under a filter of system calls as Android has one for its apps, built of bionic's
//! list. qemu-user takes no filter, so the numbers are those of x86-64.
//!
//! `IOSTEP_BENCH` names another program to test; of one that is linked with musl, as that for phones
//! is, nothing beside the list is allowed.
#![cfg(target_arch = "x86_64")]

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Output};

use iostep_model::bench::{Document, Warning};
use libc::*;

/// What Android lets an app call on arm64. Source: bionic, March 2025: libc/SYSCALLS.TXT and
/// libc/SECCOMP_ALLOWLIST_{COMMON,APP}.TXT without libc/SECCOMP_BLOCKLIST_{COMMON,APP}.TXT.
#[rustfmt::skip]
const ALLOWED: &[c_long] = &[
    SYS_accept4, SYS_bind, SYS_bpf, SYS_brk, SYS_capget, SYS_capset, SYS_chdir,
    SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone, SYS_clone3, SYS_close,
    SYS_close_range, SYS_connect, SYS_copy_file_range, SYS_dup, SYS_dup3, SYS_epoll_create1,
    SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2, SYS_execve, SYS_execveat,
    SYS_exit, SYS_exit_group, SYS_faccessat, SYS_fadvise64, SYS_fallocate, SYS_fchdir,
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fcntl, SYS_fdatasync, SYS_fgetxattr,
    SYS_flistxattr, SYS_flock, SYS_fremovexattr, SYS_fsetxattr, SYS_fstat, SYS_fstatfs,
    SYS_fsync, SYS_ftruncate, SYS_futex, SYS_getcpu, SYS_getcwd, SYS_getdents64, SYS_getegid,
    SYS_geteuid, SYS_getgid, SYS_getgroups, SYS_getitimer, SYS_getpeername, SYS_getpgid,
    SYS_getpid, SYS_getppid, SYS_getpriority, SYS_getrandom, SYS_getresgid, SYS_getresuid,
    SYS_getrlimit, SYS_getrusage, SYS_getsid, SYS_getsockname, SYS_getsockopt, SYS_gettid,
    SYS_gettimeofday, SYS_getuid, SYS_getxattr, SYS_inotify_add_watch, SYS_inotify_init1,
    SYS_inotify_rm_watch, SYS_io_cancel, SYS_io_destroy, SYS_io_getevents, SYS_io_setup,
    SYS_io_submit, SYS_ioctl, SYS_ioprio_get, SYS_ioprio_set, SYS_kill, SYS_lgetxattr,
    SYS_linkat, SYS_listen, SYS_listxattr, SYS_llistxattr, SYS_lremovexattr, SYS_lseek,
    SYS_lsetxattr, SYS_madvise, SYS_membarrier, SYS_memfd_create, SYS_mincore, SYS_mkdirat,
    SYS_mknodat, SYS_mlock, SYS_mlock2, SYS_mlockall, SYS_mmap, SYS_mprotect, SYS_mremap,
    SYS_mseal, SYS_msync, SYS_munlock, SYS_munlockall, SYS_munmap, SYS_nanosleep,
    SYS_newfstatat, SYS_openat, SYS_perf_event_open, SYS_personality, SYS_pidfd_getfd,
    SYS_pidfd_open, SYS_pidfd_send_signal, SYS_pipe2, SYS_pivot_root, SYS_ppoll, SYS_prctl,
    SYS_pread64, SYS_preadv, SYS_preadv2, SYS_prlimit64, SYS_process_madvise,
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_pselect6, SYS_ptrace, SYS_pwrite64,
    SYS_pwritev, SYS_pwritev2, SYS_quotactl, SYS_read, SYS_readahead, SYS_readlinkat, SYS_readv,
    SYS_recvfrom, SYS_recvmmsg, SYS_recvmsg, SYS_removexattr, SYS_renameat, SYS_renameat2,
    SYS_restart_syscall, SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask,
    SYS_rt_sigqueueinfo, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
    SYS_rt_tgsigqueueinfo, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_sched_getaffinity, SYS_sched_getattr, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_sched_rr_get_interval, SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam,
    SYS_sched_setscheduler, SYS_sched_yield, SYS_seccomp, SYS_sendfile, SYS_sendmmsg,
    SYS_sendmsg, SYS_sendto, SYS_set_tid_address, SYS_setitimer, SYS_setns, SYS_setpgid,
    SYS_setpriority, SYS_setresuid, SYS_setrlimit, SYS_setsid, SYS_setsockopt, SYS_setxattr,
    SYS_shutdown, SYS_sigaltstack, SYS_signalfd4, SYS_socket, SYS_socketpair, SYS_splice,
    SYS_statfs, SYS_statx, SYS_symlinkat, SYS_sync, SYS_sync_file_range, SYS_syncfs,
    SYS_sysinfo, SYS_tee, SYS_tgkill, SYS_timer_create, SYS_timer_delete, SYS_timer_getoverrun,
    SYS_timer_gettime, SYS_timer_settime, SYS_timerfd_create, SYS_timerfd_gettime,
    SYS_timerfd_settime, SYS_times, SYS_tkill, SYS_truncate, SYS_umask, SYS_uname, SYS_unlinkat,
    SYS_unshare, SYS_userfaultfd, SYS_utimensat, SYS_vmsplice, SYS_wait4, SYS_waitid, SYS_write,
    SYS_writev,
];

/// What x86-64 has beside these, as `open` beside `openat`. arm64 has none of them
/// (include/uapi/asm-generic/unistd.h).
#[rustfmt::skip]
const OF_X86: &[c_long] = &[
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_mkdir, SYS_rmdir, SYS_unlink,
    SYS_rename, SYS_poll, SYS_dup2, SYS_arch_prctl,
];

/// What glibc calls in each thread before a program can say anything: none of its programs runs in
/// an app.
const OF_GLIBC: &[c_long] = &[SYS_set_robust_list, SYS_rseq];

/// What a filter does about other calls.
#[derive(Clone, Copy)]
enum Refusal {
    /// As Android's: SIGSYS, which may be caught.
    Signal,
    /// Death, whether it is caught or not.
    Death,
}

fn program() -> (PathBuf, bool) {
    let other = std::env::var_os("IOSTEP_BENCH").map(PathBuf::from);
    let program = other.unwrap_or_else(|| env!("CARGO_BIN_EXE_iostep-bench").into());
    let version = Command::new(&program).arg("--version").output();
    let version = version.expect("it runs").stdout;
    let is_musl = String::from_utf8_lossy(&version).contains("musl");
    (program, is_musl)
}

fn statement(code: u32, if_true: u8, if_false: u8, k: u32) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).expect("a code"),
        jt: if_true,
        jf: if_false,
        k,
    }
}

/// A program of classic BPF (linux/filter.h) that lets these calls through.
fn filter(allowed: impl Iterator<Item = c_long>, refusal: Refusal) -> Vec<sock_filter> {
    let give = |action| statement(BPF_RET | BPF_K, 0, 0, action);
    // `nr` is the first field of `struct seccomp_data`.
    let mut program = vec![statement(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0)];
    for number in allowed {
        let number = u32::try_from(number).expect("a number");
        program.push(statement(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number));
        program.push(give(SECCOMP_RET_ALLOW));
    }
    program.push(give(match refusal {
        Refusal::Signal => SECCOMP_RET_TRAP,
        Refusal::Death => SECCOMP_RET_KILL_PROCESS,
    }));
    program
}

/// Makes this process and what it starts keep to a filter.
fn enter(filter: &mut [sock_filter]) -> io::Result<()> {
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives through the call.
    let failed = unsafe {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw const program) != 0
    };
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

/// `iostep-bench` under the list without `less`.
fn confined(refusal: Refusal, less: &[c_long]) -> Command {
    let (program, is_musl) = program();
    let of_glibc = if is_musl { &[] } else { OF_GLIBC };
    let all = [ALLOWED, OF_X86, of_glibc].concat();
    let allowed = all.into_iter().filter(|number| !less.contains(number));
    let mut filter = filter(allowed, refusal);
    let mut command = Command::new(program);
    // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
    unsafe { command.pre_exec(move || enter(&mut filter)) };
    command
}

/// Runs `iostep-bench bench` under the list without `less`.
fn bench(arguments: &str, refusal: Refusal, less: &[c_long]) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let mut words = arguments.split_whitespace();
    let mut command = confined(refusal, less);
    command.arg("bench").arg(words.next().expect("a generator"));
    command.arg(directory.path()).args(words).arg("--json");
    command.output().expect("it starts")
}

fn document(output: &Output) -> Document {
    assert!(output.status.success(), "{output:?}");
    Document::parse("output".as_ref(), &output.stdout).expect("a document")
}

fn refused(document: &Document) -> Option<(u64, c_long)> {
    document.warnings.iter().find_map(|warning| match warning {
        Warning::CallsRefused { calls, last } => Some((*calls, *last as c_long)),
        _ => None,
    })
}

/// A job whose pages in the cache are counted.
const COUNTED: &str = "file --size 256KiB --access read --cache warm --threads 2";

#[test]
fn nothing_that_android_refuses_is_called() {
    for job in [
        COUNTED,
        "file --size 256KiB --sync fdatasync --verify",
        "file --size 256KiB --access append --sync odsync --end-sync",
        "file --size 256KiB --transfer mmap --sync msync",
        "sqlite --transactions 20 --journal delete --threads 2",
        "sqlite --transactions 20 --journal wal --verify",
        "sqlite --transactions 20 --journal waldio",
    ] {
        let job = format!("{job} --sandbox android");
        let document = document(&bench(&job, Refusal::Death, &[]));
        assert_eq!(refused(&document), None, "{job}");
        assert!(document.runs[0].operations > 0, "{job}");
    }
}

#[test]
fn nor_is_it_when_results_are_written_and_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let jobs = r#"job = [{ name = "one", workload = "file", target = ".", size = "256KiB", sandbox = "android" }]"#;
    std::fs::write(directory.path().join("jobs.toml"), jobs).expect("a job file");
    for arguments in [
        "bench file . --size 256KiB -o a.json --html a.html --sandbox android",
        "bench sqlite . --transactions 20 -o b.json --progress --sandbox android",
        "bench run jobs.toml --results results",
        "bench show a.json",
        "bench show a.json --json",
        "compare a.json a.json",
    ] {
        let mut command = confined(Refusal::Death, &[]);
        command.args(arguments.split_whitespace());
        let output = command.current_dir(directory.path()).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{arguments}: {output:?}");
    }
}

#[test]
fn without_the_mode_the_filter_kills() {
    let output = bench(&format!("{COUNTED} --sandbox none"), Refusal::Signal, &[]);
    assert_eq!(output.status.signal(), Some(SIGSYS), "{output:?}");
}

/// Bionic's lists of before Android 11 do not have `statx`.
#[test]
fn what_slips_through_fails_as_if_the_kernel_had_not_got_it() {
    let output = bench(
        &format!("{COUNTED} --sandbox android"),
        Refusal::Signal,
        &[SYS_statx],
    );
    let (calls, last) = refused(&document(&output)).expect("a warning");
    assert!(calls > 0);
    assert_eq!(last, SYS_statx);
}

#[test]
fn io_uring_is_refused_by_name_and_not_called() {
    let job = "file --size 256KiB --engine uring --sandbox android";
    let output = bench(job, Refusal::Death, &[]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--engine psync"), "{said}");
}
