//! A part of a trace: the I/O of some processes, or of some files.
//!
//! Parts are cut out of a trace whose attribution is done, for that needs every event.

mod unmatched;

pub use glob::Pattern;
pub use unmatched::{Unmatched, Value};

use iostep_model::class::Layer;
use iostep_model::table::{ProcessRow, Request, Segment, Sync, Trace};
use iostep_report::quantity;

use crate::stats::Split;

/// What stays. Of each kind one has to fit; a kind that is empty lets everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Numbers of processes or threads.
    pub pids: Vec<u32>,
    /// Names of programs or threads.
    pub comms: Vec<Pattern>,
    /// Control groups, with those below them: paths, or, without a `/`, their names or numbers.
    pub cgroups: Vec<Pattern>,
    /// Paths of files, or, without a `/`, their names.
    pub files: Vec<Pattern>,
}

impl Filter {
    /// True if everything stays.
    pub fn is_empty(&self) -> bool {
        !self.is_by_process() && self.files.is_empty()
    }

    fn is_by_process(&self) -> bool {
        !(self.pids.is_empty() && self.comms.is_empty() && self.cgroups.is_empty())
    }

    /// The part of `trace` that fits, with a note on how much that is. Bytes are their process's:
    /// who dirtied them, else who waited for them in a sync call, else who submitted them. The
    /// filesystem's journal and metadata are the file's whose sync call needed them. A request
    /// with bytes of others keeps those that fit.
    pub fn apply(&self, trace: Trace) -> Trace {
        if self.is_empty() {
            return trace;
        }
        let fits = Fits::new(self, &trace);
        let before = sums(&trace);
        let mut part = Trace {
            requests: Vec::new(),
            segments: Vec::new(),
            syncs: Vec::new(),
            ..trace
        };
        let syncs: Vec<Option<u32>> = trace
            .syncs
            .iter()
            .map(|sync| {
                fits.sync(sync).then(|| {
                    part.syncs.push(sync.clone());
                    part.syncs.len() as u32 - 1
                })
            })
            .collect();
        let renumbered = |sync: Option<u32>| sync.and_then(|sync| syncs[sync as usize]);
        for commit in &mut part.commits {
            commit.cause = renumbered(commit.cause);
        }
        for request in &trace.requests {
            let first = request.first_segment as usize;
            let segments = &trace.segments[first..first + usize::from(request.segments)];
            let fit: Vec<&Segment> = segments
                .iter()
                .filter(|segment| fits.segment(segment, request, &trace.syncs))
                .collect();
            if fit.is_empty() && !(segments.is_empty() && fits.request(request, &trace.syncs)) {
                continue;
            }
            let mut kept = request.clone();
            kept.sync = renumbered(request.sync);
            kept.first_segment = part.segments.len() as u32;
            kept.segments = fit.len() as u16;
            if fit.len() < segments.len() {
                kept.sector = fit[0].sector;
                kept.bytes = fit.iter().map(|segment| segment.bytes).sum();
            }
            let number = part.requests.len() as u32;
            part.segments.extend(fit.into_iter().map(|segment| Segment {
                request: number,
                cause: renumbered(segment.cause),
                ..segment.clone()
            }));
            part.requests.push(kept);
        }
        let mut note = self.note(before, sums(&part));
        if !self.cgroups.is_empty() {
            note.push_str(&missing_groups(&part.processes));
        }
        part.manifest.check.notes.insert(0, note);
        part
    }

    fn note(&self, whole: Split, part: Split) -> String {
        let mut kinds = Vec::new();
        let mut kind = |name: &str, values: Vec<String>| {
            if !values.is_empty() {
                kinds.push(format!("{name} {}", values.join(" or ")));
            }
        };
        let words = |patterns: &[Pattern]| patterns.iter().map(Pattern::to_string).collect();
        kind("process", self.pids.iter().map(u32::to_string).collect());
        kind("name", words(&self.comms));
        kind("control group", words(&self.cgroups));
        kind("file", words(&self.files));
        let bytes = quantity::bytes;
        format!(
            "only {}: {} of {} written, {} of {} read; everything else is left out, and all sums \
             but the self-check's are of this part",
            kinds.join(", "),
            bytes(part.write.bytes),
            bytes(whole.write.bytes),
            bytes(part.read.bytes),
            bytes(whole.read.bytes),
        )
    }
}

fn sums(trace: &Trace) -> Split {
    let mut sums = Split::default();
    for request in trace.requests.iter().filter(|request| !request.by_tracer) {
        if let Some(side) = sums.side(request.operation) {
            side.add(request.bytes.into());
        }
    }
    sums
}

