//! Which transaction comes next: everything that is written follows from seed, thread and number,
//! so that it can be done twice: once for SQLite, once to know what has to be there.

use iostep_model::bench::{KeyOrder, Mix, SqliteJob, SqliteOperation};

use crate::engine::random::{Permutation, Random};

/// What all statements of a transaction do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Insert,
    Update,
    Delete,
    Read,
}

impl Action {
    pub const ALL: [Action; 4] = [Action::Insert, Action::Update, Action::Delete, Action::Read];

    /// True if transactions of the operation may do it.
    pub fn is_part_of(self, operation: SqliteOperation) -> bool {
        match operation {
            SqliteOperation::Insert => self == Action::Insert,
            SqliteOperation::Update => self == Action::Update,
            SqliteOperation::Delete => self == Action::Delete,
            SqliteOperation::Read => self == Action::Read,
            SqliteOperation::Mix(_) => true,
        }
    }

    /// True for what changes rows.
    pub fn writes(self) -> bool {
        self != Action::Read
    }
}

/// The keys of one thread: every `threads`th one if threads share, so that their inserts are as
/// close together as an autoincremented key would make them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    stride: u64,
    offset: u64,
    /// How many rows of it are there before the first transaction.
    pub rows: u64,
}

impl Share {
    /// The share of `thread`.
    pub fn of(job: &SqliteJob, thread: u32) -> Share {
        let (stride, offset) = match job.shared {
            true => (u64::from(job.threads), u64::from(thread)),
            false => (1, 0),
        };
        Share {
            stride,
            offset,
            rows: job.rows.saturating_sub(offset).div_ceil(stride),
        }
    }

    /// The key of row number `row` of this share. Keys begin at 1, as SQLite's own.
    #[inline]
    pub fn key(&self, row: u64) -> i64 {
        (row * self.stride + self.offset + 1) as i64
    }

    /// The row of a key; `None` if it belongs to another share or to nobody.
    pub fn row(&self, key: i64) -> Option<u64> {
        let index = u64::try_from(key).ok()?.checked_sub(1)?;
        (index % self.stride == self.offset).then_some(index / self.stride)
    }
}

/// The transactions of one thread.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    share: Share,
    operation: SqliteOperation,
    statements: u64,
    /// How many are left; `None` if only time ends them.
    left: Option<u64>,
    choices: Random,
    order: Order,
}

/// What decides about the next row.
#[derive(Clone, Debug)]
enum Order {
    /// Deletes at the head, inserts at the tail, the others go around between them.
    Ascending { head: u64, tail: u64, cursor: u64 },
    /// Rows of one kind of operation: passes over a range, each in another order.
    Permuted(Passes),
    /// Rows of a mix.
    Shuffle(Shuffle),
}

impl Plan {
    /// The transactions of `thread`.
    pub fn new(job: &SqliteJob, thread: u32) -> Plan {
        let share = Share::of(job, thread);
        let stream = u64::from(thread) << 32;
        let length = job.transactions.saturating_mul(u64::from(job.statements));
        let order = match (job.keys, job.operation) {
            (KeyOrder::Sequential, _) => Order::Ascending {
                head: 0,
                tail: share.rows,
                cursor: 0,
            },
            (KeyOrder::Random, SqliteOperation::Mix(_)) => Order::Shuffle(Shuffle::new(
                share.rows,
                Random::new(job.measurement.seed, stream + 1),
            )),
            (KeyOrder::Random, SqliteOperation::Insert) => Order::Permuted(Passes::new(
                (share.rows, length, length),
                job.measurement.seed,
                stream,
            )),
            (KeyOrder::Random, _) => Order::Permuted(Passes::new(
                (0, share.rows, 0),
                job.measurement.seed,
                stream,
            )),
        };
        Plan {
            share,
            operation: job.operation,
            statements: u64::from(job.statements),
            left: job
                .measurement
                .limits
                .time_ns
                .is_none()
                .then_some(job.transactions),
            choices: Random::new(job.measurement.seed, stream),
            order,
        }
    }

    /// The thread's share of the keys.
    pub fn share(&self) -> Share {
        self.share
    }

