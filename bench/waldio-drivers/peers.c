/*
 * Other embedded stores, with the promise of synchronous=FULL: a row is durable when the call
 * returns.
 *
 *   peers lmdb|rocksdb DIRECTORY MILLISECONDS
 *
 * DIRECTORY must not exist. Keys are 64-bit integers in order, values 100 bytes; before the
 * measured part there are some thousand rows, so that files have been made and maps have grown.
 * Options are the defaults, but for what makes a write durable.
 */
#include "driver.h"

#include <lmdb.h>
#include <rocksdb/c.h>
#include <string.h>

enum { ROWS_BEFORE = 4000 };

struct store {
	void (*open)(const char *directory);
	void (*put)(uint64_t key, const char *value, int durable);
};

static MDB_env *lmdb;
static MDB_dbi lmdb_table;

static void lmdb_must(int code, const char *what)
{
	if (code)
		errx(1, "lmdb: %s: %s", what, mdb_strerror(code));
}

static void lmdb_open(const char *directory)
{
	MDB_txn *transaction;

	lmdb_must(mdb_env_create(&lmdb), "create");
	lmdb_must(mdb_env_set_mapsize(lmdb, 256 << 20), "map size");
	lmdb_must(mdb_env_open(lmdb, directory, 0, 0600), directory);
	lmdb_must(mdb_txn_begin(lmdb, NULL, 0, &transaction), "begin");
	lmdb_must(mdb_dbi_open(transaction, NULL, MDB_INTEGERKEY, &lmdb_table), "table");
	lmdb_must(mdb_txn_commit(transaction), "commit");
}

static void lmdb_put(uint64_t key, const char *value, int durable)
{
	MDB_val k = { sizeof(key), &key }, v = { VALUE_BYTES, (void *)value };
	MDB_txn *transaction;

	lmdb_must(mdb_env_set_flags(lmdb, MDB_NOSYNC, !durable), "flags");
	lmdb_must(mdb_txn_begin(lmdb, NULL, 0, &transaction), "begin");
	lmdb_must(mdb_put(transaction, lmdb_table, &k, &v, 0), "put");
	lmdb_must(mdb_txn_commit(transaction), "commit");
}

static rocksdb_t *rocksdb;
static rocksdb_writeoptions_t *rocksdb_lazy, *rocksdb_durable;

static void rocksdb_open_at(const char *directory)
{
	rocksdb_options_t *options = rocksdb_options_create();
	char *message = NULL;

	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb = rocksdb_open(options, directory, &message);
	if (message)
		errx(1, "rocksdb: %s", message);
	rocksdb_lazy = rocksdb_writeoptions_create();
	rocksdb_durable = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(rocksdb_durable, 1);
}

static void rocksdb_put_row(uint64_t key, const char *value, int durable)
{
	char *message = NULL;

	rocksdb_put(rocksdb, durable ? rocksdb_durable : rocksdb_lazy, (const char *)&key,
		    sizeof(key), value, VALUE_BYTES, &message);
	if (message)
		errx(1, "rocksdb: %s", message);
}

int main(int argc, char **argv)
{
	static const struct store lmdb_store = { lmdb_open, lmdb_put };
	static const struct store rocksdb_store = { rocksdb_open_at, rocksdb_put_row };
	const struct store *store;
	struct latencies latencies = { 0 };
	struct counters before;
	char value[VALUE_BYTES];
	uint64_t start_ns, until_ns, begin_ns, end_ns, key = 0;

	if (argc != 4 || (strcmp(argv[1], "lmdb") && strcmp(argv[1], "rocksdb")))
		errx(2, "usage: peers lmdb|rocksdb DIRECTORY MILLISECONDS");
	store = strcmp(argv[1], "lmdb") ? &rocksdb_store : &lmdb_store;
	if (mkdir(argv[2], 0700))
		err(1, "%s", argv[2]);
	memset(value, 7, sizeof(value));
	store->open(argv[2]);
	while (key < ROWS_BEFORE) {
		key++;
		store->put(key, value, key == ROWS_BEFORE);
	}
	sync();
	before = read_counters(argv[2]);
	start_ns = end_ns = now_ns();
	until_ns = start_ns + strtoull(argv[3], NULL, 10) * 1000000;
	while (end_ns < until_ns) {
		begin_ns = end_ns;
		store->put(++key, value, 1);
		end_ns = now_ns();
		count_latency(&latencies, end_ns - begin_ns);
	}
	print_result(&latencies, end_ns - start_ns, before, read_counters(argv[2]));
	if (lmdb)
		mdb_env_close(lmdb);
	if (rocksdb)
		rocksdb_close(rocksdb);
	return 0;
}
