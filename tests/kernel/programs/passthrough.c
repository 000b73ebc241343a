/*
 * Commands past the block layer's own: each line on standard output is one, "in", "out" or "none" by
 * the way its data goes, and its bytes.
 *
 *     passthrough DEVICE [COUNT]
 *
 * SCSI disks take them by SG_IO, NVMe disks by NVME_IOCTL_IO_CMD and NVME_IOCTL_ADMIN_CMD, cards by
 * MMC_IOC_CMD. What is written is what was read from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mmc/ioctl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static uint8_t data[8192] __attribute__((aligned(4096)));

static void fail(const char *what)
{
	fprintf(stderr, "passthrough: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void told(const char *way, unsigned int bytes)
{
	printf("%s %u\n", way, bytes);
}

static void scsi(int fd, const uint8_t *command, size_t length, int direction, unsigned int bytes)
{
	struct sg_io_hdr header = {
		.interface_id = 'S',
		.dxfer_direction = direction,
		.cmd_len = length,
		.cmdp = (unsigned char *)command,
		.dxferp = bytes ? data : NULL,
		.dxfer_len = bytes,
		.timeout = 10000,
	};

	if (ioctl(fd, SG_IO, &header))
		fail("SG_IO");
	if (header.status)
		fprintf(stderr, "passthrough: status %u\n", header.status);
	told(direction == SG_DXFER_NONE     ? "none"
	     : direction == SG_DXFER_TO_DEV ? "out"
					    : "in",
	     bytes);
}

static void scsi_all(int fd)
{
	/* INQUIRY, TEST UNIT READY, READ(10) and WRITE(10) of 8 blocks at 16, SYNCHRONIZE CACHE. */
	static const uint8_t inquiry[6] = { 0x12, 0, 0, 0, 96 };
	static const uint8_t ready[6];
	static const uint8_t read10[10] = { 0x28, 0, 0, 0, 0, 16, 0, 0, 8 };
	static const uint8_t write10[10] = { 0x2a, 0, 0, 0, 0, 16, 0, 0, 8 };
	static const uint8_t sync[10] = { 0x35 };

	scsi(fd, inquiry, sizeof(inquiry), SG_DXFER_FROM_DEV, 96);
	scsi(fd, ready, sizeof(ready), SG_DXFER_NONE, 0);
	scsi(fd, read10, sizeof(read10), SG_DXFER_FROM_DEV, 4096);
	scsi(fd, write10, sizeof(write10), SG_DXFER_TO_DEV, 4096);
	scsi(fd, sync, sizeof(sync), SG_DXFER_NONE, 0);
}

static void nvme(int fd, uint8_t opcode, uint32_t namespace, unsigned int bytes, uint32_t blocks)
{
	struct nvme_passthru_cmd command = {
		.opcode = opcode,
		.nsid = namespace,
		.addr = bytes ? (uintptr_t)data : 0,
		.data_len = bytes,
		.cdw10 = 16,
		.cdw12 = blocks,
	};

	if (ioctl(fd, NVME_IOCTL_IO_CMD, &command) < 0)
		fail("NVME_IOCTL_IO_CMD");
	told(!bytes ? "none" : opcode & 1 ? "out" : "in", bytes);
}

static void nvme_all(int fd, int namespace)
{
	/* Read, Write, Flush; the number of blocks less one. */
	nvme(fd, 2, namespace, 4096, 7);
	nvme(fd, 1, namespace, 4096, 7);
	nvme(fd, 0, namespace, 0, 0);
}

static void card_all(int fd)
{
	/* SEND_STATUS (CMD13), answered without data: R1, addressed. */
	struct mmc_ioc_cmd command = { .opcode = 13, .arg = 0, .flags = 0x15 };

	/* Some hosts want the card's own address; the answer does not matter. */
	if (ioctl(fd, MMC_IOC_CMD, &command) && errno != EIO && errno != ETIMEDOUT)
		fail("MMC_IOC_CMD");
	told("none", 0);
}

int main(int count, char **arguments)
{
	const char *path = count > 1 ? arguments[1] : "";
	int times = count > 2 ? atoi(arguments[2]) : 1, namespace;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail(path);
	while (times-- > 0) {
		namespace = ioctl(fd, NVME_IOCTL_ID);
		if (namespace > 0)
			nvme_all(fd, namespace);
		else if (strstr(path, "mmcblk"))
			card_all(fd);
		else
			scsi_all(fd);
	}
	return 0;
}
