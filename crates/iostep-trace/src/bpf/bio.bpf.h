/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A bio enters the block layer: whose pages are these?
 *
 * Its pages are walked folio by folio, since one bio can carry several files (nilfs2, f2fs) and
 * more than 1024 pages. Runs that have one owner, one dirtier and consecutive file offsets
 * become one segment.
 */
#ifndef IOSTEP_BIO_H
#define IOSTEP_BIO_H

#define MAX_SEGMENTS 64
#define MAX_STEPS (1 << 17)
#define BTRFS_BTREE_INODE 1
#define BTRFS_HEADER_BYTENR 48
#define BTRFS_HEADER_OWNER 88

struct bio_walk {
	struct wire_queue queue;
	struct wire_segment segments[MAX_SEGMENTS];
	/* The walk's place. */
	__u64 vector;
	__u64 end_io;
	__u64 private;
	__u32 vector_offset;
	__u32 left;
	__u32 kind;
	__u32 done_bytes;
	/* The run being built. */
	__u64 mapping;
	__u64 next_index;
	__u32 btree_left;
	__u32 users;
	/* Which of them it is. */
	__u32 place;
	__u64 commit;
};

/* Of a processor: a task may be preempted in a walk, see entries.bpf.h. */
#define BIO_WALKS (ENTRIES + 1)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BIO_WALKS);
	__type(key, __u32);
	__type(value, struct bio_walk);
} bio_walks SEC(".maps");

/* What a step of a walk is told. */
struct step {
	struct bio *bio;
	__u32 walk;
};

