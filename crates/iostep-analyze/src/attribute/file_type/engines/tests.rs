use super::*;

fn types(paths: &[&str]) -> Vec<Option<FileType>> {
    let engines = Engines::of(paths.iter().copied());
    paths.iter().map(|path| engines.file_type(path)).collect()
}

/// Files, and what they are.
type Files = &'static [(&'static str, Option<FileType>)];

/// What only the engine has, and files that the directory makes its own.
const DIRECTORIES: [(&str, Files); 6] = [
    (
        "/pg/global/pg_control",
        &[
            ("/pg/pg_wal/000000010000000000000001", Some(PostgresWal)),
            (
                "/pg/pg_wal/0000000100000000000000A2.partial",
                Some(PostgresWal),
            ),
            ("/pg/pg_xlog/000000010000000000000001", Some(PostgresWal)),
            ("/pg/pg_wal/xlogtemp.4711", Some(PostgresWal)),
            ("/pg/pg_wal/00000002.history", Some(PostgresMetadata)),
            (
                "/pg/pg_wal/000000010000000000000002.00000028.backup",
                Some(PostgresMetadata),
            ),
            (
                "/pg/pg_wal/archive_status/000000010000000000000001.ready",
                Some(PostgresMetadata),
            ),
            ("/pg/base/1/112", Some(PostgresDatabase)),
            ("/pg/base/5/16384", Some(PostgresDatabase)),
            ("/pg/base/13010/2619.1", Some(PostgresDatabase)),
            ("/pg/base/16385/1259_vm", Some(PostgresDatabase)),
            ("/pg/base/16385/16390_fsm.2", Some(PostgresDatabase)),
            ("/pg/base/16385/16390_init", Some(PostgresDatabase)),
            ("/pg/base/16385/t3_16400", Some(PostgresTemporary)),
            ("/pg/base/16385/t3_16400_fsm", Some(PostgresTemporary)),
            ("/pg/base/16385/PG_VERSION", Some(PostgresMetadata)),
            ("/pg/base/16385/pg_internal.init.99", Some(PostgresMetadata)),
            ("/pg/base/pgsql_tmp/pgsql_tmp99.0", Some(PostgresTemporary)),
            (
                "/pg/base/pgsql_tmp/pgsql_tmp99.0.sharedfileset/i1of2.p0.0",
                Some(PostgresTemporary),
            ),
            ("/pg/global/1262", Some(PostgresDatabase)),
            ("/pg/global/1262_fsm", Some(PostgresDatabase)),
            ("/pg/global/pg_internal.init", Some(PostgresMetadata)),
            ("/pg/pg_xact/0000", Some(PostgresMetadata)),
            ("/pg/pg_multixact/members/000A", Some(PostgresMetadata)),
            ("/pg/pg_subtrans/00F1", Some(PostgresMetadata)),
            ("/pg/pg_stat/pgstat.stat", Some(PostgresMetadata)),
            (
                "/pg/pg_logical/replorigin_checkpoint",
                Some(PostgresMetadata),
            ),
            ("/pg/pg_replslot/standby/state", Some(PostgresMetadata)),
            ("/pg/backup_label", Some(PostgresMetadata)),
            ("/pg/postmaster.pid", Some(PostgresShm)),
            ("/pg/log/postgresql.log", None),
            ("/pg/pg_wal/notes", None),
            ("/pg/pg_wal/00000001000000000000000", None),
            ("/pg/pg_wal/00000001000000000000000a", None),
            ("/pg/base/5/16384_new", None),
            ("/pg/base/5/16384.tar", None),
            ("/pg/base/5/016384", None),
            ("/pg/1262", None),
        ],
    ),
    (
        "/my/ibdata1",
        &[
            ("/my/ib_logfile0", Some(InnodbRedo)),
            ("/my/ib_logfile101", Some(InnodbRedo)),
            ("/my/#innodb_redo/#ib_redo6", Some(InnodbRedo)),
            ("/my/#innodb_redo/#ib_redo7_tmp", Some(InnodbRedo)),
            ("/my/shop/orders.ibd", Some(InnodbDatabase)),
            ("/my/shop/orders#p#p0.ibd", Some(InnodbDatabase)),
            ("/my/mysql.ibd", Some(InnodbDatabase)),
            ("/my/#ib_16384_0.dblwr", Some(InnodbDoublewrite)),
            ("/my/#ib_16384_1.bdblwr", Some(InnodbDoublewrite)),
            ("/my/undo_001", Some(InnodbUndo)),
            ("/my/undo002", Some(InnodbUndo)),
            ("/my/more.ibu", Some(InnodbUndo)),
            ("/my/ibtmp1", Some(InnodbTemporary)),
            ("/my/#innodb_temp/temp_10.ibt", Some(InnodbTemporary)),
            ("/my/ib_buffer_pool", Some(MysqlMetadata)),
            ("/my/binlog.000001", Some(MysqlBinlog)),
            ("/my/db1-bin.1000000", Some(MysqlBinlog)),
            ("/my/binlog.index", Some(MysqlMetadata)),
            ("/my/mysql/servers.MAD", Some(MysqlDatabase)),
            ("/my/mysql/servers.frm", Some(MysqlMetadata)),
            ("/my/shop/db.opt", Some(MysqlMetadata)),
            ("/my/ib_logfile", None),
            ("/my/undo_01", None),
            ("/my/binlog.00001", None),
            ("/my/shop/orders.csv", None),
        ],
    ),
    (
        "/maria/aria_log_control",
        &[
            ("/maria/aria_log.00000001", Some(AriaLog)),
            ("/maria/undo002", Some(InnodbUndo)),
            ("/maria/mysql/db.MAI", Some(MysqlDatabase)),
        ],
    ),
    (
        "/r/MANIFEST-000005",
        &[
            ("/r/000004.log", Some(RocksdbWal)),
            ("/r/archive/000003.log", Some(RocksdbWal)),
            ("/r/000010.sst", Some(RocksdbDatabase)),
            ("/r/1000010.ldb", Some(RocksdbDatabase)),
            ("/r/000011.blob", Some(RocksdbDatabase)),
            ("/r/CURRENT", Some(RocksdbMetadata)),
            ("/r/OPTIONS-000007", Some(RocksdbMetadata)),
            ("/r/OPTIONS-000009.dbtmp", Some(RocksdbMetadata)),
            ("/r/LOG", Some(RocksdbMetadata)),
            ("/r/LOG.old.1700000000000000", Some(RocksdbMetadata)),
            ("/r/LOCK", Some(RocksdbLock)),
            ("/r/server.log", None),
            ("/r/00004.log", None),
            ("/r/deeper/000004.log", None),
        ],
    ),
    ("/r/OPTIONS-000007", &[("/r/000012.log", Some(RocksdbWal))]),
    ("/r/000001.dbtmp", &[("/r/000003.log", Some(RocksdbWal))]),
];

