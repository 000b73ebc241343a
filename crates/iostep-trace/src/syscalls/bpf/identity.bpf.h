/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which file it is: device and inode, as stat(2) says them. Descriptors are looked for by them in
 * /proc, and two files are hard links of one if they are alike.
 */
#ifndef IOSTEP_CALLS_IDENTITY_H
#define IOSTEP_CALLS_IDENTITY_H

/* The subvolume's own number. */
static __always_inline __u32 device_on_btrfs(struct inode *inode)
{
	struct btrfs_inode *owner =
		(void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);

	return BPF_CORE_READ(owner, root, anon_dev);
}

/* The topmost lower file of an overlay's; false if it has none. */
static __always_inline bool find_lower(struct ovl_inode *owner, struct ovl_path *lower)
{
	void *path;

	if (bpf_core_field_exists(struct ovl_inode, oe)) {
		struct ovl_entry *entry = BPF_CORE_READ(owner, oe);

		if (!entry || !BPF_CORE_READ(entry, __numlower))
			return false;
		path = (void *)entry + bpf_core_field_offset(struct ovl_entry, __lowerstack);
	} else if (bpf_core_field_exists(struct ovl_inode___before_6_5, lowerpath)) {
		path = (void *)owner +
		       bpf_core_field_offset(struct ovl_inode___before_6_5, lowerpath);
	} else {
		return false;
	}
	lower->layer = BPF_CORE_READ((struct ovl_path *)path, layer);
	lower->dentry = BPF_CORE_READ((struct ovl_path *)path, dentry);
	return lower->dentry;
}

/*
 * An overlay has a number of its own where inodes' numbers are unique in it. Where its layers lie on
 * several filesystems, and these use the bits that would tell them apart, files have the number of
 * their layer: ovl_map_dev_ino() (fs/overlayfs/inode.c). An inode has its number from the lower
 * file, or from the upper one: ovl_get_inode().
 */
static __always_inline __u32 device_on_overlay(struct inode *inode)
{
	struct ovl_inode *owner =
		(void *)inode - bpf_core_field_offset(struct ovl_inode, vfs_inode);
	struct ovl_fs *overlay = BPF_CORE_READ(inode, i_sb, s_fs_info);
	struct ovl_path lower = {};

	if (BPF_CORE_READ(overlay, xino_mode) >= 0 ||
	    (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFDIR)
		return BPF_CORE_READ(inode, i_sb, s_dev);
	if (find_lower(owner, &lower) &&
	    BPF_CORE_READ(lower.dentry, d_inode, i_ino) == BPF_CORE_READ(inode, i_ino))
		return BPF_CORE_READ(lower.layer, fs, pseudo_dev);
	return BPF_CORE_READ(overlay, fs, pseudo_dev);
}

static __always_inline __u32 device_of(struct inode *inode)
{
	__u64 magic = BPF_CORE_READ(inode, i_sb, s_magic);

	if (magic == BTRFS_SUPER_MAGIC && bpf_core_type_exists(struct btrfs_inode))
		return device_on_btrfs(inode);
	if (magic == OVERLAYFS_SUPER_MAGIC && bpf_core_field_exists(struct ovl_fs, xino_mode))
		return device_on_overlay(inode);
	return BPF_CORE_READ(inode, i_sb, s_dev);
}

#endif