static __always_inline __u64 base(__u64 address, __u64 fixed)
{
	__u64 value = fixed;

	if (address)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* The kernel's address of a page's bytes; 0 if the bases are not known (memory_map.rs). */
static __always_inline __u64 bytes_of(__u64 page)
{
	__u64 map = base(vmemmap_base_address, vmemmap_base_fixed);
	__u64 linear = base(page_offset_base_address, page_offset_base_fixed);

	if (!map || !linear)
		return 0;
	return ((page - map) / bpf_core_type_size(struct page)) * PAGE_BYTES + linear;
}

static __always_inline void send(struct bio_walk *walk)
{
	__u64 segments = walk->queue.segments, bytes = sizeof(struct wire_queue);

	/* Bounded by a mask: Linux 6.12 loses a bound that was compared (R3 min value is negative). */
	asm volatile("" : "+r"(segments));
	if (segments)
		bytes += (((segments - 1) & (MAX_SEGMENTS - 1)) + 1) * sizeof(struct wire_segment);
	output(walk, bytes, wakeup());
	walk->queue.continues_at_bytes = walk->done_bytes;
	walk->queue.segments = 0;
}

static __always_inline struct wire_segment *new_segment(struct bio_walk *walk)
{
	__u32 index;

	if (walk->queue.segments >= MAX_SEGMENTS)
		send(walk);
	index = walk->queue.segments;
	if (index >= MAX_SEGMENTS)
		return NULL;
	walk->queue.segments = index + 1;
	__builtin_memset(&walk->segments[index], 0, sizeof(struct wire_segment));
	return &walk->segments[index];
}

/* Makes the file known, which gives NULL if there is no room for it. */
static __always_inline struct known_file *set_file(struct wire_segment *segment,
						   struct inode *inode, __u64 offset, __u8 content)
{
	struct known_file *known = know_file(inode);

	segment->content = content;
	segment->offset = offset;
	/* What is known need not be read again, a field by a call. */
	if (known) {
		segment->inode = known->inode;
		segment->generation = known->generation;
		segment->extra = known->subvolume;
	} else {
		segment->inode = BPF_CORE_READ(inode, i_ino);
		segment->generation = BPF_CORE_READ(inode, i_generation);
		segment->extra = subvolume_of(inode, BPF_CORE_READ(inode, i_sb));
	}
	return known;
}

static __always_inline void set_dirtier(struct wire_segment *segment, __u64 folio, __u64 index,
					struct inode *inode, struct known_file *known)
{
	struct page_dirtier *dirtier = dirtier_of(folio, index);

	if (dirtier && dirtier->inode == BPF_CORE_READ(inode, i_ino) &&
	    dirtier->generation == BPF_CORE_READ(inode, i_generation)) {
		segment->dirtier_pid = dirtier->pid;
		segment->dirtier_tgid = dirtier->tgid;
	} else if (known && known->dirtier_pid) {
		segment->dirtier_pid = known->dirtier_pid;
		segment->dirtier_tgid = known->dirtier_tgid;
		segment->flags |= SEGMENT_DIRTIER_BY_INODE;
	}
}

/* A jbd2 log block: its b_private is the buffer of the home block (fs/jbd2/journal.c). */
static __always_inline void set_journal_block(struct wire_segment *segment, struct bio_walk *walk,
					      struct buffer_head *buffer)
{
	struct buffer_head *home = BPF_CORE_READ(buffer, b_private);
	struct known_file *known;
	__u64 folio, mapping;
	struct inode *inode;

	segment->content = CONTENT_JOURNAL_BLOCK;
	if (walk->commit) {
		segment->flags |= SEGMENT_HAS_COMMIT;
		segment->extra = walk->commit;
	}
	if (!home)
		return;
	segment->flags |= SEGMENT_HAS_HOME;
	segment->offset = BPF_CORE_READ(home, b_blocknr);
	/* data=journal: the home buffer hangs on a page of the file itself, or did until it was cut. */
	folio = head_of((__u64)BPF_CORE_READ(home, b_page));
	mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	if (!mapping)
		segment->flags |= SEGMENT_HOME_IS_CUT_OFF;
	if (!mapping || (mapping & MAPPING_FLAGS))
		return;
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return;
	known = know_file(inode);
	set_dirtier(segment, folio, buffer_offset(home, folio) >> PAGE_SHIFT, inode, known);
	segment->flags |= SEGMENT_HOME_IS_FILE;
	segment->inode = BPF_CORE_READ(inode, i_ino);
	segment->generation = BPF_CORE_READ(inode, i_generation);
	*(__u64 *)segment->head = buffer_offset(home, folio);
}

/*
 * A buffer of a file's page: pages whose blocks do not lie together are read and written so
 * (block_read_full_folio(), __block_write_full_folio(), fs/buffer.c), and nilfs2 reads its own files
 * and the trees that map files so. Metadata hang on pages of the device's inode.
 */
static __always_inline bool set_file_buffer(struct wire_segment *segment, struct bio_walk *walk,
					    struct buffer_head *buffer)
{
	__u64 folio = head_of((__u64)BPF_CORE_READ(buffer, b_page));
	__u64 mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	struct known_file *known;
	struct inode *inode;

	if (!mapping || (mapping & MAPPING_FLAGS))
		return false;
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return false;
	if (is_nilfs_node(inode, mapping)) {
		set_nilfs_node(segment, inode);
		return true;
	}
	known = set_file(segment, inode, buffer_offset(buffer, folio), CONTENT_FILE);
	if (walk->queue.opf & 1)
		set_dirtier(segment, folio, segment->offset >> PAGE_SHIFT, inode, known);
	return true;
}

/* A buffer on a page of the device itself: who made the page dirty, where no buffer says so. */
static __always_inline void set_device_dirtier(struct wire_segment *segment,
					       struct buffer_head *buffer)
{
	__u64 folio = head_of((__u64)BPF_CORE_READ(buffer, b_page));
	__u64 mapping = (__u64)BPF_CORE_READ((struct folio *)folio, mapping);
	struct inode *inode;

	if (!mapping || (mapping & MAPPING_FLAGS))
		return;
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	set_dirtier(segment, folio, buffer_offset(buffer, folio) >> PAGE_SHIFT, inode, NULL);
}

static __always_inline void set_buffer(struct wire_segment *segment, struct bio_walk *walk)
{
	struct buffer_head *buffer = (struct buffer_head *)walk->private;
	void *bytes = BPF_CORE_READ(buffer, b_data);
	__u64 end_io = walk->end_io;

	if (bpf_core_field_exists(struct buffer_head, b_end_io))
		end_io = (__u64)BPF_CORE_READ(buffer, b_end_io);
	if (bytes)
		bpf_probe_read_kernel(segment->head, sizeof(segment->head), bytes);
	if (jbd2_end_io && end_io == jbd2_end_io)
		set_journal_block(segment, walk, buffer);
	else if (fast_commit_end_io && end_io == fast_commit_end_io)
		segment->content = CONTENT_FAST_COMMIT;
	else if (!set_file_buffer(segment, walk, buffer)) {
		segment->content = CONTENT_BUFFER;
		if (walk->queue.opf & 1)
			set_buffer_dirtier(segment, buffer);
		if (walk->queue.opf & 1 && !segment->dirtier_pid)
			set_device_dirtier(segment, buffer);
	}
}

static __always_inline void set_xfs_log(struct wire_segment *segment, struct bio_walk *walk)
{
	struct xlog_in_core *record = (struct xlog_in_core *)walk->private;
	struct xfs_cil_ctx *context;
	struct list_head *entry;
	__u64 list, sequence;

	segment->content = CONTENT_XFS_LOG;
	if (!bpf_core_type_exists(struct xlog_in_core))
		return;
	list = (__u64)record + bpf_core_field_offset(struct xlog_in_core, ic_callbacks);
	entry = BPF_CORE_READ(record, ic_callbacks.next);
	/* A record holds few commit records: as many as checkpoints ended in 32 to 256 KiB. */
	for (int i = 0; i < 16 && entry && (__u64)entry != list; i++) {
		context = (void *)entry - bpf_core_field_offset(struct xfs_cil_ctx, iclog_entry);
		sequence = BPF_CORE_READ(context, sequence);
		if (sequence > segment->extra)
			segment->extra = sequence;
		segment->flags |= SEGMENT_HAS_COMMIT;
		entry = BPF_CORE_READ(entry, next);
	}
}

static __always_inline void set_xfs_buffer(struct wire_segment *segment, struct bio_walk *walk)
{
	struct xfs_buf *buffer = (struct xfs_buf *)walk->private;
	char *name;

	segment->content = CONTENT_XFS_BUFFER;
	if (!bpf_core_type_exists(struct xfs_buf))
		return;
	name = BPF_CORE_READ(buffer, b_ops, name);
	if (name)
		bpf_probe_read_kernel_str(segment->head, sizeof(segment->head), name);
}

static __always_inline void set_direct(struct wire_segment *segment, struct bio_walk *walk)
{
	struct iomap_dio *dio = (struct iomap_dio *)walk->private;
	struct kiocb *iocb = BPF_CORE_READ(dio, iocb);
	struct inode *inode = BPF_CORE_READ(iocb, ki_filp, f_inode);
	/* What was submitted so far, before Linux 7.0 with this bio (fs/iomap/direct-io.c). */
	__u64 offset = BPF_CORE_READ(iocb, ki_pos) + BPF_CORE_READ(dio, size);

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK) {
		segment->content = CONTENT_BUFFER;
	} else {
		set_file(segment, inode, direct_counts_later ? offset : offset - segment->bytes,
			 CONTENT_FILE_DIRECT);
	}
	segment->dirtier_pid = walk->queue.pid;
	segment->dirtier_tgid = walk->queue.tgid;
}

