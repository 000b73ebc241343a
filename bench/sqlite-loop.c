/*
 * The plainest program that inserts rows, one transaction each, and takes the time.
 *
 *   sqlite-loop FILE JOURNAL SYNCHRONOUS TRANSACTIONS VALUE_BYTES
 *
 * FILE must not exist. Prints nanoseconds of all transactions together, and SQLite's version.
 * SQLite is left to itself: it checkpoints a WAL when it wants to, as part of the commit.
 */
#include <err.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Values are pieces of this, so that none repeats soon and none costs anything to make. */
#define POOL_BYTES (1 << 20)

static sqlite3 *db;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void execute(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		errx(1, "%s: %s", sql, sqlite3_errmsg(db));
}

static void set(const char *pragma, const char *value)
{
	char *sql = sqlite3_mprintf("PRAGMA %s = %s", pragma, value);

	execute(sql);
	sqlite3_free(sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		errx(1, "%s: %s", sql, sqlite3_errmsg(db));
	return statement;
}

static void run(sqlite3_stmt *statement)
{
	if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK)
		errx(1, "%s: %s", sqlite3_sql(statement), sqlite3_errmsg(db));
}

static long long insert_rows(long transactions, int value_bytes, const char *pool)
{
	sqlite3_stmt *begin = prepare("BEGIN");
	sqlite3_stmt *insert = prepare("INSERT INTO rows VALUES (?1, ?2)");
	sqlite3_stmt *commit = prepare("COMMIT");
	long long start_ns = now_ns(), elapsed_ns;

	for (long key = 1; key <= transactions; key++) {
		const char *value = pool + key * 127 % (POOL_BYTES - value_bytes);

		run(begin);
		sqlite3_bind_int64(insert, 1, key);
		sqlite3_bind_blob(insert, 2, value, value_bytes, SQLITE_STATIC);
		run(insert);
		run(commit);
	}
	elapsed_ns = now_ns() - start_ns;
	sqlite3_finalize(begin);
	sqlite3_finalize(insert);
	sqlite3_finalize(commit);
	return elapsed_ns;
}

int main(int argc, char **argv)
{
	static char pool[POOL_BYTES];

	if (argc != 6)
		errx(2, "usage: sqlite-loop FILE JOURNAL SYNCHRONOUS TRANSACTIONS VALUE_BYTES");
	if (access(argv[1], F_OK) == 0)
		errx(1, "%s: exists", argv[1]);
	for (size_t filled = 0; filled < sizeof(pool); filled += 256)
		if (getrandom(pool + filled, 256, 0) != 256)
			err(1, "getrandom");
	if (sqlite3_open(argv[1], &db) != SQLITE_OK)
		errx(1, "%s: %s", argv[1], sqlite3_errmsg(db));
	set("journal_mode", argv[2]);
	set("synchronous", argv[3]);
	execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, value BLOB)");
	printf("%lld %s\n", insert_rows(atol(argv[4]), atoi(argv[5]), pool), sqlite3_libversion());
	return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
