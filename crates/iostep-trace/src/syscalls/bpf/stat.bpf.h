/* SPDX-License-Identifier: GPL-2.0 */
/* What stat and its relatives answered, as the program has it then. */
#ifndef IOSTEP_CALLS_STAT_H
#define IOSTEP_CALLS_STAT_H

/* What the kernel fills in for stat (arch/x86/include/uapi/asm/stat.h, include/uapi/asm-generic/stat.h). */
struct user_stat {
	__u64 device;
	__u64 inode;
#if defined(__TARGET_ARCH_x86)
	__u64 names;
	__u32 mode;
	__u32 owners[3];
	__u64 number;
	__u64 size;
	__u64 block_size;
#elif defined(__TARGET_ARCH_arm64)
	__u32 mode;
	__u32 names;
	__u32 owners[2];
	__u64 number;
	__u64 padding;
	__u64 size;
	__u32 block_size;
	__u32 padding2;
#endif
	__u64 blocks;
};

/* The same for statx (include/uapi/linux/stat.h). */
struct user_statx {
	__u32 mask;
	__u32 block_size;
	__u64 attributes;
	__u32 names;
	__u32 owners[2];
	__u16 mode;
	__u16 padding;
	__u64 inode;
	__u64 size;
	__u64 blocks;
	__u64 attributes_mask;
	__u64 times[8];
	__u32 number[2];
	__u32 device_major;
	__u32 device_minor;
};

#define STATX_ARGUMENT 4
/* STATX_BASIC_STATS */
#define BASIC_STATS 0x7ff

static __noinline void read_statx(struct wire_record *record)
{
	struct user_statx answer;
	__u64 device;

	if (!record ||
	    bpf_probe_read_user(&answer, sizeof(answer), (void *)record->word[STATX_ARGUMENT]) ||
	    (answer.mask & BASIC_STATS) != BASIC_STATS)
		return;
	/* As st_dev has it: new_encode_dev of include/linux/kdev_t.h. */
	device = (answer.device_minor & 0xff) | answer.device_major << 8 |
		 (answer.device_minor & ~0xffu) << 12;
	record->flags |= FLAG_SEEN;
	record->word[5] = answer.names;
	record->word[6] = (__u64)answer.mode << 32 | (device & 0xffffffff);
	record->word[7] = answer.inode;
	record->word[8] = answer.size;
	record->word[9] = answer.blocks;
}

static __noinline void read_stat(struct wire_record *record, __u32 class)
{
	__u32 argument = (class >> CLASS_TEXT_2_SHIFT & CLASS_TEXT) - 1;
	struct user_stat answer;

	if (!record || record->result < 0)
		return;
	if (argument == STATX_ARGUMENT) {
		read_statx(record);
		return;
	}
	if (bpf_probe_read_user(&answer, sizeof(answer), (void *)record->word[argument & 7]))
		return;
	record->flags |= FLAG_SEEN;
	record->word[5] = answer.names;
	record->word[6] = (__u64)answer.mode << 32 | (answer.device & 0xffffffff);
	record->word[7] = answer.inode;
	record->word[8] = answer.size;
	record->word[9] = answer.blocks;
}

#endif
