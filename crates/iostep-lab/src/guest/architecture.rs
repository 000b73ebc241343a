//! The processors that a guest can have, who executes them, and what QEMU's machines for them are.

use std::fs::File;

/// What a guest's kernel and programs are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

/// Where an ELF file names its machine (elf(5)).
const MACHINE_AT: usize = 18;

impl Architecture {
    /// What this program is made for.
    pub const HOST: Architecture = if cfg!(target_arch = "aarch64") {
        Architecture::Aarch64
    } else {
        Architecture::X86_64
    };

    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86-64",
            Architecture::Aarch64 => "aarch64",
        }
    }

    /// Of an ELF file of 64 bits; `None` for any other file or machine (`EM_*` of linux/elf-em.h).
    pub fn of_elf(file: &[u8]) -> Option<Architecture> {
        let machine = file.get(MACHINE_AT..MACHINE_AT + 2)?;
        match (file.starts_with(b"\x7fELF\x02"), machine) {
            (true, [62, 0]) => Some(Architecture::X86_64),
            (true, [183, 0]) => Some(Architecture::Aarch64),
            _ => None,
        }
    }

    /// QEMU for it, and Debian's package of that.
    pub fn program(self) -> (&'static str, &'static str) {
        match self {
            Architecture::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Architecture::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// QEMU's arguments for the machine and who executes it.
    pub fn machine(self, processor: Processor) -> [&'static str; 6] {
        let machine = match self {
            Architecture::X86_64 => "q35",
            Architecture::Aarch64 => "virt,gic-version=max",
        };
        let (accelerator, cpu) = match (processor, self) {
            (Processor::Kvm, _) => ("kvm", "host"),
            // With a thread for each processor, one goes on with its old translation of code that
            // another has patched (seen with QEMU 7.2): the kernel's own int3 of
            // arch/x86/kernel/alternative.c, hit for ever after it is gone.
            (Processor::Emulated, Architecture::X86_64) => ("tcg,thread=single", "max"),
            // Signed pointers by the architecture's own cipher cost more than all else.
            (Processor::Emulated, Architecture::Aarch64) => ("tcg", "max,pauth-impdef=on"),
        };
        ["-machine", machine, "-accel", accelerator, "-cpu", cpu]
    }

    /// What the kernel is told of this machine.
    pub fn kernel_options(self) -> &'static str {
        match self {
            Architecture::X86_64 => {
                "console=ttyS0 earlyprintk=ttyS0 no5lvl mitigations=off random.trust_cpu=on"
            }
            Architecture::Aarch64 => "console=ttyAMA0 earlycon mitigations=off",
        }
    }
}

/// Who executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    /// The host's, through `/dev/kvm`.
    Kvm,
    /// QEMU's TCG.
    Emulated,
}

impl Processor {
    /// The host's, if this process may use it and it has an extension for guests; whether a guest
    /// comes up on it is seen by trying. Without one, KVM is a module that runs kernels made for
    /// it, and executes all others instruction by instruction.
    pub fn kvm_is_usable(guest: Architecture) -> bool {
        let kvm = || File::options().read(true).write(true).open("/dev/kvm");
        let extension = || match guest {
            Architecture::X86_64 => std::fs::read_to_string("/proc/cpuinfo")
                .is_ok_and(|processor| has_extension(&processor)),
            Architecture::Aarch64 => true,
        };
        guest == Architecture::HOST && kvm().is_ok() && extension()
    }
}

/// True if /proc/cpuinfo of x86-64 names Intel's or AMD's.
fn has_extension(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    let mut words = flags.flat_map(str::split_whitespace);
    words.any(|word| matches!(word, "vmx" | "svm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_what_it_is_made_for() {
        let own = std::env::current_exe().and_then(std::fs::read);
        let own = own.expect("this test can be read");
        assert_eq!(Architecture::of_elf(&own), Some(Architecture::HOST));
        assert_eq!(Architecture::of_elf(b"\x7fELF\x02"), None);
        assert_eq!(Architecture::of_elf(b"#!/bin/sh, and some more text"), None);
    }

    #[test]
    fn a_processor_without_an_extension_runs_no_guest() {
        let flags =
            |words: &str| format!("processor\t: 0\nflags\t\t: fpu {words} sse2\nbugs\t: svm\n");
        assert!(has_extension(&flags("vmx")) && has_extension(&flags("svm")));
        assert!(!has_extension(&flags("svme")) && !has_extension(""));
    }
}
