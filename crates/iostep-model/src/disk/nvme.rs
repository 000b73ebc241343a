//! NVMe's SMART / health log page, which no file of sysfs has.

use std::fs::File;
use std::path::Path;

use rustix::ioctl::{self, Updater, opcode};

/// `struct nvme_admin_cmd` (include/uapi/linux/nvme_ioctl.h).
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// Get Log Page, and the page (NVM Express Base Specification 2.0, 5.16).
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH_PAGE: u32 = 0x02;
const PAGE_BYTES: usize = 512;
/// All namespaces: the health of the controller.
const EVERY_NAMESPACE: u32 = u32::MAX;
/// Where "percentage used" is in the page.
const PERCENTAGE_USED_AT: usize = 5;
/// A controller that does not answer by then is not waited for.
const TIMEOUT_MS: u32 = 2000;

/// "Percentage used" of the controller behind a namespace's node; `None` without the right to ask,
/// and where it does not answer.
pub fn percentage_used(node: &Path) -> Option<u8> {
    Some(health_page(node)?[PERCENTAGE_USED_AT])
}

fn health_page(node: &Path) -> Option<[u8; PAGE_BYTES]> {
    const ADMIN_COMMAND: ioctl::Opcode = opcode::read_write::<Command>(b'N', 0x41);
    let device = File::open(node).ok()?;
    let mut page = [0; PAGE_BYTES];
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: EVERY_NAMESPACE,
        address: page.as_mut_ptr() as u64,
        data_bytes: PAGE_BYTES as u32,
        // The length in words of 4 bytes, less one, above the page's number.
        words_10_15: [
            (PAGE_BYTES as u32 / 4 - 1) << 16 | HEALTH_PAGE,
            0,
            0,
            0,
            0,
            0,
        ],
        timeout_ms: TIMEOUT_MS,
        ..Command::default()
    };
    // SAFETY: the kernel reads and writes the command, whose layout is its own, and writes at most
    // `data_bytes` bytes at `address`, which are those of `page`, alive until it answers; every
    // content of both is valid. Other devices refuse the number.
    let done = unsafe {
        ioctl::ioctl(
            &device,
            Updater::<ADMIN_COMMAND, Command>::new(&mut command),
        )
    };
    // A positive answer is the controller's own error, which rustix drops; the page then stays
    // empty, and a real one has a temperature (bytes 1 and 2, kelvin).
    done.ok()?;
    (page[1..3] != [0, 0]).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_kernels_layout() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(std::mem::offset_of!(Command, address), 24);
        assert_eq!(std::mem::offset_of!(Command, words_10_15), 40);
    }

    #[test]
    fn what_is_no_nvme_tells_nothing() {
        assert_eq!(percentage_used(Path::new("/dev/null")), None);
        assert_eq!(percentage_used(Path::new("/dev/none-of-ours")), None);
    }
}
