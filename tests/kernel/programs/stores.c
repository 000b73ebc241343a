/*
 * A row for each commit into an embedded store, durable when the call returns.
 *
 *   stores lmdb|rocksdb DIRECTORY COMMITS
 *
 * DIRECTORY must exist. RocksDB's memory is written to a table at the end. Prints what the store
 * itself counted, "NAME NUMBER" a line.
 */
#include <err.h>
#include <lmdb.h>
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 100 };

static char value[VALUE_BYTES];

static void must(int code, const char *what)
{
	if (code)
		errx(1, "lmdb: %s: %s", what, mdb_strerror(code));
}

static void run_lmdb(const char *directory, uint64_t commits)
{
	MDB_txn *transaction;
	MDB_envinfo info;
	MDB_env *env;
	MDB_dbi table;

	must(mdb_env_create(&env), "create");
	must(mdb_env_open(env, directory, 0, 0600), directory);
	for (uint64_t key = 0; key < commits; key++) {
		MDB_val k = { sizeof(key), &key }, v = { sizeof(value), value };

		must(mdb_txn_begin(env, NULL, 0, &transaction), "begin");
		must(mdb_dbi_open(transaction, NULL, MDB_INTEGERKEY, &table), "table");
		must(mdb_put(transaction, table, &k, &v, 0), "put");
		must(mdb_txn_commit(transaction), "commit");
	}
	must(mdb_env_info(env, &info), "info");
	printf("commits %zu\n", info.me_last_txnid);
	mdb_env_close(env);
}

static void check(char *message, const char *what)
{
	if (message)
		errx(1, "rocksdb: %s: %s", what, message);
}

/* The lines of a ticker: "rocksdb.wal.synced COUNT : 7". */
static void print_ticker(char *statistics, const char *name)
{
	char *at = strstr(statistics, name), *count = at ? strstr(at, "COUNT : ") : NULL;

	if (!count)
		errx(1, "rocksdb: no %s", name);
	printf("%s %lu\n", name, strtoul(count + strlen("COUNT : "), NULL, 10));
}

static void run_rocksdb(const char *directory, uint64_t commits)
{
	rocksdb_options_t *options = rocksdb_options_create();
	rocksdb_writeoptions_t *durable = rocksdb_writeoptions_create();
	rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
	char *message = NULL, *statistics;
	rocksdb_t *store;

	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_options_enable_statistics(options);
	rocksdb_writeoptions_set_sync(durable, 1);
	store = rocksdb_open(options, directory, &message);
	check(message, directory);
	for (uint64_t key = 0; key < commits; key++) {
		rocksdb_put(store, durable, (const char *)&key, sizeof(key), value, sizeof(value),
			    &message);
		check(message, "put");
	}
	rocksdb_flush(store, flush, &message);
	check(message, "flush");
	statistics = rocksdb_options_statistics_get_string(options);
	print_ticker(statistics, "rocksdb.wal.synced");
	print_ticker(statistics, "rocksdb.wal.bytes");
	rocksdb_close(store);
}

int main(int argc, char **argv)
{
	if (argc != 4 || (strcmp(argv[1], "lmdb") && strcmp(argv[1], "rocksdb")))
		errx(2, "usage: stores lmdb|rocksdb DIRECTORY COMMITS");
	memset(value, 7, sizeof(value));
	(strcmp(argv[1], "lmdb") ? run_rocksdb : run_lmdb)(argv[2], strtoul(argv[3], NULL, 10));
	return 0;
}
