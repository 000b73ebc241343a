//! Whether the images lie where the recording's requests do.

use std::ops::Range;

use iostep_model::SECTOR_BYTES;
use iostep_model::event::{Event, IoRef};
use iostep_report::quantity;

use super::image::{Image, Images};

/// What makes it likely that an image is somewhere else, in words.
pub(super) fn doubts(images: &Images, events: &[Event]) -> Vec<String> {
    let touched: Vec<Range<u64>> = events.iter().filter_map(bytes_of).collect();
    let given = images.all.iter().filter(|image| image.is_given);
    given
        .filter_map(|image| doubt(image, images.all.len() == 1, &touched))
        .collect()
}

fn doubt(image: &Image, is_only: bool, touched: &[Range<u64>]) -> Option<String> {
    let (start, end) = (image.start_bytes, image.end_bytes());
    let name = &image.name;
    if touched.is_empty() {
        return None;
    }
    if !touched.iter().any(|at| at.start < end && start < at.end) {
        return Some(format!(
            "{name}: no request lies in it, in the bytes {start} to {end} of the device; --offset \
             says where it begins"
        ));
    }
    let behind = touched.iter().filter(|at| at.end > end).count();
    (is_only && !image.is_placed && behind > 0).then(|| {
        format!(
            "{name}: {behind} of {} bios and requests go on behind its end, {}; if it is one \
             partition of the device, --offset says where it begins",
            touched.len(),
            quantity::bytes(end)
        )
    })
}

/// The bytes of the device that an event is about.
fn bytes_of(event: &Event) -> Option<Range<u64>> {
    let (sector, bytes) = match event.io()?.1 {
        IoRef::Queue(bio) => (bio.sector, bio.bytes),
        IoRef::Issue(request) => (request.sector, request.bytes),
        IoRef::Complete(_) | IoRef::Requeue(_) => return None,
    };
    let start = sector.saturating_mul(SECTOR_BYTES);
    (bytes > 0).then(|| start..start.saturating_add(bytes.into()))
}
