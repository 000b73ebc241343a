//! Runs the rows of a table by turns.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};

use crate::ground::Ground;
use crate::sample::Sample;
use crate::stats;
use crate::table::{Engine, Place, Row, Table, Work};
use crate::volume::{self, Volume};

/// The SQL that every writer of `writers.c` runs on its connection.
const PRAGMAS: &str = "PRAGMA journal_mode=wal; PRAGMA synchronous=full";

/// What is run.
pub struct Programs {
    /// The command.
    pub iostep: PathBuf,
    /// Where the compiled drivers and `waldio.so` are.
    pub drivers: PathBuf,
}

/// How long, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Rounds of each table.
    pub rounds: usize,
    /// Milliseconds of a run.
    pub ms: u64,
    /// Milliseconds of a run of several writers.
    pub long_ms: u64,
    /// Transactions of a run that is not limited by time.
    pub count: u64,
}

impl Pace {
    /// As many transactions as the paper's 1000, or fewer where a flush takes long, so that a run
    /// of the slowest journal mode takes a second or two.
    pub fn count_for(flush_us: f64) -> u64 {
        const BUDGET_US: f64 = 1.5e6;
        const FLUSHES: f64 = 5.0;
        (BUDGET_US / (FLUSHES * flush_us)).clamp(100.0, 1000.0) as u64
    }

    fn fill_in(&self, flags: &str) -> String {
        flags
            .replace("{ms}", &format!("{}ms", self.ms))
            .replace("{count}", &self.count.to_string())
    }
}

/// The bench: programs, pace, and the filesystems made so far.
pub struct Bench {
    programs: Programs,
    images: PathBuf,
    grounds: Vec<(Place, Ground)>,
    interrupted: Arc<AtomicBool>,
    /// How long and how often.
    pub pace: Pace,
}

impl Bench {
    /// One that has made nothing yet. `images` is the directory of the filesystems' images.
    pub fn new(
        programs: Programs,
        pace: Pace,
        images: &Path,
        interrupted: Arc<AtomicBool>,
    ) -> Bench {
        Bench {
            programs,
            images: images.to_owned(),
            grounds: Vec::new(),
            interrupted,
            pace,
        }
    }

    /// The directory of the filesystems' images.
    pub fn images(&self) -> &Path {
        &self.images
    }

    /// Whether there is what the table needs.
    pub fn can_measure(&self, table: &Table) -> bool {
        !table.needs_peers() || self.programs.drivers.join("peers").exists()
    }

    /// Samples of each row, in the order of the rounds.
    pub fn measure(&mut self, table: &Table) -> Result<Vec<Vec<Sample>>> {
        let mut measured = vec![Vec::new(); table.rows.len()];
        for round in 0..self.pace.rounds {
            for number in stats::order(round, table.rows.len()) {
                let row = &table.rows[number];
                let sample = self
                    .run(table.place, &row.work, table.slow_flush_us)
                    .with_context(|| format!("table {}, {}", table.name, row.label))?;
                measured[number].push(sample);
            }
        }
        Ok(measured)
    }

    /// One measurement, on a device whose flush takes so many microseconds more.
    fn run(&mut self, place: Place, work: &Work, slow_flush_us: u32) -> Result<Sample> {
        let root = self.root(place)?;
        let mut command = self.command(&root, work);
        if slow_flush_us > 0 {
            command.env("LD_PRELOAD", self.programs.drivers.join("slow-flush.so"));
            command.env("SLOW_FLUSH_US", slow_flush_us.to_string());
        }
        let text = self.call(command)?;
        match work {
            Work::Sqlite(_) => Sample::from_iostep(&text),
            Work::Peer(_) => {
                std::fs::remove_dir_all(root.join("peer")).context("cannot clear up")?;
                Sample::from_driver(&text)
            }
            Work::Writers { .. } | Work::Floor(_) => Sample::from_driver(&text),
        }
    }

    /// What one insert writes in each journal mode.
    pub fn explain(&mut self, place: Place) -> Result<Vec<Volume>> {
        let root = self.root(place)?;
        let database = root.join("explained.db");
        std::fs::write(&database, "").context("cannot make a database")?;
        let mut command = Command::new(&self.programs.iostep);
        command.args(["explain", "--json", "--journal", &volume::modes()]);
        command.arg(&database).arg(volume::SQL);
        let text = self.call(command)?;
        std::fs::remove_file(&database).context("cannot clear up")?;
        volume::parse(&text)
    }

    /// Makes the filesystem if it is not there.
    pub fn make_ground(&mut self, place: Place) -> Result<()> {
        if self.grounds.iter().all(|(made, _)| *made != place) {
            let ground = Ground::new(place, &self.images)?;
            self.grounds.push((place, ground));
        }
        Ok(())
    }

