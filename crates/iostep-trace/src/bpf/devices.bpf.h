/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The traced devices: those that a filesystem lies on, the disks with requests, and what is in
 * between. Most often they are one and the same.
 */
#ifndef IOSTEP_DEVICES_H
#define IOSTEP_DEVICES_H

#define MAX_DEVICES 16

enum device_role {
	/* A whole disk: its partitions belong to it. */
	DEVICE_WHOLE = 1,
	/* A filesystem, or its journal, lies on it: its bios say whose they are. */
	DEVICE_HOLDS = 2,
	/* It has requests, which are summed. */
	DEVICE_DISK = 4,
};

/*
 * Set before loading; the verifier takes them for constants, and what is beyond the count costs
 * nothing. Device numbers are the kernel's: major << 20 | minor.
 */
const volatile __u32 device_count = 0;
const volatile __u32 device_numbers[MAX_DEVICES] = {};
const volatile __u32 device_disks[MAX_DEVICES] = {};
const volatile __u32 device_roles[MAX_DEVICES] = {};
/* Some devices are made of others. */
const volatile __u32 is_layered = 0;
/* Several filesystems are traced: what is told of one says of which. */
const volatile __u32 has_volumes = 0;

/* The numbers of the volumes: of partitions of a whole disk, too. Filled before attaching. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u32);
	__type(value, __u32);
} volume_numbers SEC(".maps");

/* True for a part of what is traced, by its number alone. */
static __always_inline bool is_volume(__u32 number)
{
	return has_volumes && bpf_map_lookup_elem(&volume_numbers, &number);
}

static __always_inline __u32 device_with(__u32 own, __u32 disk, __u32 roles)
{
#pragma unroll
	for (__u32 i = 0; i < MAX_DEVICES; i++) {
		if (i >= device_count)
			break;
		if (!(device_roles[i] & roles))
			continue;
		if (device_numbers[i] == (device_roles[i] & DEVICE_WHOLE ? disk : own))
			return i;
	}
	return NO_DEVICE;
}

static __always_inline __u32 device_of(struct block_device *device, __u32 roles)
{
	return device_with(device->bd_dev, device->bd_disk->part0->bd_dev, roles);
}

static __always_inline bool is_traced(struct block_device *device)
{
	return device_of(device, DEVICE_HOLDS) != NO_DEVICE;
}

/* The same for an address that came through a plain read, which the verifier does not trust. */
static __always_inline bool is_traced_address(struct block_device *device)
{
	if (!device)
		return false;
	return device_with(BPF_CORE_READ(device, bd_dev),
			   BPF_CORE_READ(device, bd_disk, part0, bd_dev),
			   DEVICE_HOLDS) != NO_DEVICE;
}

/*
 * btrfs leaves s_bdev empty: it can have several devices, all of which are traced if one is. As a
 * module it may be missing, and its types with it.
 */
static __always_inline struct block_device *btrfs_device(struct super_block *super)
{
	struct btrfs_fs_info *info;

	if (!bpf_core_type_exists(struct btrfs_fs_info) ||
	    BPF_CORE_READ(super, s_magic) != BTRFS_SUPER_MAGIC)
		return NULL;
	info = BPF_CORE_READ(super, s_fs_info);
	return BPF_CORE_READ(info, fs_devices, latest_dev, bdev);
}

static __noinline bool is_traced_btrfs(struct super_block *super)
{
	return is_traced_address(btrfs_device(super));
}

/* The number of a device that a filesystem lies on, if there are several to be told apart. */
static __noinline __u32 device_number(struct super_block *super)
{
	struct block_device *device = BPF_CORE_READ(super, s_bdev);

	if (!device)
		device = btrfs_device(super);
	return device ? BPF_CORE_READ(device, bd_dev) : 0;
}

static __always_inline __u32 filesystem_of(struct super_block *super)
{
	return has_volumes ? device_number(super) : 0;
}

