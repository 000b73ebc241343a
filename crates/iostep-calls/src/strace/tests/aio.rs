//! Requests of io_submit.

use super::{calls, clean, reasons, sum};

const OPEN: &str = "open(\"/f\", O_RDWR) = 6\n";

#[test]
fn each_request_is_a_call_with_what_io_getevents_said() {
    let text = format!(
        "{OPEN}io_submit(0x7f, 4, [\
         {{aio_data=0x10, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=6, aio_buf=\"a}}, aio_nbytes=1\"..., aio_nbytes=16384, aio_offset=65536}}, \
         {{aio_data=0x20, aio_rw_flags=RWF_DSYNC, aio_lio_opcode=IOCB_CMD_PWRITEV, aio_fildes=6</a,b>, aio_buf=[{{iov_base=\"x\", iov_len=512}}, {{iov_base=\"y\", iov_len=1024}}], aio_offset=0}}, \
         {{aio_data=0x30, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=6, aio_buf=0x7f01, aio_nbytes=4096, aio_offset=8192, aio_flags=IOCB_FLAG_RESFD, aio_resfd=9}}, \
         {{aio_data=0x40, aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=6}}]) = 4 <0.000038>\n\
         io_getevents(0x7f, 2, 4, [{{data=0x30, obj=0x2, res=100, res2=0}}, {{data=0x10, obj=0x1, res=16384, res2=0}}], NULL) = 2\n\
         io_pgetevents(0x7f, 2, 4, [{{data=0x20, obj=0x3, res=-28, res2=0}}, {{data=0x40, obj=0x4, res=0, res2=0}}], NULL, NULL) = 2\n",
    );
    let mut told = calls(&text);
    told.sort();
    assert_eq!(
        told[..4],
        [
            "io_submit_fsync h1 = 0",
            "io_submit_pread h1 size=4096 offset=8192 = 100",
            "io_submit_pwrite h1 size=16384 offset=65536 = 16384",
            "io_submit_pwritev h1 size=1536 offset=0 buffers=2 flags=0x2 = -ENOSPC",
        ]
    );
}

#[test]
fn requests_of_which_nobody_was_told_are_unknown_when_their_context_or_process_ends() {
    let write = |at: u32| {
        format!(
            "io_submit(0x7f, 1, [{{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=6, aio_buf=\"\"..., aio_nbytes=512, aio_offset={at}}}]) = 1\n"
        )
    };
    for end in ["io_destroy(0x7f) = 0\n", "exit_group(0) = ?\n", ""] {
        let told = calls(&format!(
            "{OPEN}{}{}close(6) = 0\n{end}",
            write(0),
            write(512)
        ));
        let unknown: Vec<_> = told.iter().filter(|call| call.ends_with(" = ~")).collect();
        assert_eq!(
            unknown,
            [
                "io_submit_pwrite h1 size=512 offset=0 = ~",
                "io_submit_pwrite h1 size=512 offset=512 = ~"
            ],
            "{end}"
        );
    }
}

#[test]
fn only_as_many_as_the_kernel_took_are_calls() {
    let one = "{aio_data=0, aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=6}";
    let poll = "{aio_data=0, aio_lio_opcode=IOCB_CMD_POLL, aio_fildes=6, aio_buf=POLLIN}";
    let finished = clean(&format!(
        "{OPEN}io_submit(0x7f, 2, [{one}, {one}]) = 1\nio_submit(0x7f, 1, [{one}]) = -1 EAGAIN (x)\n\
         io_submit(0x7f, 3, [{one}, ...]) = 3\nio_submit(0x7f, 1, [{poll}]) = 1\n\
         io_submit(0x7f, 1, [0x5]) = 1\n",
    ));
    assert_eq!(sum(&finished.ledger), 6);
    let syncs = finished.sink.calls.iter().map(|call| call.syscall.name());
    assert_eq!(syncs.filter(|name| *name == "io_submit_fdsync").count(), 2);
    assert_eq!(
        reasons(&finished.ledger, true),
        [
            ("call", 2),
            ("call with further requests that are cut off", 2)
        ]
    );
    assert_eq!(
        reasons(&finished.ledger, false),
        [
            ("request of io_submit that the kernel refused", 1),
            ("other request of io_submit", 1)
        ]
    );
}

#[test]
fn texts_of_older_versions_have_other_names() {
    let told = calls(&format!(
        "{OPEN}io_submit(139, 2, [{{data=0x5, pwrite, fildes=6, str=\"ab\"..., nbytes=4096, offset=8192}}, {{data=0x6, fdsync, fildes=6}}]) = 2\n\
         io_getevents(139, 1, 2, [{{0x5, 0x1, 4096, 0}}], NULL) = 1\n",
    ));
    assert_eq!(told[1], "io_submit_pwrite h1 size=4096 offset=8192 = ~");
    assert_eq!(told[2], "io_submit_fdsync h1 = ~");
}
