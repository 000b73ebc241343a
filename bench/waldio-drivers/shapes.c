/*
 * One program that uses a database as applications do, in one of several shapes.
 *
 *   shapes SHAPE [N] --engine=stock|waldio
 *
 *   pool         four connections insert by turns
 *   other        another process reads each row that was inserted
 *   lookups      a new connection reads rows that lie in a large log
 *   sessions N   open, N inserts, close, again and again
 *   new N        the same, each time in a new database
 *   rows N       N rows a transaction, in a table with an index
 *   large        100 MiB in one transaction, and the close
 *
 * The database is made in the working directory, waldio is the extension waldio.so. Each prints
 * what one operation took: a commit, a lookup, a session or a transaction.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define DATABASE "shapes.db"
#define OPEN_FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
enum { POOL = 4, LARGE_MIB = 100, PADDING = 10000 };

#define TABLE "CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB, word TEXT)"

static int waldio;
static struct latencies all;
static struct counters before, after;
static uint64_t begin_ns, end_ns;

static void check(sqlite3 *db, int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, sqlite3_errmsg(db));
}

static void execute(sqlite3 *db, const char *sql)
{
	check(db, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sql);
}

static void load(void)
{
	sqlite3 *db;
	char *message = NULL;

	if (!waldio || sqlite3_vfs_find("waldio"))
		return;
	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		errx(1, "no memory");
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, "waldio.so", NULL, &message) != SQLITE_OK)
		errx(1, "waldio.so: %s", message);
	sqlite3_close(db);
}

static sqlite3 *open_name(const char *name)
{
	sqlite3 *db;

	load();
	if (sqlite3_open_v2(name, &db, OPEN_FLAGS, waldio ? "waldio" : "unix") != SQLITE_OK)
		errx(1, "%s: %s", name, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 60000);
	execute(db, "PRAGMA journal_mode=wal; PRAGMA synchronous=full");
	return db;
}

static sqlite3 *open_database(void)
{
	return open_name(DATABASE);
}

static void close_database(sqlite3 *db)
{
	check(db, sqlite3_close(db) == SQLITE_OK, "close");
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;

	check(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, sql);
	return statement;
}

static void run(sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);

	check(sqlite3_db_handle(statement), result == SQLITE_DONE || result == SQLITE_ROW, "step");
	check(sqlite3_db_handle(statement), sqlite3_reset(statement) == SQLITE_OK, "reset");
}

/* In a process of its own, as a database is made once: rows of PADDING, closed and written back. */
static void make_database(const char *more)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		sqlite3 *db = open_database();

		execute(db, TABLE);
		execute(db, more);
		execute(db, "BEGIN");
		for (int i = 0; i < PADDING; i++)
			execute(db, "INSERT INTO t (value, word) VALUES "
				    "(randomblob(100), hex(randomblob(8)))");
		execute(db, "COMMIT");
		close_database(db);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		errx(1, "the database could not be made");
	sync();
}

static void start(void)
{
	before = read_counters(DATABASE);
	begin_ns = now_ns();
}

static void stop(void)
{
	end_ns = now_ns();
	after = read_counters(DATABASE);
}

/* An operation took from a moment on until now. */
static void done(uint64_t since_ns)
{
	count_latency(&all, now_ns() - since_ns);
}

#define INSERT "INSERT INTO t (value, word) VALUES (randomblob(100), 'a word')"

static void pool(void)
{
	sqlite3 *db[POOL];
	sqlite3_stmt *insert[POOL];

	for (int i = 0; i < POOL; i++) {
		db[i] = open_database();
		insert[i] = prepare(db[i], INSERT);
		run(insert[i]);
	}
	start();
	for (int i = 0; i < 1500; i++) {
		uint64_t since = now_ns();

		run(insert[i % POOL]);
		done(since);
	}
	stop();
	for (int i = 0; i < POOL; i++) {
		sqlite3_finalize(insert[i]);
		close_database(db[i]);
	}
}

/* The reader says when it has read the row. */
static void read_rows(int from, int to)
{
	sqlite3 *db = open_database();
	sqlite3_stmt *statement =
		prepare(db, "SELECT value FROM t WHERE key = (SELECT max(key) FROM t)");
	char byte;

	while (read(from, &byte, 1) == 1) {
		run(statement);
		if (write(to, &byte, 1) != 1)
			exit(1);
	}
	sqlite3_finalize(statement);
	close_database(db);
	exit(0);
}

