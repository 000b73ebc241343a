//! The running kernel's request flag bits, from its BTF: they move between versions.

use iostep_model::Flags;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Enum;

/// Translates `bi_opf` and `cmd_flags`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelFlags {
    bits: [(u32, Flags); Flags::KERNEL_NAMES.len()],
}

impl KernelFlags {
    /// Reads `enum req_flag_bits` (include/linux/blk_types.h). A name that the kernel lacks
    /// translates to nothing.
    pub(super) fn read(btf: &Btf<'_>) -> KernelFlags {
        let mut bits = [(0, Flags::default()); Flags::KERNEL_NAMES.len()];
        let Some(kernel) = btf.type_by_name::<Enum<'_>>("req_flag_bits") else {
            return KernelFlags { bits };
        };
        for member in kernel.iter() {
            let Some(name) = member.name.and_then(|name| name.to_str()) else {
                continue;
            };
            let bit = u32::try_from(member.value).ok().filter(|bit| *bit < 32);
            let ours = name
                .strip_prefix("__REQ_")
                .and_then(|name| Flags::KERNEL_NAMES.iter().position(|(n, _)| *n == name));
            if let (Some(bit), Some(index)) = (bit, ours) {
                bits[index] = (1 << bit, Flags::KERNEL_NAMES[index].1);
            }
        }
        KernelFlags { bits }
    }

    /// The flags of an operation word.
    pub(super) fn translate(&self, opf: u32) -> Flags {
        self.bits
            .iter()
            .filter(|(mask, _)| opf & mask != 0)
            .fold(Flags::default(), |flags, (_, flag)| flags.with(*flag))
    }
}
