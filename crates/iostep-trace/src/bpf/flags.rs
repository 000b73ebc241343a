//! The running kernel's request flag bits, from its BTF: they move between versions.

use iostep_model::Flags;
use libbpf_rs::btf::types::Enum;
use libbpf_rs::btf::{Btf, TypeId};

/// `RQF_FLUSH_SEQ` before Linux 6.11 ("block: Use enum to define RQF_x bit indexes"), when it was
/// a macro, which BTF does not have.
const OLD_FLUSH_SEQUENCE_BIT: u32 = 4;

/// The bit of `rq_flags` of a request that the flush machinery still holds
/// (include/linux/blk-mq.h). The enum of these bits has a name on some kernels and none on 6.12.
pub(super) fn flush_sequence_bit(btf: &Btf<'_>) -> u32 {
    let named = btf.type_by_name::<Enum<'_>>("rqf_flags");
    let anonymous = || {
        let ids = (1..btf.len() as u32).map(TypeId::from);
        let mut enums = ids.filter_map(|id| btf.type_by_id::<Enum<'_>>(id));
        enums.find_map(|found| member(&found, "__RQF_FLUSH_SEQ"))
    };
    let bit = named.and_then(|found| member(&found, "__RQF_FLUSH_SEQ"));
    bit.or_else(anonymous).unwrap_or(OLD_FLUSH_SEQUENCE_BIT)
}

fn member(found: &Enum<'_>, name: &str) -> Option<u32> {
    let mut members = found.iter();
    let member = members.find(|member| member.name.is_some_and(|found| found == name))?;
    u32::try_from(member.value).ok().filter(|bit| *bit < 32)
}

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