static void other(void)
{
	int down[2], up[2];
	sqlite3_stmt *insert;
	sqlite3 *db;
	char byte = 0;

	if (pipe(down) || pipe(up))
		err(1, "pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		read_rows(down[0], up[1]);
	}
	close(down[0]);
	db = open_database();
	insert = prepare(db, INSERT);
	start();
	for (int i = 0; i < 1000; i++) {
		uint64_t since = now_ns();

		run(insert);
		if (write(down[1], &byte, 1) != 1 || read(up[0], &byte, 1) != 1)
			errx(1, "the reader ended");
		done(since);
	}
	stop();
	close(down[1]);
	wait(NULL);
	sqlite3_finalize(insert);
	close_database(db);
}

static void lookups(void)
{
	sqlite3 *db = open_database(), *reader;
	sqlite3_stmt *update, *find;

	execute(db, "PRAGMA wal_autocheckpoint=0");
	update = prepare(db, "UPDATE t SET value = randomblob(100) WHERE key = ?1");
	for (int i = 0; i < 800; i++) {
		sqlite3_bind_int(update, 1, 1 + i * 12);
		run(update);
	}
	reader = open_database();
	find = prepare(reader, "SELECT value FROM t WHERE key = ?1");
	start();
	for (int i = 0; i < 800; i++) {
		uint64_t since = now_ns();

		sqlite3_bind_int(find, 1, 1 + i * 7919 % 800 * 12);
		run(find);
		done(since);
	}
	stop();
	sqlite3_finalize(update);
	sqlite3_finalize(find);
	close_database(reader);
	close_database(db);
}

/* In one database, or each in a new one. */
static void sessions(int commits, int new)
{
	for (int i = 0; i < 101; i++) {
		uint64_t since = now_ns();
		char name[32] = DATABASE;
		sqlite3 *db;

		if (i == 1)
			start();
		if (new)
			snprintf(name, sizeof(name), "new-%d.db", i);
		db = open_name(name);
		if (new)
			execute(db, TABLE);
		for (int j = 0; j < commits; j++)
			execute(db, INSERT);
		close_database(db);
		if (i)
			done(since);
	}
	stop();
}

static void rows(int count)
{
	sqlite3 *db = open_database();
	sqlite3_stmt *insert = prepare(db, "INSERT INTO t (value, word) VALUES "
					   "(randomblob(100), hex(randomblob(8)))");

	/* As long as the log gets, and written again from its beginning. */
	for (int i = -60000 / (count + 50); i < 30000 / (count + 50); i++) {
		uint64_t since = now_ns();

		if (i == 0)
			start();
		execute(db, "BEGIN");
		for (int j = 0; j < count; j++)
			run(insert);
		execute(db, "COMMIT");
		if (i >= 0)
			done(since);
	}
	stop();
	sqlite3_finalize(insert);
	close_database(db);
}

static void large(void)
{
	sqlite3 *db = open_database();
	uint64_t since;

	start();
	since = now_ns();
	execute(db, "BEGIN");
	for (int i = 0; i < LARGE_MIB; i++)
		execute(db, "INSERT INTO t (value) VALUES (randomblob(1 << 20))");
	execute(db, "COMMIT");
	close_database(db);
	done(since);
	stop();
}

int main(int argc, char **argv)
{
	static const char usage[] = "usage: shapes SHAPE [N] --engine=stock|waldio";
	const char *engine = argv[argc - 1];
	const char *shape = argc > 2 ? argv[1] : "";
	int number = argc > 3 ? atoi(argv[2]) : 0;

	if (argc < 3 || strncmp(engine, "--engine=", 9))
		errx(2, "%s", usage);
	waldio = strcmp(engine + 9, "waldio") == 0;
	make_database(strcmp(shape, "rows") ? "" : "CREATE INDEX i ON t (word)");
	if (strcmp(shape, "pool") == 0)
		pool();
	else if (strcmp(shape, "other") == 0)
		other();
	else if (strcmp(shape, "lookups") == 0)
		lookups();
	else if (strcmp(shape, "sessions") == 0 && number > 0)
		sessions(number, 0);
	else if (strcmp(shape, "new") == 0 && number > 0)
		sessions(number, 1);
	else if (strcmp(shape, "rows") == 0 && number > 0)
		rows(number);
	else if (strcmp(shape, "large") == 0)
		large();
	else
		errx(2, "%s", usage);
	print_result(&all, end_ns - begin_ns, before, after);
	return 0;
}
