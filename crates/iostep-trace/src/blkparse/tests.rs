use super::*;
use crate::Error;
use iostep_model::event::Transfer;
use iostep_model::{Error as ModelError, Flags, Operation};
use proptest::prelude::*;

/// A commit block of jbd2 on a device with a write cache and without FUA, as recorded on Linux
/// 6.18; `X`, `R` and `C` with an error are made up from blkparse's source.
const TEXT: &str = "\
  7,1    1        1     0.004159161   697  Q FWFSM 98326 + 2 [jbd2/loop1-8]
  7,1    1        2     0.004163341   697  G FWFSM 98326 + 2 [jbd2/loop1-8]
  7,1    1        3     0.004165101    44  D  FN [kworker/1:1H]
  7,1    1        4     0.004293021    22  C  FN 0 [0]
  7,1    1        5     0.004299021    44  I WSM 98326 + 2 [kworker/1:1H]
  7,1    1        6     0.004299361    44  D WSM 98326 + 2 [kworker/1:1H]
  7,1    1        7     0.004301751    22  C WSM 98326 + 2 [0]
  7,1    1        8     0.004303021    44  D  FN [kworker/1:1H]
  7,1    1        9     0.004332081    22  C  FN 0 [0]
  7,1    1       10     0.004336561    22  C WSM 98326 [0]
  7,1    1       11     0.004359401 21086  Q FWS [sh [x] y]
  7,1    1       12     0.014539065 21088  X  WS 24578 / 25602 [dd]
  7,1    1       13     0.014539066 21088  R   R 8 + 8 [0]
  7,1    1       14     1.000000000    22  C   R 8 + 8 [65531]
  7,1    1       15     1.000000001    22  P   N [dd]
  7,1    1        0     1.000000002    22  m   N cfq1 slice expired t=0
  7,1    1       16     1.000000003 21088  D   N 0 (12 00 00 00 24 00 ) [udevd]
  7,1    1       17     1.000000004 21088  M  WS 24600 + 8 [dd]
CPU0 (7,1):
 Reads Queued:           0,        0KiB\t Writes Queued:          20,       12KiB

Total (7,1):
Throughput (R/W): 48000KiB/s / 194818KiB/s
Events (7,1): 1041 entries
Skips: 0 forward (0 -   0.0%)
";

fn parsed(text: &str) -> Result<Recording> {
    parse(text.as_bytes(), Path::new("text"), None)
}

fn only(text: &str) -> Event {
    let mut recording = parsed(&format!("{text}\n")).expect("an event");
    recording.events.pop().expect("an event")
}

#[test]
fn every_line_is_kept_or_has_a_reason() {
    let recording = parsed(TEXT).expect("parse");
    let ledger = &recording.ledger;
    assert_eq!(ledger.lines, TEXT.lines().count() as u64);
    let left_out: u64 = ledger.left_out.values().sum();
    assert_eq!(ledger.lines, ledger.kept + left_out);
    assert_eq!(
        ledger.to_string(),
        "25 lines = 12 kept + 1 notice + 6 summary + 1 merge + 1 plug + 2 scheduler + 1 message \
         + 1 driver command"
    );
    assert_eq!(recording.device, (7, 1));
}

