//! Whether programs of ours can run on this kernel, and this process may load them.

use std::mem::size_of;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Typedef};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapHandle, MapType};

use super::symbols::Symbols;
use super::{release, symbol_names};
use crate::error::{Error, Result};
use crate::libbpf_log;
use crate::rights::check_rights;

/// Whether this process may record block I/O here, as far as can be told without loading the programs:
/// rights, BTF, tracepoints, BPF itself, addresses of functions.
///
/// Errors: `Unsupported` with what is missing; `Kernel`.
pub fn check_trace() -> Result<()> {
    check_rights("load BPF programs")?;
    available()?;
    check_bpf()?;
    Symbols::read(&symbol_names()).map(drop)
}

/// The same for system calls.
///
/// Errors: as those of [`check_trace`].
pub fn check_record() -> Result<()> {
    check_rights("load BPF programs")?;
    usable_btf("--via ptrace")?;
    check_bpf()
}

/// Makes a map, the least that BPF can do: a filter of system calls, or a kernel in lockdown, may
/// refuse BPF to whoever has the rights.
fn check_bpf() -> Result<()> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some("iostep_check"), 4, 4, 1, &options);
    map.map(drop).map_err(Error::kernel("make a BPF map"))
}

/// The kernel's BTF, if it describes a kernel that programs of ours can run on; `instead` is what to
/// use where it does not.
///
/// Errors: `Unsupported`.
pub(crate) fn usable_btf(instead: &str) -> Result<Btf<'static>> {
    let btf = libbpf_log::listen(|| {
        Btf::from_vmlinux().map_err(|error| {
            Error::unsupported(
                "/sys/kernel/btf/vmlinux",
                format!("no usable BTF ({error}); use {instead}"),
            )
        })
    })?;
    if !has_helper(&btf, LATEST_HELPER) {
        return Err(Error::unsupported(
            format!("Linux {}", release()),
            format!("BPF has no {LATEST_HELPER} before Linux 5.17; use {instead}"),
        ));
    }
    Ok(btf)
}

/// What both recorders' programs call and the oldest kernels with BTF lack. None that has it hands
/// a tracepoint of the block layer the queue before the request, as Linux 5.10 does.
const LATEST_HELPER: &str = "bpf_loop";

/// True if programs may call a helper, by its name (`enum bpf_func_id` of include/uapi/linux/bpf.h).
fn has_helper(btf: &Btf<'_>, name: &str) -> bool {
    let number = name.replacen("bpf_", "BPF_FUNC_", 1);
    let helpers = btf.type_by_name::<Enum<'_>>("bpf_func_id");
    helpers.is_some_and(|helpers| {
        let mut members = helpers.iter();
        members.any(|member| member.name.is_some_and(|name| *name == *number))
    })
}

/// True if this kernel has what the programs need: BTF, its helpers, and the tracepoints of the block
/// layer.
pub fn available() -> Result<()> {
    let btf = usable_btf(INSTEAD)?;
    for name in ["block_bio_queue", "block_rq_issue", "block_rq_complete"] {
        if !has_tracepoint(&btf, name) {
            return Err(Error::unsupported(
                format!("tracepoint {name}"),
                format!("not in this kernel; use {INSTEAD}"),
            ));
        }
    }
    Ok(())
}

/// What does without these programs.
pub(super) const INSTEAD: &str = "--backend tracefs";

pub(crate) fn has_tracepoint(btf: &Btf<'_>, name: &str) -> bool {
    btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))
        .is_some()
}
