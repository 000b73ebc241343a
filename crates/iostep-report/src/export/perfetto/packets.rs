//! Packets of one sequence, with what they have in common told once.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use super::message::Message;

// Numbers of fields, by message; protos/perfetto/trace of the Perfetto project.
const TRACE_PACKET: u32 = 1;

const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE: u32 = 10;
const PACKET_TRACK_EVENT: u32 = 11;
const PACKET_INTERNED: u32 = 12;
const PACKET_SEQUENCE_FLAGS: u32 = 13;
const PACKET_TRACK_DESCRIPTOR: u32 = 60;

const EVENT_CATEGORY: u32 = 3;
const EVENT_ANNOTATION: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_NAME: u32 = 10;
const EVENT_TRACK: u32 = 11;

const ANNOTATION_NAME: u32 = 1;
const ANNOTATION_UNSIGNED: u32 = 3;
const ANNOTATION_SIGNED: u32 = 4;
const ANNOTATION_STRING: u32 = 17;

const INTERNED_CATEGORIES: u32 = 1;
const INTERNED_EVENT_NAMES: u32 = 2;
const INTERNED_ANNOTATION_NAMES: u32 = 3;
const INTERNED_STRINGS: u32 = 29;

const ENTRY_ID: u32 = 1;
const ENTRY_TEXT: u32 = 2;

const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PROCESS: u32 = 3;
const TRACK_THREAD: u32 = 4;
const TRACK_PARENT: u32 = 5;

const PROCESS_PID: u32 = 1;
const PROCESS_NAME: u32 = 6;

const THREAD_PID: u32 = 1;
const THREAD_TID: u32 = 2;
const THREAD_NAME: u32 = 5;

/// The only sequence of packets.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing was told before.
const BEGINS: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: this packet refers to what others told.
const REFERS: u64 = 2;
/// `TYPE_SLICE_BEGIN`.
const SLICE_BEGIN: u64 = 1;
/// `TYPE_SLICE_END`.
const SLICE_END: u64 = 2;

/// What a track is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Track<'a> {
    /// A group, or a part of `parent`.
    Named {
        name: &'a str,
        parent: Option<u64>,
    },
    Process {
        pid: u32,
        name: &'a str,
    },
    Thread {
        pid: u32,
        tid: u32,
        name: &'a str,
    },
}

/// Texts by number. The number of one that was told before is all that later packets need.
#[derive(Debug)]
struct Interned<K>(HashMap<K, u64>);

impl<K: Hash + Eq> Interned<K> {
    /// The number; and true if the text has to be told with it.
    fn number(&mut self, key: K) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// Writes packets as they come; `K` is what a text is known by. Memory: a packet, and a number for
/// each text.
pub(super) struct Packets<'a, W, K> {
    out: &'a mut W,
    head: Message,
    packet: Message,
    /// What the packet is the first to refer to.
    told: Message,
    categories: Interned<&'static str>,
    event_names: Interned<&'static str>,
    annotation_names: Interned<&'static str>,
    strings: Interned<K>,
    begun: bool,
    tracks: u64,
}

/// The values that a slice shows.
pub(super) struct Annotations<'a, K> {
    event: &'a mut Message,
    told: &'a mut Message,
    names: &'a mut Interned<&'static str>,
    strings: &'a mut Interned<K>,
}

fn tell(told: &mut Message, list: u32, number: u64, text: &str) {
    told.nested(list, |entry| {
        entry.number(ENTRY_ID, number);
        entry.bytes(ENTRY_TEXT, text.as_bytes());
    });
}

impl<K: Hash + Eq> Annotations<'_, K> {
    fn value(&mut self, name: &'static str, fill: impl FnOnce(&mut Message)) {
        let (number, is_new) = self.names.number(name);
        if is_new {
            tell(self.told, INTERNED_ANNOTATION_NAMES, number, name);
        }
        self.event.nested(EVENT_ANNOTATION, |annotation| {
            annotation.number(ANNOTATION_NAME, number);
            fill(annotation);
        });
    }

    pub(super) fn number(&mut self, name: &'static str, value: impl Into<u64>) {
        let value = value.into();
        self.value(name, |annotation| {
            annotation.number(ANNOTATION_UNSIGNED, value);
        });
    }

    pub(super) fn signed(&mut self, name: &'static str, value: i64) {
        self.value(name, |annotation| {
            annotation.signed(ANNOTATION_SIGNED, value);
        });
    }

    /// A text that `key` stands for; `text` makes it the first time.
    pub(super) fn text<T: AsRef<str>>(
        &mut self,
        name: &'static str,
        key: K,
        text: impl FnOnce() -> T,
    ) {
        let (number, is_new) = self.strings.number(key);
        if is_new {
            tell(self.told, INTERNED_STRINGS, number, text().as_ref());
        }
        self.value(name, |annotation| {
            annotation.number(ANNOTATION_STRING, number);
        });
    }
}