/* The request of a direct I/O of one bio. */
static __always_inline struct kiocb *simple_request(struct bio *bio)
{
	struct iomap_dio_simple *owner;

	if (!bpf_core_type_exists(struct iomap_dio_simple))
		return NULL;
	owner = (void *)bio - bpf_core_field_offset(struct iomap_dio_simple, bio);
	return BPF_CORE_READ(owner, iocb);
}

static __always_inline void set_simple_direct(struct wire_segment *segment, struct bio_walk *walk,
					      struct bio *bio)
{
	struct kiocb *iocb = simple_request(bio);
	struct inode *inode = iocb ? BPF_CORE_READ(iocb, ki_filp, f_inode) : NULL;

	if (!inode)
		return;
	set_file(segment, inode, BPF_CORE_READ(iocb, ki_pos), CONTENT_FILE_DIRECT);
	segment->dirtier_pid = walk->queue.pid;
	segment->dirtier_tgid = walk->queue.tgid;
}

/* Direct I/O by fs/direct-io.c. */
static __always_inline void set_dio(struct wire_segment *segment, struct bio_walk *walk)
{
	struct dio *dio = (struct dio *)walk->private;
	struct inode *inode;

	if (!bpf_core_type_exists(struct dio))
		return;
	inode = BPF_CORE_READ(dio, inode);
	set_file(segment, inode, direct_offset(dio, segment->bytes), CONTENT_FILE_DIRECT);
	segment->dirtier_pid = walk->queue.pid;
	segment->dirtier_tgid = walk->queue.tgid;
}