#[test]
fn a_commit_block_keeps_its_flags_and_its_thread() {
    let events = parsed(TEXT).expect("parse").events;
    let [
        Event::Process(process),
        Event::Queue(queue),
        Event::Issue(flush),
        ..,
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((process.pid, process.comm.as_str()), (697, "jbd2/loop1-8"));
    assert!(process.kernel);
    assert_eq!(
        (queue.sector, queue.bytes, queue.mono_ns),
        (98326, 1024, ZERO_NS + 4_159_161)
    );
    assert_eq!(queue.segments.len(), 1);
    assert_eq!(
        iostep_model::operation::rwbs(queue.operation, queue.flags),
        "FWFSM"
    );
    assert_eq!((flush.operation, flush.bytes), (Operation::Flush, 0));
}

#[test]
fn a_write_that_is_flushed_counts_at_its_second_completion() {
    let events = parsed(TEXT).expect("parse").events;
    let completions: Vec<(u64, u32, bool)> = events
        .iter()
        .filter_map(|event| match event {
            Event::Complete(done) => Some((
                done.transfer.sector,
                done.transfer.bytes,
                done.in_flush_sequence,
            )),
            _ => None,
        })
        .collect();
    let expected = [
        (0, 0, true),
        (98326, 1024, true),
        (0, 0, true),
        (98326, 0, false),
        (8, 4096, false),
    ];
    assert_eq!(completions, expected);
}

#[test]
fn an_empty_flush_does_not_take_a_read_of_sector_0_for_its_data() {
    let events = parsed(
        "8,0 0 1 0.000000001 7 C R 0 + 8 [0]\n\
         8,0 0 2 0.000000002 7 Q FWS [x]\n\
         8,0 0 3 0.000000003 7 C WS 0 [0]\n",
    );
    let events = events.expect("parse").events;
    let held = events
        .iter()
        .filter(|event| matches!(event, Event::Complete(done) if done.in_flush_sequence));
    assert_eq!(held.count(), 0);
}

#[test]
fn a_command_may_hold_brackets_and_spaces() {
    let events = parsed(TEXT).expect("parse").events;
    let named = events
        .iter()
        .any(|event| matches!(event, Event::Process(process) if process.comm == "sh [x] y"));
    assert!(named);
}

#[test]
fn splits_requeues_and_errors_are_told() {
    let events = parsed(TEXT).expect("parse").events;
    let [.., split, requeue, error] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(matches!(split, Event::Split { sector: 25602, .. }));
    assert!(matches!(requeue, Event::Requeue(transfer) if transfer.bytes == 4096));
    assert!(matches!(error, Event::Complete(done) if done.status == 10));
}

#[test]
fn elapsed_times_are_passed_over() {
    let event = only("8,0 3 1 0.000000000 697 D W 223490 + 8 (     423) [kjournald]");
    assert!(matches!(event, Event::Issue(transfer) if transfer.bytes == 4096));
    let event = only("8,0 3 1 0.000000000 0 C W 223490 + 8 (     423) [0]");
    assert!(matches!(event, Event::Complete(done) if done.status == 0));
}

#[test]
fn a_thread_is_named_again_only_under_a_new_name() {
    let line = |name: &str| format!("8,0 0 1 0.000000001 7 Q R 0 + 8 [{name}]\n");
    let text = [line("a"), line("a"), line("b")].concat();
    let events = parsed(&text).expect("parse").events;
    let names = events
        .iter()
        .filter(|event| matches!(event, Event::Process(_)));
    let queued = events.iter().filter(|event| event.queue().is_some());
    assert_eq!((names.count(), queued.count()), (2, 3));
}

#[test]
fn another_format_is_refused_with_a_way_out() {
    for text in [
        "Q 0.1 8 + 8\n",
        "7,1 Q WS 8 + 8\n",
        "7,1 0 1 0.000000001 Q WS 8\n",
        "CPU0 (8,0):\n",
    ] {
        let error = parsed(text).expect_err("another format");
        assert!(is_unsupported(&error), "{text}: {error}");
        assert!(error.to_string().contains("without -f"), "{error}");
    }
    assert!(is_unsupported(&parsed("").expect_err("empty")));
}

fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Trace(ModelError::Unsupported { .. }))
}

#[test]
fn one_device_of_several_can_be_chosen() {
    let text = "8,0 0 1 0.000000001 7 Q R 0 + 8 [x]\n8,16 0 1 0.000000001 7 Q R 8 + 8 [x]\n";
    let choose = |device| parse(text.as_bytes(), Path::new("text"), Some(device));
    let second = choose((8, 16)).expect("there");
    let queued: Vec<u64> = second
        .events
        .iter()
        .filter_map(Event::queue)
        .map(|q| q.sector)
        .collect();
    assert_eq!(
        (queued, second.ledger.left_out(LeftOut::OtherDevice)),
        (vec![8], 1)
    );
    let error = choose((9, 9)).expect_err("not there");
    assert!(matches!(error, Error::Usage { .. }));
    assert!(error.to_string().contains("8,0, 8,16"), "{error}");
    let error = parsed(text).expect_err("two devices");
    assert!(error.to_string().contains("--device"), "{error}");
}