    /// The median of a write with its flush, in microseconds. Filling images leaves a disk busy
    /// for a while, and some have credits for bursts: it is measured until it stays as it is, or
    /// for so many times.
    pub fn steady_floor(&mut self, place: Place) -> Result<f64> {
        const TIMES: usize = 30;
        const ALIKE: f64 = 1.2;
        let mut last = [f64::INFINITY, 0.0, 0.0];
        for _ in 0..TIMES {
            last.rotate_right(1);
            last[0] = self.run(place, &Work::Floor("fdatasync"), 0)?.p50_us;
            let most = last.into_iter().fold(0.0, f64::max);
            let least = last.into_iter().fold(f64::INFINITY, f64::min);
            if most <= least * ALIKE {
                break;
            }
        }
        Ok(last[0])
    }

    /// A filesystem's root, with nothing left to write.
    fn root(&mut self, place: Place) -> Result<PathBuf> {
        self.make_ground(place)?;
        let mut made = self.grounds.iter().filter(|(made, _)| *made == place);
        let (_, ground) = made.next().context("no such filesystem")?;
        ground.settle()?;
        Ok(ground.path())
    }

    fn command(&self, root: &Path, work: &Work) -> Command {
        match work {
            Work::Sqlite(flags) => {
                let mut command = Command::new(&self.programs.iostep);
                command.args(["bench", "sqlite", "--json"]).arg(root);
                command.args(self.pace.fill_in(flags).split_whitespace());
                command
            }
            Work::Writers { .. } => self.writers(root, work),
            Work::Floor(mode) => {
                let mut command = self.driver("floor");
                command.arg(root.join("floor")).arg(mode);
                command.arg(self.pace.ms.to_string());
                command
            }
            Work::Peer(store) => {
                let mut command = self.driver("peers");
                command.arg(store).arg(root.join("peer"));
                command.arg(self.pace.ms.to_string());
                command
            }
        }
    }

    fn driver(&self, name: &str) -> Command {
        Command::new(self.programs.drivers.join(name))
    }

    fn writers(&self, root: &Path, work: &Work) -> Command {
        let mut command = self.driver("writers");
        let Work::Writers {
            engine,
            processes,
            count,
            again,
        } = work
        else {
            return command;
        };
        let extension = self.programs.drivers.join("waldio.so");
        let vfs = format!("waldio={}", extension.display());
        let vfs = if *engine == Engine::Stock {
            "unix"
        } else {
            &vfs
        };
        let ramp_ms = if *again { 0 } else { self.pace.long_ms / 2 };
        command
            .arg(root.join("writers.db"))
            .arg(vfs)
            .arg(PRAGMAS)
            .arg(if *processes { "processes" } else { "threads" })
            .arg(count.to_string())
            .arg(if *again { "again" } else { "steady" })
            .arg(ramp_ms.to_string())
            .arg(self.pace.long_ms.to_string());
        command
    }

    /// What a program printed.
    fn call(&self, mut command: Command) -> Result<String> {
        let stop = || self.interrupted.load(Ordering::Relaxed);
        ensure!(!stop(), "interrupted");
        let output = command
            .output()
            .with_context(|| format!("cannot run {command:?}"))?;
        ensure!(!stop(), "interrupted");
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            bail!("{command:?}: {}\n{}", output.status, stderr.trim());
        }
        String::from_utf8(output.stdout).context("not a text")
    }
}

/// The flags of a row as they are run, for whoever wants to run it alone.
pub fn described(row: &Row, pace: &Pace) -> String {
    match &row.work {
        Work::Sqlite(flags) => format!("iostep bench sqlite {}", pace.fill_in(flags)),
        Work::Writers { count, .. } => format!("writers.c, {count} writers"),
        Work::Floor(mode) => format!("floor.c {mode}"),
        Work::Peer(store) => format!("peers.c {store}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        rounds: 5,
        ms: 400,
        long_ms: 800,
        count: 1000,
    };

    #[test]
    fn the_pace_is_filled_into_flags() {
        let flags = PACE.fill_in("--time {ms} --transactions {count}");
        assert_eq!(flags, "--time 400ms --transactions 1000");
    }

    #[test]
    fn no_placeholder_stays_in_any_table() {
        for table in crate::tables::all() {
            for row in &table.rows {
                assert!(!described(row, &PACE).contains('{'), "{}", row.label);
            }
        }
    }

    #[test]
    fn slow_devices_get_fewer_transactions() {
        assert_eq!(Pace::count_for(50.0), 1000);
        assert_eq!(Pace::count_for(1000.0), 300);
        assert_eq!(Pace::count_for(50_000.0), 100);
    }
}