/* Direct I/O on the block device: the pages are the user's, and there is no file. */
static __always_inline void set_device_direct(struct wire_segment *segment, struct bio_walk *walk)
{
	segment->content = CONTENT_DEVICE_DIRECT;
	segment->dirtier_pid = walk->queue.pid;
	segment->dirtier_tgid = walk->queue.tgid;
}

/* The part of a file that a bio of btrfs holds, where its pages do not say so. */
struct btrfs_part {
	struct inode *inode;
	__u64 offset;
	/* Of the file; 0: not known. */
	__u64 bytes;
	bool compressed;
};

/*
 * The btrfs_bio around the bio names the inode. Until Linux 6.4 only its private data did: of a
 * direct I/O or of a compressed extent, and only the pages tell which.
 */
static __always_inline void find_btrfs_part(struct btrfs_part *part, struct bio *bio, bool is_write)
{
	if (bpf_core_field_exists(struct btrfs_bio, inode)) {
		struct btrfs_bio *owner =
			(void *)bio - bpf_core_field_offset(struct btrfs_bio, bio);
		struct btrfs_inode *file = BPF_CORE_READ(owner, inode);
		struct btrfs_ordered_extent *ordered = NULL;

		part->offset = BPF_CORE_READ(owner, file_offset);
		if (file)
			part->inode =
				(void *)file + bpf_core_field_offset(struct btrfs_inode, vfs_inode);
		if (is_write && bpf_core_field_exists(struct btrfs_bio, ordered))
			ordered = BPF_CORE_READ(owner, ordered);
		if (!ordered)
			return;
		part->compressed = BPF_CORE_READ(ordered, compress_type) != 0;
		if (!part->compressed)
			return;
		part->offset = BPF_CORE_READ(ordered, file_offset);
		part->bytes = BPF_CORE_READ(ordered, num_bytes);
	} else if (bpf_core_field_exists(struct btrfs_bio___before_6_4, private)) {
		struct btrfs_bio___before_6_4 *owner =
			(void *)bio - bpf_core_field_offset(struct btrfs_bio___before_6_4, bio);
		void *private = BPF_CORE_READ(owner, private);

		part->offset = BPF_CORE_READ(owner, file_offset);
		if (part->compressed && private) {
			struct compressed_bio___before_6_4 *extent = private;

			part->inode = BPF_CORE_READ(extent, inode);
			part->offset = BPF_CORE_READ(extent, start);
			part->bytes = BPF_CORE_READ(extent, len);
		} else if (private) {
			struct btrfs_dio_private___before_6_4 *dio = private;

			part->inode = BPF_CORE_READ(dio, inode);
		}
	}
}

#define COMPRESSED_PAGES 32

/* Who wrote the pages of an extent, as far as it was looked at. */
struct extent_dirtier {
	struct page_key key;
	__u64 inode;
	__u32 generation;
	__u32 pid;
	__u32 tgid;
	__u32 are_several;
};

static long extent_step(__u32 page, struct extent_dirtier *found)
{
	struct page_dirtier *dirtier = bpf_map_lookup_elem(&dirtiers, &found->key);

	found->key.index++;
	if (!dirtier || dirtier->inode != found->inode || dirtier->generation != found->generation)
		return 0;
	if (found->pid && found->pid != dirtier->pid) {
		found->are_several = 1;
		return 1;
	}
	found->pid = dirtier->pid;
	found->tgid = dirtier->tgid;
	return 0;
}

/*
 * Who wrote the pages that were compressed (at most BTRFS_MAX_UNCOMPRESSED, 128 KiB): a kernel
 * thread compresses and submits them. If it was several threads, the extent is the first one's, and
 * marked as not known page by page. Not inline: so the loop is verified with little else.
 */