/// What is said where threads have no control group that is known; they are in no part.
fn missing_groups(threads: &[ProcessRow]) -> String {
    let is_unknown = |row: &&ProcessRow| row.cgroup_id.is_none() && row.cgroup.is_none();
    match threads.iter().filter(is_unknown).count() {
        0 => String::new(),
        all if all == threads.len() => "; this trace does not tell control groups".to_owned(),
        some => format!(
            "; of {some} of {} threads no control group is known",
            threads.len()
        ),
    }
}

/// True if a pattern means this path, or, without a `/`, its last name.
fn fits(pattern: &Pattern, path: &str) -> bool {
    match pattern.as_str().contains('/') {
        true => pattern.matches(path),
        false => pattern.matches(path.rsplit('/').next().unwrap_or(path)),
    }
}

/// True if a thread's control group, or one above it, is meant by one of the patterns.
fn is_in_group(row: &ProcessRow, patterns: &[Pattern]) -> bool {
    let path = row.cgroup.as_deref().unwrap_or_default();
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let above = slashes.filter(|at| *at > 0).chain([path.len()]);
    let groups: Vec<&str> = above.map(|end| &path[..end]).collect();
    let id = row.cgroup_id.map(|id| id.to_string());
    patterns.iter().any(|pattern| {
        pattern.as_str() == "/" && !path.is_empty()
            || groups.iter().any(|group| fits(pattern, group))
            || id.as_ref().is_some_and(|id| pattern.as_str() == id)
    })
}

/// Which rows of a trace fit.
struct Fits {
    threads: Option<Vec<bool>>,
    files: Option<Vec<bool>>,
}

impl Fits {
    fn new(filter: &Filter, trace: &Trace) -> Fits {
        let thread = |number: usize| {
            let row = &trace.processes[number];
            let is_pid = |pid: &u32| *pid == row.pid || *pid == row.tgid;
            let program = trace.program(number as u32);
            let is_comm = |comm: &Pattern| comm.matches(&row.comm) || comm.matches(program);
            (filter.pids.is_empty() || filter.pids.iter().any(is_pid))
                && (filter.comms.is_empty() || filter.comms.iter().any(is_comm))
                && (filter.cgroups.is_empty() || is_in_group(row, &filter.cgroups))
        };
        let file = |number: u32| {
            let paths: Vec<String> = trace.file_paths(number).collect();
            let is_file = |pattern: &Pattern| paths.iter().any(|path| fits(pattern, path));
            filter.files.iter().any(is_file)
        };
        let threads = || (0..trace.processes.len()).map(thread).collect();
        Fits {
            threads: filter.is_by_process().then(threads),
            files: (!filter.files.is_empty())
                .then(|| (0..trace.files.len() as u32).map(file).collect()),
        }
    }

    fn both(&self, thread: Option<u32>, file: Option<u32>) -> bool {
        let fits = |rows: &Option<Vec<bool>>, row: Option<u32>| match rows {
            Some(rows) => row.is_some_and(|row| rows[row as usize]),
            None => true,
        };
        fits(&self.threads, thread) && fits(&self.files, file)
    }

    fn sync(&self, sync: &Sync) -> bool {
        self.both(sync.process, sync.file)
    }

    fn segment(&self, segment: &Segment, request: &Request, syncs: &[Sync]) -> bool {
        let cause = segment.cause.map(|cause| &syncs[cause as usize]);
        let thread = segment.dirtier.or(cause.and_then(|sync| sync.process));
        let synced = cause.and_then(|sync| sync.file);
        let file = match segment.class.layer() {
            Layer::Data => segment.file,
            Layer::Journal | Layer::Metadata | Layer::Unknown => synced.or(segment.file),
        };
        self.both(thread.or(request.submitter), file)
    }

