/*
 * The plainest program that inserts rows, each a transaction of its own, and takes the time.
 *
 *   sqlite-loop FILE JOURNAL SYNCHRONOUS TRANSACTIONS VALUE_BYTES
 *
 * FILE must not exist. Prints nanoseconds of all transactions together, and SQLite's version.
 * SQLite is left to itself: it checkpoints a WAL when it wants to, as part of the commit.
 *
 * The loop runs in a thread, as it does in most applications and in iostep: glibc leaves atomic
 * instructions out of a process that never had a second one, which is 2 % of the fastest
 * transactions here.
 */
#include <err.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPEN_FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX)

struct work {
	long transactions;
	int value_bytes;
	long long elapsed_ns;
};

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

/* Values that do not compress, and of which no two are the same (Marsaglia's xorshift64*). */
static void fill(char *value, int bytes)
{
	static uint64_t state = 88172645463325252ULL;

	for (int at = 0; at < bytes; at += 8) {
		uint64_t random;

		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		random = state * 2685821657736338717ULL;
		memcpy(value + at, &random, bytes - at < 8 ? bytes - at : 8);
	}
}

static void *insert_rows(void *argument)
{
	struct work *work = argument;
	char *value = malloc(work->value_bytes);
	sqlite3_stmt *insert;
	long long start_ns;

	if (sqlite3_prepare_v2(db, "INSERT INTO t0 (key, value) VALUES (?1, ?2)", -1, &insert,
			       NULL) != SQLITE_OK)
		errx(1, "%s", sqlite3_errmsg(db));
	start_ns = now_ns();
	for (long key = 1; key <= work->transactions; key++) {
		fill(value, work->value_bytes);
		sqlite3_bind_int64(insert, 1, key);
		sqlite3_bind_blob(insert, 2, value, work->value_bytes, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
			errx(1, "row %ld: %s", key, sqlite3_errmsg(db));
	}
	work->elapsed_ns = now_ns() - start_ns;
	sqlite3_finalize(insert);
	free(value);
	return NULL;
}

int main(int argc, char **argv)
{
	struct work work;
	pthread_t thread;

	if (argc != 6)
		errx(2, "usage: sqlite-loop FILE JOURNAL SYNCHRONOUS TRANSACTIONS VALUE_BYTES");
	if (access(argv[1], F_OK) == 0)
		errx(1, "%s: exists", argv[1]);
	if (sqlite3_open_v2(argv[1], &db, OPEN_FLAGS, NULL) != SQLITE_OK)
		errx(1, "%s: %s", argv[1], sqlite3_errmsg(db));
	set("journal_mode", argv[2]);
	set("synchronous", argv[3]);
	execute("CREATE TABLE t0 (key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
	work.transactions = atol(argv[4]);
	work.value_bytes = atoi(argv[5]);
	if (pthread_create(&thread, NULL, insert_rows, &work) || pthread_join(thread, NULL))
		errx(1, "thread");
	printf("%lld %s\n", work.elapsed_ns, sqlite3_libversion());
	return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