static __noinline void set_extent_dirtier(struct wire_segment *segment, struct inode *inode,
					  __u64 offset, __u64 bytes, struct known_file *known)
{
	struct extent_dirtier found = {
		.key.mapping = (__u64)BPF_CORE_READ(inode, i_mapping),
		.key.index = offset >> PAGE_SHIFT,
	};
	__u64 pages = (bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;

	found.inode = segment->inode;
	found.generation = segment->generation;
	bpf_loop(pages > COMPRESSED_PAGES ? COMPRESSED_PAGES : pages, extent_step, &found, 0);
	if (found.are_several)
		segment->flags |= SEGMENT_DIRTIER_BY_INODE;
	if (!found.pid && known && known->dirtier_pid) {
		found.pid = known->dirtier_pid;
		found.tgid = known->dirtier_tgid;
		segment->flags |= SEGMENT_DIRTIER_BY_INODE;
	}
	segment->dirtier_pid = found.pid;
	segment->dirtier_tgid = found.tgid;
}

/*
 * btrfs, pages of no file: the user's, in direct I/O, or those that a compressed extent was made in,
 * which have no mapping.
 */
static __always_inline void set_btrfs_part(struct wire_segment *segment, struct bio_walk *walk,
					   struct bio *bio, __u64 mapping)
{
	struct btrfs_part part = { .compressed = !mapping };
	struct known_file *known;

	if (walk->kind == END_IO_BTRFS_COPY &&
	    bpf_core_field_exists(struct btrfs_io_stripe, bioc)) {
		struct btrfs_io_stripe *stripe = (struct btrfs_io_stripe *)walk->private;

		bio = BPF_CORE_READ(stripe, bioc, orig_bio);
	}
	find_btrfs_part(&part, bio, walk->queue.opf & 1);
	if (!part.inode || !is_traced_inode_address(part.inode))
		return;
	if (part.compressed) {
		known = set_file(segment, part.inode, part.offset, CONTENT_FILE);
		segment->flags |= SEGMENT_WHOLE_BIO;
		if (walk->queue.opf & 1)
			set_extent_dirtier(segment, part.inode, part.offset, part.bytes, known);
		return;
	}
	set_file(segment, part.inode, part.offset, CONTENT_FILE_DIRECT);
	segment->dirtier_pid = walk->queue.pid;
	segment->dirtier_tgid = walk->queue.tgid;
}

/*
 * fscrypt writes a copy: a page without mapping, whose private data is the page that it is a copy of
 * (fscrypt_encrypt_pagecache_blocks(), fs/crypto/crypto.c). Other pages have private data of other
 * kinds, so what it leads to has to be a page of a file here. 0: it is not.
 */
static __always_inline __u64 plain_page(__u64 copy)
{
	__u64 plain = (__u64)BPF_CORE_READ((struct folio *)copy, private);
	struct inode *inode;
	__u64 mapping;

	if (!plain)
		return 0;
	mapping = (__u64)BPF_CORE_READ((struct folio *)head_of(plain), mapping);
	if (!mapping || (mapping & MAPPING_FLAGS))
		return 0;
	inode = BPF_CORE_READ((struct address_space *)mapping, host);
	if (!inode || (__u64)BPF_CORE_READ(inode, i_mapping) != mapping ||
	    (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK || !is_traced_inode_address(inode))
		return 0;
	return plain;
}

static __always_inline void set_btrfs_node(struct wire_segment *segment, struct bio_walk *walk,
					   __u64 page, __u32 offset, __u64 head)
{
	__u64 bytes = bytes_of(page);
	struct extent_buffer *buffer = BPF_CORE_READ((struct folio *)head, private);

	segment->content = CONTENT_BTRFS_NODE;
	walk->btree_left = 0;
	if (!bpf_core_type_exists(struct extent_buffer))
		return;
	/* Blocks smaller than a page share the folio's private data: then 4 KiB is the step. */
	if (buffer)
		walk->btree_left = BPF_CORE_READ(buffer, len);
	if (walk->btree_left < PAGE_BYTES || walk->btree_left > 65536)
		walk->btree_left = 16384;
	if (!bytes)
		return;
	bytes += offset;
	bpf_probe_read_kernel(&segment->offset, 8, (void *)(bytes + BTRFS_HEADER_BYTENR));
	bpf_probe_read_kernel(&segment->extra, 8, (void *)(bytes + BTRFS_HEADER_OWNER));
}

/*
 * The bytes from a place in a page on that have one writer, as far as it is told: to the end of the
 * folio, or of the page where the folio's may have several. Not inline, for the stack.
 */
static __noinline __u64 piece_bytes(__u64 page, __u64 offset, __u64 head, bool is_write)
{
	__u64 inside = ((page - head) / bpf_core_type_size(struct page)) * PAGE_BYTES + offset;

	if (is_write && is_by_page(head))
		return PAGE_BYTES - offset;
	return ((__u64)PAGE_BYTES << order_of(head)) - inside;
}

static __always_inline void start_page_segment(struct bio_walk *walk, struct wire_segment *segment,
					       __u64 page, __u32 offset, __u64 head, __u64 mapping,
					       __u64 index)
{
	struct inode *inode = BPF_CORE_READ((struct address_space *)mapping, host);
	__u16 mode = BPF_CORE_READ(inode, i_mode);
	struct known_file *known;

	if ((mode & S_IFMT) == S_IFBLK) {
		__u64 bytes = bytes_of(page);

		segment->content = CONTENT_BUFFER;
		if (bytes)
			bpf_probe_read_kernel(segment->head, sizeof(segment->head),
					      (void *)(bytes + offset));
		set_dirtier(segment, head, index, inode, NULL);
		return;
	}
	if (is_nilfs_node(inode, mapping)) {
		set_nilfs_node(segment, inode);
		set_dirtier(segment, head, index, inode, NULL);
		return;
	}
	if (is_f2fs_own(inode)) {
		__u64 bytes = walk->queue.opf & 1 ? bytes_of(page) : 0;

		set_f2fs(segment, inode, index, bytes);
		set_dirtier(segment, head, index, inode, NULL);
		return;
	}
	if (BPF_CORE_READ(inode, i_ino) == BTRFS_BTREE_INODE &&
	    BPF_CORE_READ(inode, i_sb, s_magic) == BTRFS_SUPER_MAGIC) {
		set_btrfs_node(segment, walk, page, offset, head);
		return;
	}
	known = set_file(segment, inode, index * PAGE_BYTES, CONTENT_FILE);
	if (walk->queue.opf & 1)
		set_dirtier(segment, head, index, inode, known);
}

/* True if the piece goes on where the last segment ended. */
static __always_inline bool joins(struct bio_walk *walk, struct wire_segment *last, __u64 mapping,
				  __u64 index, __u64 folio)
{
	struct page_dirtier *dirtier;

	/* Of the user's pages, wherever they lie; all of the bio is one piece of the file. */
	if (last->content == CONTENT_FILE_DIRECT || last->flags & SEGMENT_WHOLE_BIO)
		return true;
	if (mapping != walk->mapping || index != walk->next_index)
		return false;
	if (last->content == CONTENT_BTRFS_NODE)
		return walk->btree_left > 0;
	if (last->content != CONTENT_FILE)
		return false;
	if (!(walk->queue.opf & 1))
		return true;
	dirtier = dirtier_of(folio, index);
	if (!dirtier || dirtier->inode != last->inode)
		return last->flags & SEGMENT_DIRTIER_BY_INODE || !last->dirtier_pid;
	return dirtier->pid == last->dirtier_pid && !(last->flags & SEGMENT_DIRTIER_BY_INODE);
}

static long walk_step(__u32 index_of_step, struct step *step)
{
	struct bio_walk *walk = bpf_map_lookup_elem(&bio_walks, &step->walk);
	struct wire_segment *last;
	struct bio_vec vector = {};
	__u64 page, head, mapping, index, rest;
	__u32 offset, bytes, at;

	if (!walk || !walk->left)
		return 1;
	bpf_probe_read_kernel(&vector, sizeof(vector), (void *)walk->vector);
	at = vector.bv_offset + walk->vector_offset;
	page = (__u64)vector.bv_page + (at >> PAGE_SHIFT) * bpf_core_type_size(struct page);
	offset = at & (PAGE_BYTES - 1);
	head = head_of(page);
	bytes = vector.bv_len - walk->vector_offset;
	if (bytes > walk->left)
		bytes = walk->left;
	rest = piece_bytes(page, offset, head, walk->queue.opf & 1);
	if (bytes > rest)
		bytes = rest;
	if (!bytes)
		return 1;
	mapping = (__u64)BPF_CORE_READ((struct folio *)head, mapping);
	if (!mapping && walk->kind == END_IO_OTHER && walk->queue.opf & 1) {
		__u64 plain = plain_page(head);

		if (plain) {
			page = plain;
			head = head_of(plain);
			mapping = (__u64)BPF_CORE_READ((struct folio *)head, mapping);
		}
	}
	index = BPF_CORE_READ((struct folio *)head, index) +
		(page - head) / bpf_core_type_size(struct page);
	at = walk->queue.segments;
	last = at && at <= MAX_SEGMENTS ? &walk->segments[(at - 1) & (MAX_SEGMENTS - 1)] : NULL;
	if (!last || !joins(walk, last, mapping, index, head)) {
		last = new_segment(walk);
		if (!last)
			return 1;
		if (!mapping || (mapping & MAPPING_FLAGS)) {
			if ((walk->kind == END_IO_BTRFS || walk->kind == END_IO_BTRFS_COPY) &&
			    step->bio)
				set_btrfs_part(last, walk, step->bio, mapping);
			else if (walk->kind == END_IO_WAIT && mapping)
				set_device_direct(last, walk);
		} else {
			start_page_segment(walk, last, page, offset, head, mapping, index);
			if (last->content == CONTENT_FILE)
				last->offset += offset;
		}
	}
	last->bytes += bytes;
	if (last->content == CONTENT_BTRFS_NODE)
		walk->btree_left -= bytes < walk->btree_left ? bytes : walk->btree_left;
	walk->mapping = mapping;
	walk->next_index = index + ((offset + bytes + PAGE_BYTES - 1) >> PAGE_SHIFT);
	walk->done_bytes += bytes;
	walk->left -= bytes;
	walk->vector_offset += bytes;
	if (walk->vector_offset >= vector.bv_len) {
		walk->vector += sizeof(struct bio_vec);
		walk->vector_offset = 0;
	}
	return walk->left == 0;
}

/* Bios whose submitter says what they are, without a look at the pages. */
static __always_inline bool whole_segment(struct bio_walk *walk, struct bio *bio)
{
	struct wire_segment *segment;

	if (walk->kind != END_IO_IOMAP_DIRECT && walk->kind != END_IO_BUFFER_HEAD &&
	    walk->kind != END_IO_XFS_LOG && walk->kind != END_IO_XFS_BUFFER &&
	    walk->kind != END_IO_BTRFS_SUPERBLOCK && walk->kind != END_IO_DEVICE_DIRECT &&
	    walk->kind != END_IO_DIO && walk->kind != END_IO_IOMAP_SIMPLE)
		return false;
	segment = &walk->segments[0];
	__builtin_memset(segment, 0, sizeof(*segment));
	walk->queue.segments = 1;
	segment->bytes = walk->queue.bytes;
	switch (walk->kind) {
	case END_IO_IOMAP_DIRECT:
		set_direct(segment, walk);
		break;
	case END_IO_BUFFER_HEAD:
		set_buffer(segment, walk);
		break;
	case END_IO_XFS_LOG:
		set_xfs_log(segment, walk);
		break;
	case END_IO_XFS_BUFFER:
		set_xfs_buffer(segment, walk);
		break;
	case END_IO_DEVICE_DIRECT:
		set_device_direct(segment, walk);
		break;
	case END_IO_DIO:
		set_dio(segment, walk);
		break;
	case END_IO_IOMAP_SIMPLE:
		set_simple_direct(segment, walk, bio);
		break;
	default:
		segment->content = CONTENT_BTRFS_SUPERBLOCK;
	}
	return true;
}

/* The request that a bio of iomap's direct I/O is a part of. */
static __always_inline struct kiocb *request_of(struct bio_walk *walk, struct bio *bio)
{
	struct iomap_dio *dio = (struct iomap_dio *)walk->private;

	if (walk->kind == END_IO_IOMAP_SIMPLE)
		return simple_request(bio);
	return BPF_CORE_READ(dio, iocb);
}

/* A direct write that carries its own durability: the sync call that it is. */
static __always_inline __u64 sync_of_direct_write(struct bio_walk *walk, struct kiocb *iocb)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	int flags = BPF_CORE_READ(iocb, ki_flags);
	struct pt_regs *regs;
	bool closes = false;

	if (!(flags & IOCB_DSYNC) || (walk->queue.opf & 0xff) != 1)
		return 0;
	if (!(task->flags & (PF_KTHREAD | PF_IO_WORKER))) {
		regs = (struct pt_regs *)bpf_task_pt_regs(task);
		closes = is_write_call(syscall_of(regs));
	}
	return open_sync(BPF_CORE_READ(iocb, ki_filp, f_inode), 0, SYNC_VIA_DIRECT_WRITE,
			 !(flags & IOCB_SYNC), closes);
}

#endif