    /// A request of which nothing is known but who made it: a flush, or bytes without an owner.
    fn request(&self, request: &Request, syncs: &[Sync]) -> bool {
        let sync = request.sync.map(|sync| &syncs[sync as usize]);
        let thread = sync.and_then(|sync| sync.process).or(request.submitter);
        self.both(thread, sync.and_then(|sync| sync.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;
    use iostep_model::fixture;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).expect("a pattern")
    }

    #[test]
    fn a_file_keeps_its_data_its_syncs_and_what_they_needed() {
        let whole = Summary::of(&fixture::sqlite_on_ext4(120));
        let filter = Filter {
            files: vec![pattern("*-wal")],
            ..Filter::default()
        };
        let part = Summary::of(&filter.apply(fixture::sqlite_on_ext4(120)));
        let row = |summary: &Summary| {
            let mut rows = summary.joj.by_path().into_iter();
            rows.find(|row| row.user_path.ends_with("-wal"))
                .expect("a row")
        };
        let (before, after) = (row(&whole), row(&part));
        assert_eq!(after.data_bytes, before.data_bytes);
        assert_eq!(after.journal_bytes, before.journal_bytes);
        assert_eq!(after.syncs, before.syncs);
        assert_eq!(part.files.len(), 1, "{:?}", part.files);
        assert_eq!(
            part.all().write.bytes,
            after.data_bytes + after.journal_bytes
        );
        assert!(part.barriers.flushes < whole.barriers.flushes);
    }

    #[test]
    fn a_renamed_file_is_found_by_its_last_and_by_its_first_name() {
        let renamed = || {
            let mut trace = fixture::sqlite_on_ext4(60);
            trace.files[0].first_path = Some("/new/app.tmp".into());
            trace
        };
        let of = |text: &str| {
            let files = vec![pattern(text)];
            let filter = Filter {
                files,
                ..Filter::default()
            };
            sums(&filter.apply(renamed())).write.bytes
        };
        let by_last = of("app.db");
        assert!(by_last > 0);
        for text in ["/new/app.tmp", "app.tmp", "*.tmp"] {
            assert_eq!(of(text), by_last, "{text}");
        }
        assert_eq!(of("app"), 0);
        let unmatched = |text: &str| {
            let filter = Filter {
                files: vec![pattern(text)],
                ..Filter::default()
            };
            filter.unmatched(&renamed()).len()
        };
        assert_eq!(unmatched("app.tmp"), 0);
        assert_eq!(unmatched("other.tmp"), 1);
    }

    #[test]
    fn a_control_group_keeps_what_its_processes_and_those_below_it_caused() {
        let of = |filter: Filter| {
            let part = filter.apply(fixture::sqlite_on_ext4(120));
            (
                sums(&part).write.bytes,
                part.manifest.check.notes[0].clone(),
            )
        };
        let group = |text: &str| {
            of(Filter {
                cgroups: vec![pattern(text)],
                ..Filter::default()
            })
        };
        let (app, _) = of(Filter {
            comms: vec![pattern("app")],
            ..Filter::default()
        });
        for text in [
            "/system.slice/app.service",
            "app.*",
            "4711",
            "/system.slice",
            "system.slice",
            "/system.slice/*",
        ] {
            assert_eq!(group(text).0, app, "{text}");
        }
        for text in ["/system", "/system.slice/app", "471", "/app.service"] {
            assert_eq!(group(text).0, 0, "{text}");
        }
        assert_eq!(
            group("/").0,
            sums(&fixture::sqlite_on_ext4(120)).write.bytes
        );
        assert!(group("app.*").1.starts_with("only control group app.*: "));
    }

    #[test]
    fn threads_without_a_control_group_are_told_of() {
        let note = |unknown: usize| {
            let mut trace = fixture::sqlite_on_ext4(120);
            for row in trace.processes.iter_mut().take(unknown) {
                (row.cgroup, row.cgroup_id) = (None, None);
            }
            let filter = Filter {
                cgroups: vec![pattern("app.service")],
                ..Filter::default()
            };
            filter.apply(trace).manifest.check.notes.swap_remove(0)
        };
        let all = fixture::sqlite_on_ext4(120).processes.len();
        let some = format!("; of 1 of {all} threads no control group is known");
        assert!(note(1).ends_with(&some), "{}", note(1));
        assert!(note(all).ends_with("; this trace does not tell control groups"));
        assert!(note(0).ends_with("are of this part"), "{}", note(0));
    }

    #[test]
    fn the_parts_of_all_files_and_the_rest_add_up_and_the_note_says_how_much() {
        let trace = fixture::sqlite_on_ext4(120);
        let written = sums(&trace).write.bytes;
        let of = |filter: Filter| {
            sums(&filter.apply(fixture::sqlite_on_ext4(120)))
                .write
                .bytes
        };
        let by_pid = |pid: u32| {
            of(Filter {
                pids: vec![pid],
                ..Filter::default()
            })
        };
        let pids = trace.processes.iter().filter(|row| row.pid == row.tgid);
        assert_eq!(pids.map(|row| by_pid(row.pid)).sum::<u64>(), written);
        let filter = Filter {
            comms: vec![pattern("nobody*")],
            ..Filter::default()
        };
        let none = filter.apply(trace);
        assert!(none.requests.is_empty() && none.segments.is_empty() && none.syncs.is_empty());
        let expected = format!(
            "only name nobody*: 0 B of {} written, 0 B of 36 KiB read; everything else",
            quantity::bytes(written)
        );
        assert!(none.manifest.check.notes[0].starts_with(&expected));
    }
}
