// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel side of the BPF backend: one object, since all hooks share the maps.
 *
 * ring       places in the ring buffer
 * entries    programs that can be entered again, where the kernel may preempt them
 * older      bios from before the programs that get a request only now
 * devices    which devices are traced; block_bio_remap: from one to the one below
 * call       which system call a thread is in
 * paths      names in the kernel's memory, and whose they are
 * names      files and threads, told once
 * renames    files under the names that they get later
 * dirty      writeback_dirty_folio: who made a page dirty
 * folios     who wrote which pages of a large folio
 * syncs      fsync and its kin: system calls and the filesystems' own tracepoints
 * silent     sync calls on filesystems that do not tell of them
 * nilfs2     logs, and who waits for them
 * fat        who changed a block of the table or of a directory; direct I/O of old
 * journal    jbd2 commits, and inodes that go away
 * f2fs       its nodes, its atomic writes, its fsync
 * bio        whose pages a bio carries, walked folio by folio
 * queue      block_bio_queue: a bio, who sends it and for what
 * requests   block_rq_issue, block_rq_complete: the hot path
 *
 * Tracepoints only: no kprobe, no fentry (some kernels refuse them).
 *
 * To verifiers since Linux 6.12 ("bpf: Augment raw_tp arguments with PTR_MAYBE_NULL", also in stable
 * kernels) every argument of a module's tracepoint may be null, and a filesystem mostly is a module:
 * its hooks look before they follow one.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "wire.h"
#include "ring.bpf.h"
#include "maps.bpf.h"
#include "entries.bpf.h"
#include "older.bpf.h"
#include "devices.bpf.h"
#include "call.bpf.h"
#include "paths.bpf.h"
#include "names.bpf.h"
#include "renames.bpf.h"
#include "f2fs.bpf.h"
#include "sync_state.bpf.h"
#include "dirty.bpf.h"
#include "syncs.bpf.h"
#include "folios.bpf.h"
#include "journal.bpf.h"
#include "f2fs_hooks.bpf.h"
#include "silent.bpf.h"
#include "nilfs2.bpf.h"
#include "fat.bpf.h"
#include "bio.bpf.h"
#include "queue.bpf.h"
#include "older_hooks.bpf.h"
#include "requests.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Makes these types part of the object's BTF, from which those of Rust are generated. */
struct wire_types {
	enum wire_type type;
	enum wire_content content;
	enum wire_segment_flags segment_flags;
	enum wire_sync_via sync_via;
	enum wire_sync_flags sync_flags;
	enum wire_transfer_flags transfer_flags;
	enum wire_device device;
	enum wire_point point;
	enum wire_group group;
	enum wire_counter counter;
	enum wire_fault fault;
	enum end_io_kind end_io_kind;
	enum device_role device_role;
	enum sweep_want sweep_want;
	struct wire_queue queue;
	struct wire_segment segment;
	struct wire_transfer transfer;
	struct wire_older older;
	struct wire_remap remap;
	struct wire_flush_end flush_end;
	struct wire_sync_enter sync_enter;
	struct wire_sync_exit sync_exit;
	struct wire_sync_needs sync_needs;
	struct wire_commit commit;
	struct wire_process process;
	struct wire_cgroup cgroup;
	struct wire_file file;
	struct wire_file_deleted file_deleted;
	struct wire_sums sums;
	struct wire_pending pending;
};
struct wire_types wire_types = {};
