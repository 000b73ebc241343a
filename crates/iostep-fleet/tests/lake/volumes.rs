//! Rows of a trace of several filesystems.

use super::*;

/// Each row of a whole disk is of the filesystem that its bytes are on.
#[test]
fn rows_of_several_filesystems_say_which_one_they_are_of() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let mut trace = fixture::sqlite_on_ext4(300);
    let ext4 = trace.manifest.filesystem.take();
    let volumes = [("sda1", "ext4"), ("sda2", "xfs")].map(|(name, kind)| {
        let filesystem = ext4.clone().map(|mut filesystem| {
            filesystem.kind = kind.to_owned();
            filesystem
        });
        fixture::volume(name, filesystem)
    });
    trace.manifest.volumes = volumes.into();
    let on_second = |sector: u64| sector % 16 >= 8;
    for segment in &mut trace.segments {
        segment.volume = Some(on_second(segment.sector).into());
    }
    for (index, file) in trace.files.iter_mut().enumerate() {
        file.volume = Some((index % 2) as u16);
    }
    for sync in &mut trace.syncs {
        sync.volume = sync.file.map(|file| (file % 2) as u16);
    }
    let keep = Options {
        keep_paths: true,
        ..Options::default()
    };
    add(&lake, &id(1), &trace, &keep);
    let kind = |volume: Option<u16>| match volume {
        None => "",
        Some(0) => "ext4",
        Some(_) => "xfs",
    };
    for row in &rows(&lake, Table::Segments) {
        let own = &trace.segments[int(row, "segment_id") as usize];
        assert_eq!(text(row, "filesystem"), kind(own.volume), "{row:?}");
        if let Some(file) = own.file {
            let file = &trace.files[file as usize];
            let name = ["sda1", "sda2"][usize::from(file.volume.expect("one"))];
            let path = file.path.as_deref().unwrap_or_default();
            assert_eq!(text(row, "file"), format!("{name}:{path}"));
        }
    }
    for row in &rows(&lake, Table::Requests) {
        let own = &trace.requests[int(row, "request_id") as usize];
        let first = trace.segments_of(own).first();
        let volume = first.and_then(|part| part.volume);
        assert_eq!(text(row, "filesystem"), kind(volume), "{row:?}");
    }
    for row in &rows(&lake, Table::Syncs) {
        let own = &trace.syncs[int(row, "sync_id") as usize];
        assert_eq!(text(row, "filesystem"), kind(own.volume), "{row:?}");
    }
}
