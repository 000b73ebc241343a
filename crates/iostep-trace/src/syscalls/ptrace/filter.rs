//! The seccomp filter that stops a program at the calls of interest only.

use libc::sock_filter;

/// The calling convention whose numbers are recorded (include/uapi/linux/audit.h).
pub(super) const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") {
    0xc000_00b7
} else {
    0xc000_003e
};
/// Numbers from here on are x32's, which is another calling convention under the same name
/// (`__X32_SYSCALL_BIT`, arch/x86/include/uapi/asm/unistd.h).
pub(super) const FIRST_FOREIGN: u64 = 0x4000_0000;

// Offsets in struct seccomp_data (include/uapi/linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// The lower half of an argument, on a little-endian machine.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const IF_BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// A filter that catches these calls, mappings of files only, and every call of another
/// architecture, so that it can be counted.
pub(super) fn catching(numbers: impl Iterator<Item = u64>) -> Vec<sock_filter> {
    let catch = step(RETURN, libc::SECCOMP_RET_TRACE, 0, 0);
    let mut filter = vec![
        step(LOAD, ARCH, 0, 0),
        step(IF_EQUAL, ARCHITECTURE, 1, 0),
        catch,
        step(LOAD, NUMBER, 0, 0),
        step(IF_AT_LEAST, FIRST_FOREIGN as u32, 0, 1),
        catch,
    ];
    for number in numbers {
        let Ok(number) = u32::try_from(number) else {
            continue;
        };
        if i64::from(number) == libc::SYS_mmap {
            filter.extend([
                step(IF_EQUAL, number, 0, 4),
                step(LOAD, argument(3), 0, 0),
                step(IF_BITS, libc::MAP_ANONYMOUS as u32, 0, 1),
                step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
                catch,
            ]);
        } else {
            filter.extend([step(IF_EQUAL, number, 0, 1), catch]);
        }
    }
    filter.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    filter
}

const fn step(code: u32, value: u32, when_true: u8, when_false: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: when_true,
        jf: when_false,
        k: value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel's interpreter does with the steps used here.
    fn run(filter: &[sock_filter], architecture: u32, number: u32, flags: u32) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let step = filter[at];
            at += 1;
            let holds = match u32::from(step.code) {
                LOAD => {
                    accumulator = match step.k {
                        NUMBER => number,
                        ARCH => architecture,
                        offset if offset == argument(3) => flags,
                        other => panic!("offset {other}"),
                    };
                    continue;
                }
                RETURN => return step.k,
                IF_EQUAL => accumulator == step.k,
                IF_AT_LEAST => accumulator >= step.k,
                IF_BITS => accumulator & step.k != 0,
                other => panic!("code {other}"),
            };
            at += usize::from(if holds { step.jt } else { step.jf });
        }
    }

    #[test]
    fn only_calls_of_interest_and_foreign_ones_are_caught() {
        let mmap = libc::SYS_mmap as u32;
        let filter = catching([3, u64::from(mmap), 77].into_iter());
        let caught = |architecture, number, flags| {
            run(&filter, architecture, number, flags) == libc::SECCOMP_RET_TRACE
        };
        for number in [3, 77, mmap] {
            assert!(caught(ARCHITECTURE, number, 0), "{number}");
        }
        assert!(!caught(ARCHITECTURE, mmap, libc::MAP_ANONYMOUS as u32));
        assert!(!caught(ARCHITECTURE, 4, 0));
        assert!(caught(0x4000_0003, 4, 0), "32 bits");
        assert!(caught(ARCHITECTURE, 0x4000_0004, 0), "x32");
    }
}
