//! What the rows of a trace share: names, made once and not for every row.

use std::borrow::Cow;

use bytes::Bytes;
use iostep_model::class::{FileType, Layer};
use iostep_model::error::Result;
use iostep_model::manifest::{Clocks, Manifest};
use iostep_model::store::Stream;
use iostep_model::sync::SyncKind;
use iostep_model::table::{self, File, Request, Segment, Sync};

use super::origin::{Origin, Surroundings, text};
use crate::column::int;
use crate::date::Date;
use crate::hidden::Key;
use crate::options::Options;

/// Directories of Android's data below which a directory has an app's name.
///
/// Source: frameworks/base `Environment.java` (`getDataUserCePackageDirectory` and its like), from
/// the root of the data partition: `data`, `user/N`, `user_de/N`, `media/N/Android/data`.
const APP_DIRECTORIES: [&[&str]; 4] = [
    &["data"],
    &["user", "*"],
    &["user_de", "*"],
    &["media", "*", "Android", "data"],
];

/// What is not known.
static EMPTY: Bytes = Bytes::new();

/// What the rows of a trace share, and what they say of the rows that they refer to.
pub(crate) struct Known {
    pub id: Bytes,
    clocks: Clocks,
    /// By device of a request, and for each of what is in no volume and of what is in each.
    origins: Vec<Vec<Origin>>,
    /// By row of `processes`.
    programs: Vec<Bytes>,
    /// By row of `files`.
    files: Vec<KnownFile>,
    /// By row of `syncs`.
    syncs: Vec<KnownSync>,
}

struct KnownFile {
    name: Bytes,
    app: Option<Bytes>,
    file_type: FileType,
    is_deleted: bool,
}

/// What is said of a sync call that made a request necessary. There may be many.
#[derive(Clone, Copy)]
pub(crate) struct KnownSync {
    pub kind: SyncKind,
    pub process: Option<u32>,
    pub file: Option<u32>,
}

impl From<&Sync> for KnownSync {
    fn from(sync: &Sync) -> KnownSync {
        KnownSync {
            kind: sync.kind,
            process: sync.process,
            file: sync.file,
        }
    }
}

impl Known {
    /// Errors: those of reading the trace's sync calls.
    pub(crate) fn of(stream: &Stream, id: &str, options: &Options, key: &Key) -> Result<Known> {
        let manifest = &stream.manifest;
        let volumes = (0..manifest.volumes.len()).map(|volume| Some(volume as u16));
        let places = std::iter::once(None).chain(volumes);
        let places: Vec<_> = places
            .map(|volume| Surroundings {
                host: &manifest.host,
                filesystem: manifest.filesystem_of(volume).map(|fs| fs.kind.as_str()),
                options,
                key,
            })
            .collect();
        let origins = (0..manifest.device_count()).map(|device| {
            let name = &manifest.device_at(device as u8).name;
            let is_below = |disk: &&iostep_model::disk::Disk| name.starts_with(&disk.name);
            let mut disks = manifest.disks.iter();
            let disk = disks.find(is_below).or(manifest.disks.first());
            places.iter().map(|place| Origin::of(place, disk)).collect()
        });
        let files = stream.files.iter().map(|file| KnownFile {
            name: match file
                .path
                .as_deref()
                .map(|path| path_of(manifest, file, path))
            {
                Some(path) if options.keep_paths => text(Some(&path)),
                Some(path) => key.hide("path", &path),
                None => Bytes::new(),
            },
            app: file
                .path
                .as_deref()
                .and_then(app_of_path)
                .map(|app| text(Some(app))),
            file_type: file.file_type,
            is_deleted: file.deleted_ns.is_some(),
        });
        let programs = table::programs(&stream.processes);
        let programs = stream.processes.iter().zip(programs);
        let programs = programs.map(|(process, program)| match process.kernel {
            true => Bytes::new(),
            false => text(Some(program)),
        });
        let mut syncs = Vec::new();
        for batch in stream.syncs()? {
            syncs.extend(batch?.iter().map(KnownSync::from));
        }
        Ok(Known {
            id: text(Some(id)),
            clocks: manifest.clocks,
            origins: origins.collect(),
            programs: programs.collect(),
            files: files.collect(),
            syncs,
        })
    }

    /// Where what is on a device, in a volume, comes from.
    pub(crate) fn origin(&self, device: u8, volume: Option<u16>) -> &Origin {
        let origins = self.origins.get(usize::from(device));
        let origins = origins.unwrap_or(&self.origins[0]);
        let place = volume.map_or(0, |volume| usize::from(volume) + 1);
        origins.get(place).unwrap_or(&origins[0])
    }

    /// A moment, in ns since 1970.
    pub(crate) fn wall_ns(&self, mono_ns: u64) -> i64 {
        let since = i128::from(mono_ns) - i128::from(self.clocks.mono_ns);
        let wall_ns = i128::from(self.clocks.wall_ns) + since;
        i64::try_from(wall_ns.max(0)).unwrap_or(i64::MAX)
    }

    /// The day of a moment, since 1970-01-01.
    pub(crate) fn day(&self, mono_ns: u64) -> i64 {
        Date::of_wall_ns(self.wall_ns(mono_ns)).days()
    }