#[test]
fn files_of_engines_have_their_types_beside_what_only_the_engine_has() {
    for (proof, files) in DIRECTORIES {
        for (path, file_type) in files {
            assert_eq!(types(&[proof, path])[1], *file_type, "{path} by {proof}");
        }
    }
}

#[test]
fn what_nobody_else_has_needs_no_neighbour() {
    for (path, file_type) in [
        ("/pg_wal/000000010000000000000001", PostgresWal),
        ("/wal/0000000100000007000000FE", PostgresWal),
        ("/base/5/16384", PostgresDatabase),
        ("/ts/PG_15_202209061/16385/16390.1", PostgresDatabase),
        ("/ts/PG_9.6_201608131/16385/16390_vm", PostgresDatabase),
        (
            "/ts/PG_15_202209061/pgsql_tmp/pgsql_tmp7.0",
            PostgresTemporary,
        ),
        ("/pg/global/pg_control", PostgresMetadata),
        ("/ib_logfile0", InnodbRedo),
        ("/x/shop/orders.ibd", InnodbDatabase),
        ("/log/mysql-bin.000001", MysqlBinlog),
        ("/log/mariadb-bin.000012", MysqlBinlog),
        ("/l/data.mdb", LmdbDatabase),
        ("/l/lock.mdb", LmdbLock),
        ("/r/MANIFEST-000005", RocksdbMetadata),
    ] {
        assert_eq!(types(&[path]), [Some(file_type)], "{path}");
    }
}

#[test]
fn the_same_names_alone_are_nobodys() {
    for path in [
        "/base/1",
        "/base/5/PG",
        "/tiles/base/5/16",
        "/tiles/base/14/8712",
        "/tiles/base/9999/8712",
        "/database/5/16384",
        "/base/5/deeper/16384",
        "/global/1262",
        "/x/pg_stat/a",
        "/x/backup_label",
        "/archive/000000010000000000000001.partial",
        "/pg_wal/notes",
        "/objects/507F1F77BCF86CD799439011",
        "/objects/0000000000000000000000AB",
        "/x/undo_001",
        "/x/binlog.000001",
        "/x/mail-bin.000001",
        "/x/old.frm",
        "/ibdata",
        "/access/orders.mdb",
        "/var/log/000004.log",
        "/r/123456.log",
        "/r/000010.sst",
        "/r/LOG",
        "/r/CURRENT",
        "/r/MANIFEST-5",
        "/r/MANIFEST-000005.txt",
        "/r/MANIFEST",
    ] {
        assert_eq!(types(&[path]), [None], "{path}");
    }
}

#[test]
fn another_directory_or_another_engine_proves_nothing() {
    for paths in [
        ["/r/MANIFEST-000005", "/other/000004.log"],
        ["/r/MANIFEST-000005", "/r/undo_001"],
        ["/pg/pg_wal/000000010000000000000001", "/pg/000004.log"],
        ["/pg/pg_wal/000000010000000000000001", "/global/1262"],
        ["/pg/pg_wal/000000010000000000000001", "/old/global/1262"],
        ["/my/ibdata1", "/my2/undo_001"],
        ["/my/shop/orders.ibd", "/my/shop/binlog.000001"],
        ["/l/data.mdb", "/l/000004.log"],
    ] {
        assert_eq!(types(&paths)[1], None, "{paths:?}");
    }
}

#[test]
fn no_form_is_without_an_engine_and_none_is_shadowed() {
    for (place, (form, file_type, _)) in FORMS.iter().enumerate() {
        assert!(file_type.of_database().is_some(), "{form}");
        let twice = FORMS[..place].iter().any(|(other, _, _)| other == form);
        assert!(!twice, "{form}");
    }
}

#[test]
fn names_that_are_no_text_of_one_byte_a_letter_are_looked_at_too() {
    assert_eq!(types(&["/ü/ö.ibd", "/ü/ä"]), [Some(InnodbDatabase), None]);
}
