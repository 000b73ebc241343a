//! Where the tracker's calls go.

use iostep_model::syscall::text::Writer;
use iostep_model::syscall::{Call, Paths, Recording, Thread};

use crate::error::Result;

/// Takes a recording while it is made.
pub trait Sink {
    /// A thread, before the first call that names it.
    ///
    /// Errors: ends the recording.
    fn thread(&mut self, thread: &Thread) -> Result<()>;

    /// A thread that was declared has another name or number now.
    fn changed(&mut self, thread: &Thread);

    /// A call, in the order in which they ended. `paths` holds every path that it names.
    ///
    /// Errors: ends the recording.
    fn call(&mut self, call: Call, paths: &Paths) -> Result<()>;
}

/// Keeps everything, in the order it comes; what [`crate::Finished`] holds has to be added.
impl Sink for Recording {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        self.threads.push(thread.clone());
        Ok(())
    }

    fn changed(&mut self, thread: &Thread) {
        if let Some(known) = self.threads.iter_mut().find(|known| known.id == thread.id) {
            known.name.clone_from(&thread.name);
            known.tid = thread.tid;
        }
    }

    fn call(&mut self, call: Call, _paths: &Paths) -> Result<()> {
        self.calls.push(call);
        Ok(())
    }
}

/// [`Writer::finish`] takes what [`crate::Finished`] holds.
impl Sink for Writer {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        Writer::thread(self, thread);
        Ok(())
    }

    fn changed(&mut self, thread: &Thread) {
        self.change_thread(thread);
    }

    fn call(&mut self, call: Call, paths: &Paths) -> Result<()> {
        Ok(Writer::call(self, &call, paths)?)
    }
}
