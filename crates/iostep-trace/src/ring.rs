//! A BPF ring buffer that may fill as fast as it is read.
//!
//! libbpf reads until the ring is empty (`ringbuf_process_ring` of its ringbuf.c), which never is
//! where a slow processor traces a busy device: neither a limit of time nor Ctrl-C would end that.

use std::cell::Cell;
use std::rc::Rc;

use libbpf_rs::{AsRawLibbpf, MapCore, RingBuffer, RingBufferBuilder};

use crate::error::{Error, Result};

/// Each record's own head in the ring, and what its length is rounded up to
/// (`BPF_RINGBUF_HDR_SZ`).
const HEAD_BYTES: usize = 8;
/// What the callback says to end a pass.
const ENOUGH: i32 = -libc::ECANCELED;

/// A ring buffer and what is done with each record.
pub(crate) struct Ring<'a> {
    ring: RingBuffer<'a>,
    /// Bytes of this pass that are still to be read.
    left: Rc<Cell<usize>>,
}

impl<'a> Ring<'a> {
    /// Opens the ring buffer of a map; `callback` is given each record.
    ///
    /// Errors: `Kernel`.
    pub(crate) fn open(
        map: &'a dyn MapCore,
        mut callback: impl FnMut(&[u8]) + 'a,
    ) -> Result<Ring<'a>> {
        let left = Rc::new(Cell::new(0usize));
        let rest = Rc::clone(&left);
        let count = move |bytes: &[u8]| {
            callback(bytes);
            let taken = HEAD_BYTES + bytes.len().next_multiple_of(HEAD_BYTES);
            rest.set(rest.get().saturating_sub(taken));
            if rest.get() == 0 { ENOUGH } else { 0 }
        };
        let mut builder = RingBufferBuilder::new();
        let failed = || Error::kernel("open the ring buffer");
        builder.add(map, count).map_err(failed())?;
        let ring = builder.build().map_err(failed())?;
        Ok(Ring { ring, left })
    }

    /// Reads what is in the ring at this moment, and not what comes meanwhile.
    ///
    /// Errors: `Kernel`.
    pub(crate) fn drain(&self) -> Result<()> {
        self.left.set(self.bytes());
        if self.left.get() == 0 {
            return Ok(());
        }
        let result = self.ring.consume_raw();
        if result >= 0 || result == ENOUGH {
            return Ok(());
        }
        let error = libbpf_rs::Error::from_raw_os_error(-result);
        Err(Error::kernel("read the ring buffer")(error))
    }

    /// How much is in the ring.
    fn bytes(&self) -> usize {
        // SAFETY: the manager lives as long as `self`, and `open` gave it one ring, number 0.
        unsafe {
            let ring = libbpf_sys::ring_buffer__ring(self.ring.as_libbpf_object().as_ptr(), 0);
            libbpf_sys::ring__avail_data_size(ring) as usize
        }
    }
}