static __always_inline bool is_traced_super(struct super_block *super)
{
	struct block_device *device = super->s_bdev;

	return device ? is_traced(device) : is_traced_btrfs(super);
}

/* The same for an address that came through a plain read. */
static __always_inline bool is_traced_super_address(struct super_block *super)
{
	struct block_device *device = BPF_CORE_READ(super, s_bdev);

	return device ? is_traced_address(device) : is_traced_btrfs(super);
}

/* A bio that was told of when the device above sent it on: it is queued once more below. */
struct clone {
	__u64 sector;
	__u32 bytes;
	__u32 device;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct clone);
} clones SEC(".maps");

/*
 * True if a bio that is queued on a device was told of already. Some are never queued below (md
 * may send the very bio on that was queued above), so an old entry can be another bio's.
 */
static __always_inline bool is_clone(struct bio *bio, __u32 device)
{
	__u64 address = (__u64)bio;
	struct clone *clone = bpf_map_lookup_elem(&clones, &address);
	bool same;

	if (!clone)
		return false;
	same = clone->device == device && clone->sector == bio->bi_iter.bi_sector &&
	       clone->bytes == bio->bi_iter.bi_size;
	bpf_map_delete_elem(&clones, &address);
	return same;
}

/*
 * The bytes of a bio whose pages say whose they are: none of another device on this disk, or of
 * device mapper or md itself.
 */
static __always_inline __u32 owned_bytes(struct bio *bio)
{
	return is_layered && !is_traced(bio->bi_bdev) ? 0 : bio->bi_iter.bi_size;
}

/* A bio arrives at a disk, from the filesystem or from the device above. */
static __always_inline void count_queued(__u32 device, __u32 opf, __u32 bytes)
{
	__u32 role = device < MAX_DEVICES ? device_roles[device & (MAX_DEVICES - 1)] : 0;

	if (is_layered && !(role & DEVICE_DISK))
		return;
	add(POINT_QUEUED, opf, 1, bytes);
}

static __always_inline bool only_flushes(struct bio *bio)
{
	return !bio->bi_iter.bi_size && (bio->bi_opf & 0xff) == 1;
}

static __always_inline void tell_flush_end(struct bio *bio, __u32 device, bool is_expected)
{
	struct wire_flush_end *record = reserve(sizeof(*record));

	if (!record)
		return;
	record->type = WIRE_FLUSH_END;
	record->is_expected = is_expected;
	record->reserved = 0;
	record->device = device;
	record->bio = (__u64)bio;
	submit(record);
}

/*
 * Device mapper and md send bios of their own to the device below, where a partition's beginning
 * is still to be added: blk_partition_remap() of block/blk-core.c fires this a second time, with
 * the partition's own number.
 */
PROGRAM("block_bio_remap", on_remap, struct bio *bio, __u32 from, __u64 sector)
{
	struct block_device *below = bio->bi_bdev;
	__u32 device = device_of(below, ~0u);
	struct wire_remap *record;
	__u64 address = (__u64)bio;
	struct clone clone = {};

	if (device == NO_DEVICE || from == below->bd_dev)
		return 0;
	if (older_may_come)
		know_told(address);
	clone.device = device;
	clone.bytes = bio->bi_iter.bi_size;
	clone.sector = bio->bi_iter.bi_sector;
	if (clone.bytes)
		clone.sector += below->bd_start_sect;
	bpf_map_update_elem(&clones, &address, &clone, BPF_ANY);
	count_queued(device, bio->bi_opf, clone.bytes);
	record = reserve(sizeof(*record));
	if (!record)
		return 0;
	record->type = WIRE_REMAP;
	record->from = device_with(from, from, ~0u);
	record->to = device;
	record->bytes = clone.bytes;
	record->mono_ns = bpf_ktime_get_ns();
	record->from_sector = sector;
	record->to_sector = clone.sector;
	record->opf = bio->bi_opf;
	record->reserved = 0;
	record->flush_bio = only_flushes(bio) ? address : 0;
	submit(record);
	return 0;
}

#endif