    /// Path or what stands for it; empty where there is no file or no path.
    pub(crate) fn file(&self, file: Option<u32>) -> &Bytes {
        self.known(file).map_or(&EMPTY, |file| &file.name)
    }

    pub(crate) fn file_type(&self, file: Option<u32>) -> &'static str {
        let file_type = self.known(file).map(|file| file.file_type);
        file_type.map_or("", FileType::name)
    }

    /// 1 for a file that a database keeps only to redo or undo what it writes elsewhere.
    pub(crate) fn is_database_log(&self, file: Option<u32>) -> i64 {
        let file_type = self.known(file).map(|file| file.file_type);
        file_type.is_some_and(FileType::is_database_log).into()
    }

    /// 1 for a file that was seen to be deleted; a rollback journal then was one of DELETE.
    pub(crate) fn is_deleted(&self, file: Option<u32>) -> i64 {
        self.known(file).is_some_and(|file| file.is_deleted).into()
    }

    fn known(&self, file: Option<u32>) -> Option<&KnownFile> {
        self.files.get(file? as usize)
    }

    /// The program of a thread; empty for none, and for a thread of the kernel.
    pub(crate) fn program(&self, process: Option<u32>) -> &Bytes {
        let program = process.and_then(|process| self.programs.get(process as usize));
        program.unwrap_or(&EMPTY)
    }

    /// How many sync calls there are.
    pub(crate) fn syncs(&self) -> usize {
        self.syncs.len()
    }

    pub(crate) fn sync(&self, sync: Option<u32>) -> Option<KnownSync> {
        self.syncs.get(sync? as usize).copied()
    }

    /// Whose doing a sync call is.
    pub(crate) fn app_of_sync(&self, sync: KnownSync) -> &Bytes {
        let app = self.app_of_file(sync.file);
        app.unwrap_or_else(|| self.program(sync.process))
    }

    /// Whose doing a part of a request is: for a file's data whoever has the file or made it dirty, for
    /// all else whoever made it necessary.
    pub(crate) fn app_of_segment(&self, request: &Request, segment: &Segment) -> &Bytes {
        let dirtier = || Some(self.program(segment.dirtier));
        let cause = || self.sync(segment.cause).map(|sync| self.app_of_sync(sync));
        let is_data = segment.class.layer() == Layer::Data;
        let (first, second) = match is_data {
            true => (dirtier(), cause()),
            false => (cause(), dirtier()),
        };
        let owner = self.app_of_file(segment.file).filter(|_| is_data);
        let apps = [owner, first, second, self.app_of_file(segment.file)];
        let mut apps = apps.into_iter().flatten();
        apps.find(|app| !app.is_empty())
            .unwrap_or_else(|| self.program(request.submitter))
    }

    /// Whose doing a request is: that of its first part, or of whoever waits for it.
    pub(crate) fn app_of_request(&self, request: &Request, segments: &[Segment]) -> &Bytes {
        match (segments.first(), self.sync(request.sync)) {
            (Some(segment), _) => self.app_of_segment(request, segment),
            (None, Some(sync)) => self.app_of_sync(sync),
            (None, None) => self.program(request.submitter),
        }
    }

    fn app_of_file(&self, file: Option<u32>) -> Option<&Bytes> {
        self.known(file)?.app.as_ref()
    }

    /// Time of a request at the device, and before it, in ns.
    pub(crate) fn device_ns(request: &Request) -> Option<i64> {
        let complete_ns = request.complete_ns?;
        Some(int(complete_ns.saturating_sub(request.issue_ns)))
    }

    pub(crate) fn wait_ns(request: &Request) -> i64 {
        int(request.issue_ns.saturating_sub(request.queue_ns))
    }
}

/// A path below the filesystem's root; behind the filesystem's name where there are several.
fn path_of<'a>(manifest: &Manifest, file: &File, path: &'a str) -> Cow<'a, str> {
    match manifest.volume_title(file.volume) {
        "" => Cow::Borrowed(path),
        title => Cow::Owned(format!("{title}:{path}")),
    }
}

/// The app that a path below the filesystem's root belongs to, where its directories tell.
fn app_of_path(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let below = |directory: &&&[&str]| {
        // More than the directory itself: a file in it is no app's.
        let is_longer = parts.len() > directory.len() + 1;
        let mut pairs = directory.iter().zip(&parts);
        is_longer && pairs.all(|(known, part)| *known == "*" || known == part)
    };
    let directory = APP_DIRECTORIES.iter().find(below)?;
    // A package has a dot: /data/mysql on a server is none.
    Some(parts[directory.len()]).filter(|name| name.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn androids_directories_name_their_apps_and_no_others_do() {
        for (path, app) in [
            (
                "/data/com.example.mail/databases/a.db",
                Some("com.example.mail"),
            ),
            ("/user/0/com.example.mail/files/x", Some("com.example.mail")),
            ("/user_de/10/com.example/x", Some("com.example")),
            (
                "/media/0/Android/data/com.example/cache/x",
                Some("com.example"),
            ),
            ("/data/mysql/ibdata1", None),
            ("/data/file.txt", None),
            ("/user/0", None),
            ("/srv/data/com.example/x", None),
            ("", None),
        ] {
            assert_eq!(app_of_path(path), app, "{path}");
        }
    }
}