#[test]
fn damage_is_named_with_line_and_field() {
    let good = "8,0 0 1 0.000000001 7 Q R 0 + 8 [x]\n";
    for (line, expected) in [
        ("8,0 0 1 0.1 7 Q R 0 + 8 [x]", "line 2, time"),
        ("8,0 0 1 0.000000001 7 Z R 0 + 8 [x]", "line 2, action"),
        (
            "8,0 0 1 0.000000001 7 Q R 0 + 99999999 [x]",
            "line 2, sectors",
        ),
        ("8,0 0 1 0.000000001 7 Q R -1 + 8 [x]", "line 2, command"),
        ("8,0 0 1 0.000000001 7 Q RX 0 + 8 [x]", "line 2, operation"),
        (
            "8,0 0 1 99999999999999999999.000000001 7 Q R 0 + 8 [x]",
            "line 2, time",
        ),
    ] {
        let error = parsed(&format!("{good}{line}\n")).expect_err("damage");
        assert!(error.to_string().contains(expected), "{error}");
        // The same at the end of a text that was cut off there is no damage.
        let cut = parsed(&format!("{good}{line}")).expect("cut off");
        assert_eq!(cut.ledger.left_out(LeftOut::CutOff), 1);
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'8'));
    let error = parse(endless, Path::new("text"), None).expect_err("too long");
    assert!(error.to_string().contains("4096"), "{error}");
}

#[test]
fn what_blkparse_skipped_is_told() {
    let text = TEXT.replace("0 forward (0 -   0.0%)", "2 forward (1,234 -   0.1%)");
    assert_eq!(parsed(&text).expect("parse").skipped, 1234);
    assert_eq!(parsed(TEXT).expect("parse").skipped, 0);
    let most = "Skips: 2 forward (18446744073709551615 -   0.1%)\n";
    let text = [TEXT, most, most].concat();
    assert_eq!(parsed(&text).expect("parse").skipped, u64::MAX);
}

#[test]
fn a_flush_at_sector_minus_one_has_no_place() {
    let event = only("8,0 0 1 0.000000001 7 C FN 18446744073709551615 [0]");
    assert!(matches!(event, Event::Complete(done) if done.transfer.sector == 0));
}

fn transfers() -> impl Strategy<Value = Transfer> {
    let operation = prop::sample::select(vec![
        Operation::Read,
        Operation::Write,
        Operation::Discard,
        Operation::Flush,
    ]);
    let flags = 0..32u16;
    let place = (0..1u64 << 54, 1..8_388_608u32);
    (0..1u64 << 60, place, operation, flags).prop_map(|(ns, (sector, sectors), operation, bits)| {
        // The first five bits are those that have letters.
        let flags = match operation {
            Operation::Flush => Flags(bits & !Flags::PREFLUSH.0),
            _ => Flags(bits),
        };
        Transfer {
            mono_ns: ns % (MAX_NS + 1),
            sector,
            bytes: sectors * 512,
            operation,
            flags,
        }
    })
}

/// The last time that blkparse text can hold.
const MAX_NS: u64 = 1_000_000_000_999_999_999;

/// As blkparse prints it (`blkparse_fmt.c`), after its own letters for a flush.
fn printed(transfer: &Transfer, action: &str, end: &str) -> String {
    let letters = match transfer.operation {
        Operation::Flush => {
            let rest = iostep_model::operation::rwbs(Operation::Flush, transfer.flags);
            format!("FN{}", &rest[1..])
        }
        operation => iostep_model::operation::rwbs(operation, transfer.flags),
    };
    let seconds = transfer.mono_ns / 1_000_000_000;
    let nanoseconds = transfer.mono_ns % 1_000_000_000;
    let (sector, sectors) = (transfer.sector, transfer.bytes / 512);
    format!(
        "{:3},{:<3} {:2} {:8} {seconds:5}.{nanoseconds:09} {:5} {action:>2} {letters:>3} \
         {sector} + {sectors} [{end}]\n",
        8, 0, 3, 1, 697
    )
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(mut transfer in transfers()) {
        let issued = only(printed(&transfer, "D", "kjournald").trim_end());
        let complete = only(printed(&transfer, "C", "0").trim_end());
        transfer.mono_ns += ZERO_NS;
        prop_assert_eq!(issued, Event::Issue(transfer.clone()));
        prop_assert!(matches!(complete, Event::Complete(done) if done.transfer == transfer));
    }

    #[test]
    fn any_text_ends_in_an_error_or_in_a_ledger_that_adds_up(text in "[ 0-9,.+QDCXRWFNMA\\[\\]()a-f\n-]{0,200}") {
        if let Ok(recording) = parsed(&text) {
            let left_out: u64 = recording.ledger.left_out.values().sum();
            prop_assert_eq!(recording.ledger.lines, recording.ledger.kept + left_out);
        }
    }
}
