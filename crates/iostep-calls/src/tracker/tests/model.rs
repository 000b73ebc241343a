//! Random programs against a model that shares nothing with the tracker: a descriptor is an index
//! into a list of open files.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Open,
    Close(u8),
    Dup(u8),
    Dup2(u8, u8),
    Read(u8),
    Fork,
    Thread,
    Exec,
    Exit,
    CloseRange(u8),
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let fd = 0..8u8;
    let step = prop_oneof![
        4 => Just(Step::Open),
        3 => fd.clone().prop_map(Step::Close),
        2 => fd.clone().prop_map(Step::Dup),
        2 => (fd.clone(), fd.clone()).prop_map(|(from, to)| Step::Dup2(from, to)),
        6 => fd.clone().prop_map(Step::Read),
        2 => Just(Step::Fork),
        1 => Just(Step::Thread),
        1 => Just(Step::Exec),
        1 => Just(Step::Exit),
        1 => fd.prop_map(Step::CloseRange),
    ];
    (any::<u8>(), step)
}

/// A process: descriptor to open file, and whether exec closes it.
type Files = BTreeMap<i32, (u32, bool)>;

#[derive(Default)]
struct Model {
    processes: Vec<Files>,
    /// Thread to process.
    threads: BTreeMap<u32, usize>,
    opened: u32,
    last_tid: u32,
    reads: Vec<u32>,
}

impl Model {
    /// The lowest free number above the standard streams.
    fn free(files: &Files) -> i32 {
        (3..)
            .find(|number| !files.contains_key(number))
            .expect("a number")
    }

    fn clone(&mut self, program: &mut Program, tid: u32, thread: bool) {
        if self.threads.len() == 6 {
            return;
        }
        self.last_tid += 1;
        let process = self.threads[&tid];
        let child = if thread {
            process
        } else {
            self.processes.push(self.processes[process].clone());
            self.processes.len() - 1
        };
        self.threads.insert(self.last_tid, child);
        program.clone(tid, self.last_tid, thread);
    }

    fn step(&mut self, program: &mut Program, (who, step): (u8, Step)) {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        let Some(&tid) = tids.get(usize::from(who) % tids.len().max(1)) else {
            return;
        };
        let process = self.threads[&tid];
        let files = &mut self.processes[process];
        let fd = |number: u8| i32::from(number) + 3;
        match step {
            Step::Open => {
                let number = Model::free(files);
                self.opened += 1;
                let marked = self.opened.is_multiple_of(3);
                files.insert(number, (self.opened, marked));
                let flags = if marked { OpenFlags::O_CLOEXEC } else { READ };
                program.open(tid, path("/f"), flags, number);
            }
            Step::Close(number) => {
                if files.remove(&fd(number)).is_some() {
                    program.close(tid, fd(number));
                }
            }
            Step::Dup(from) => {
                if let Some(&(file, _)) = files.get(&fd(from)) {
                    let to = Model::free(files);
                    files.insert(to, (file, false));
                    program.dup(tid, Syscall::Dup, fd(from), to);
                }
            }
            Step::Dup2(from, to) => {
                if let Some(&(file, marked)) = files.get(&fd(from)) {
                    let marked = from == to && marked;
                    files.insert(fd(to), (file, marked));
                    program.dup(tid, Syscall::Dup2, fd(from), fd(to));
                }
            }
            Step::Read(number) => {
                if let Some(&(file, _)) = files.get(&fd(number)) {
                    self.reads.push(file);
                    program.read(tid, fd(number));
                }
            }
            Step::CloseRange(first) => {
                files.retain(|number, _| *number < fd(first));
                let action = Action::CloseRange {
                    first: fd(first) as u32,
                    last: u32::MAX,
                    on_exec_only: false,
                };
                program.act(tid, action, OK);
            }
            Step::Fork => self.clone(program, tid, false),
            Step::Thread => self.clone(program, tid, true),
            Step::Exec => {
                files.retain(|_, (_, marked)| !*marked);
                self.threads
                    .retain(|other, of| *other == tid || *of != process);
                let name = "program".into();
                program.act(tid, Action::Execute { name }, OK);
            }
            Step::Exit => {
                self.threads.remove(&tid);
                if !self.threads.values().any(|of| *of == process) {
                    self.processes[process].clear();
                }
                program.exit(tid, false);
            }
        }
    }
}

/// References of each open file, as a reader of the recording counts them.
fn references(finished: &Finished<Recording>) -> HashMap<u32, i64> {
    let mut count: HashMap<u32, i64> = HashMap::new();
    let mut add = |handle: HandleId, by| *count.entry(handle.0).or_default() += by;
    for call in &finished.sink.calls {
        match &call.operation {
            Operation::Open { .. } => match call.outcome {
                iostep_model::syscall::Outcome::Handle(handle) => add(handle, 1),
                other => panic!("{other:?}"),
            },
            Operation::Close { handle } => add(*handle, -1),
            Operation::CloseMany { handles } => handles.iter().for_each(|h| add(*h, -1)),
            Operation::Inherit { handles, .. } => handles.iter().for_each(|h| add(*h, 1)),
            Operation::Duplicate { handle, replaces } => {
                add(*handle, 1);
                if let Some(replaced) = replaces {
                    add(*replaced, -1);
                }
            }
            _ => {}
        }
    }
    count.retain(|_, references| *references != 0);
    count
}

proptest! {
    #[test]
    fn every_read_is_of_the_file_that_the_model_says_and_references_add_up(
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut model = Model { last_tid: 100, ..Model::default() };
        model.processes.push(Files::new());
        model.threads.insert(100, 0);
        let mut program = Program::new();
        for step in steps {
            model.step(&mut program, step);
        }
        let finished = program.finish();
        let reads = finished.sink.calls.iter().filter(|c| c.syscall == Syscall::Pread64);
        let reads: Vec<u32> = reads.map(|call| call.operation.handles()[0].0).collect();
        prop_assert_eq!(reads, model.reads);
        let mut expected: HashMap<u32, i64> = HashMap::new();
        for (file, _) in model.processes.iter().flat_map(|files| files.values()) {
            *expected.entry(*file).or_default() += 1;
        }
        prop_assert_eq!(references(&finished), expected);
    }
}