impl<'a, W: Write, K: Hash + Eq> Packets<'a, W, K> {
    pub(super) fn new(out: &'a mut W) -> Packets<'a, W, K> {
        let none = || Interned(HashMap::new());
        Packets {
            out,
            head: Message::default(),
            packet: Message::default(),
            told: Message::default(),
            categories: none(),
            event_names: none(),
            annotation_names: none(),
            strings: Interned(HashMap::new()),
            begun: false,
            tracks: 0,
        }
    }

    /// Makes a track; its number.
    pub(super) fn track(&mut self, track: Track<'_>) -> io::Result<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        self.packet.nested(PACKET_TRACK_DESCRIPTOR, |inside| {
            inside.number(TRACK_UUID, uuid);
            match track {
                Track::Named { name, parent } => {
                    inside.bytes(TRACK_NAME, name.as_bytes());
                    if let Some(parent) = parent {
                        inside.number(TRACK_PARENT, parent);
                    }
                }
                Track::Process { pid, name } => {
                    inside.nested(TRACK_PROCESS, |process| {
                        process.number(PROCESS_PID, pid.into());
                        process.bytes(PROCESS_NAME, name.as_bytes());
                    });
                }
                Track::Thread { pid, tid, name } => {
                    inside.nested(TRACK_THREAD, |thread| {
                        thread.number(THREAD_PID, pid.into());
                        thread.number(THREAD_TID, tid.into());
                        thread.bytes(THREAD_NAME, name.as_bytes());
                    });
                }
            }
        });
        self.send()?;
        Ok(uuid)
    }

    /// Writes a slice of a track, whose slices do not overlap.
    pub(super) fn slice(
        &mut self,
        track: u64,
        (from_ns, to_ns): (u64, u64),
        (category, name): (&'static str, &'static str),
        annotate: impl FnOnce(&mut Annotations<'_, K>),
    ) -> io::Result<()> {
        let (category_id, category_is_new) = self.categories.number(category);
        if category_is_new {
            tell(&mut self.told, INTERNED_CATEGORIES, category_id, category);
        }
        let (name_id, name_is_new) = self.event_names.number(name);
        if name_is_new {
            tell(&mut self.told, INTERNED_EVENT_NAMES, name_id, name);
        }
        self.packet.number(PACKET_TIMESTAMP, from_ns);
        let (told, names) = (&mut self.told, &mut self.annotation_names);
        let strings = &mut self.strings;
        self.packet.nested(PACKET_TRACK_EVENT, |event| {
            event.number(EVENT_TYPE, SLICE_BEGIN);
            event.number(EVENT_TRACK, track);
            event.number(EVENT_CATEGORY, category_id);
            event.number(EVENT_NAME, name_id);
            annotate(&mut Annotations {
                event,
                told,
                names,
                strings,
            });
        });
        self.send()?;
        self.packet.number(PACKET_TIMESTAMP, to_ns.max(from_ns));
        self.packet.nested(PACKET_TRACK_EVENT, |event| {
            event.number(EVENT_TYPE, SLICE_END);
            event.number(EVENT_TRACK, track);
        });
        self.send()
    }

    /// Ends the packet and writes it.
    fn send(&mut self) -> io::Result<()> {
        self.packet.number(PACKET_SEQUENCE, SEQUENCE);
        let flags = if std::mem::replace(&mut self.begun, true) {
            REFERS
        } else {
            BEGINS
        };
        self.packet.number(PACKET_SEQUENCE_FLAGS, flags);
        if !self.told.is_empty() {
            self.packet.bytes(PACKET_INTERNED, self.told.as_bytes());
            self.told.clear();
        }
        // A trace is nothing but packets, each a field of it.
        self.head
            .delimiter(TRACE_PACKET, self.packet.as_bytes().len());
        self.out.write_all(self.head.as_bytes())?;
        self.out.write_all(self.packet.as_bytes())?;
        self.head.clear();
        self.packet.clear();
        Ok(())
    }
}