    /// The next transaction: fills in the rows that it touches in each table. `None` when all are
    /// done, or nothing is left to delete.
    #[inline]
    pub fn next(&mut self, rows: &mut Vec<u64>) -> Option<Action> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        rows.clear();
        let action = self.action()?;
        for _ in 0..self.statements {
            rows.push(self.order.draw(action)?);
        }
        Some(action)
    }

    #[inline]
    fn action(&mut self) -> Option<Action> {
        match self.operation {
            SqliteOperation::Insert => Some(Action::Insert),
            SqliteOperation::Update => Some(Action::Update),
            SqliteOperation::Delete => Some(Action::Delete),
            SqliteOperation::Read => Some(Action::Read),
            SqliteOperation::Mix(mix) => self.mixed(mix),
        }
    }

    /// One of a mix. What lacks rows becomes an insert, if the mix has any.
    fn mixed(&mut self, mix: Mix) -> Option<Action> {
        let weights = [mix.insert, mix.update, mix.delete, mix.read].map(u64::from);
        let mut point = self.choices.below(weights.iter().sum::<u64>().max(1));
        let drawn = Action::ALL.into_iter().zip(weights).find(|&(_, weight)| {
            let hit = point < weight;
            point = point.saturating_sub(weight);
            hit
        });
        let action = drawn?.0;
        let needed = match action {
            Action::Insert => 0,
            Action::Delete => self.statements,
            Action::Update | Action::Read => 1,
        };
        match self.order.rows() >= needed {
            true => Some(action),
            false => (mix.insert > 0).then_some(Action::Insert),
        }
    }
}

impl Order {
    #[inline]
    fn draw(&mut self, action: Action) -> Option<u64> {
        match self {
            Order::Ascending { head, tail, cursor } => ascending(action, head, tail, cursor),
            Order::Permuted(passes) => passes.draw(action != Action::Delete),
            Order::Shuffle(shuffle) => shuffle.draw(action),
        }
    }

    /// Rows that are there; only known where a mix needs it.
    fn rows(&self) -> u64 {
        match self {
            Order::Ascending { head, tail, .. } => tail - head,
            Order::Permuted(passes) => passes.length,
            Order::Shuffle(shuffle) => shuffle.rows.len() as u64,
        }
    }
}

#[inline]
fn ascending(action: Action, head: &mut u64, tail: &mut u64, cursor: &mut u64) -> Option<u64> {
    let from = match action {
        Action::Insert => tail,
        _ if head == tail => return None,
        Action::Delete => head,
        Action::Update | Action::Read => {
            if !(*head..*tail).contains(cursor) {
                *cursor = *head;
            }
            cursor
        }
    };
    *from += 1;
    Some(*from - 1)
}

/// Passes over `length` rows, each in an order of its own. Inserts never meet a row twice: their
/// passes follow each other.
#[derive(Clone, Debug)]
struct Passes {
    first: u64,
    length: u64,
    seed: u64,
    stream: u64,
    permutation: Permutation,
    pass: u64,
    drawn: u64,
    /// How far each pass begins after the one before: 0 over rows that are there.
    advance: u64,
}

impl Passes {
    fn new((first, length, advance): (u64, u64, u64), seed: u64, stream: u64) -> Passes {
        Passes {
            first,
            length,
            seed,
            stream,
            permutation: Permutation::new(length.max(1), seed, stream),
            pass: 0,
            drawn: 0,
            advance,
        }
    }

    #[inline]
    fn draw(&mut self, again: bool) -> Option<u64> {
        if self.drawn == self.length {
            if !again || self.length == 0 {
                return None;
            }
            self.pass += 1;
            self.drawn = 0;
            let stream = self.stream.wrapping_add(self.pass);
            self.permutation = Permutation::new(self.length, self.seed, stream);
        }
        let place = self.permutation.at(self.drawn);
        self.drawn += 1;
        Some(self.first + self.pass * self.advance + place)
    }
}

/// Rows that come and go: each is drawn once before any is drawn again.
#[derive(Clone, Debug)]
struct Shuffle {
    rows: Vec<u64>,
    /// The first so many have been drawn in this pass.
    drawn: usize,
    next: u64,
    random: Random,
}

impl Shuffle {
    fn new(rows: u64, random: Random) -> Shuffle {
        Shuffle {
            rows: (0..rows).collect(),
            drawn: 0,
            next: rows,
            random,
        }
    }

    #[inline]
    fn draw(&mut self, action: Action) -> Option<u64> {
        if action == Action::Insert {
            self.rows.push(self.next);
            self.next += 1;
            return self.rows.last().copied();
        }
        if self.rows.is_empty() {
            return None;
        }
        if action == Action::Delete {
            return Some(self.remove());
        }
        if self.drawn == self.rows.len() {
            self.drawn = 0;
        }
        let undrawn = (self.rows.len() - self.drawn) as u64;
        let place = self.drawn + self.random.below(undrawn) as usize;
        self.rows.swap(self.drawn, place);
        self.drawn += 1;
        Some(self.rows[self.drawn - 1])
    }

    fn remove(&mut self) -> u64 {
        let mut place = self.random.below(self.rows.len() as u64) as usize;
        if place < self.drawn {
            self.drawn -= 1;
            self.rows.swap(place, self.drawn);
            place = self.drawn;
        }
        self.rows.swap_remove(place)
    }
}

#[cfg(test)]
pub(super) mod tests;
