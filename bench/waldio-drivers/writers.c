/*
 * Threads or processes that insert rows into one database, each row a transaction of its own.
 *
 *   writers [--engine=stock|waldio] [--writers=N] [--processes] [--again] [--ms=N]
 *
 * The database is made in the working directory, waldio is the extension waldio.so. Before the
 * start the log becomes as long as it gets: in a session that goes on, or in one before (--again).
 * In a session that goes on, half as much time passes before any is counted. Keys ascend over all writers, so that a row is a page, and the pages of a log are few.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define DATABASE "writers.db"
#define PRAGMAS "PRAGMA journal_mode=wal; PRAGMA synchronous=full"
#define OPEN_FLAGS (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
/*
 * Commits, each a frame or two, that make the log as long as writers need that never pause: waldio
 * restarts it from 4000 frames on. None of them is checkpointed meanwhile.
 */
enum { COMMITS_BEFORE = 5000, ROOM = 1 << 18, MAX_WRITERS = 64 };

/* What all writers share with whoever counts. */
struct shared {
	uint64_t start_ns, end_ns;
	uint32_t ready, go;
	struct {
		uint64_t count;
		uint32_t slowest_ns;
		uint32_t ns[ROOM];
	} of[MAX_WRITERS];
};

struct writer {
	int number;
	pthread_t thread;
	pid_t process;
};

/* What was asked for. */
static struct {
	int waldio, count, processes, again, ms;
} job = { .count = 1, .ms = 400 };

static struct shared *shared;

static void execute(sqlite3 *db, const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		errx(1, "%s: %s", sql, message);
}

/* Loading an extension needs a connection; that of another database will do. */
static void load(void)
{
	static const char extension[] = "waldio.so";
	char *message = NULL;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		errx(1, "no memory");
	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, extension, NULL, &message) != SQLITE_OK)
		errx(1, "%s: %s", extension, message);
	sqlite3_close(db);
}

static sqlite3 *open_database(void)
{
	sqlite3 *db;

	if (job.waldio)
		load();
	if (sqlite3_open_v2(DATABASE, &db, OPEN_FLAGS, job.waldio ? "waldio" : "unix") != SQLITE_OK)
		errx(1, "%s: %s", DATABASE, sqlite3_errmsg(db));
	sqlite3_busy_timeout(db, 60000);
	execute(db, PRAGMAS);
	return db;
}

static void insert(sqlite3_stmt *statement)
{
	if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK)
		errx(1, "insert: %s", sqlite3_errmsg(sqlite3_db_handle(statement)));
}

/* Stock SQLite deletes the log when nobody uses it, so whoever does this stays. */
static void lengthen_log(sqlite3_stmt *statement)
{
	sqlite3 *db = sqlite3_db_handle(statement);

	execute(db, "PRAGMA synchronous = normal; PRAGMA wal_autocheckpoint = 0");
	for (int i = 0; i < COMMITS_BEFORE; i++)
		insert(statement);
	execute(db, "PRAGMA wal_checkpoint; PRAGMA wal_autocheckpoint = 1000");
	execute(db, PRAGMAS);
}

static sqlite3_stmt *prepare(sqlite3 *db)
{
	static const char sql[] = "INSERT INTO t0 (value) VALUES (?1)";
	static const char value[VALUE_BYTES] = "a row";
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		errx(1, "%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_bind_blob(statement, 1, value, sizeof(value), SQLITE_STATIC);
	return statement;
}

static void *insert_rows(void *argument)
{
	struct writer *writer = argument;
	sqlite3 *db = open_database();
	sqlite3_stmt *statement = prepare(db);
	uint64_t begin_ns, end_ns, count = 0;
	uint32_t latency_ns;

	if (writer->number == 0 && !job.again)
		lengthen_log(statement);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->go, __ATOMIC_SEQ_CST))
		usleep(100);
	do {
		begin_ns = now_ns();
		insert(statement);
		end_ns = now_ns();
		if (end_ns < shared->start_ns)
			continue;
		latency_ns = end_ns - begin_ns < UINT32_MAX ? end_ns - begin_ns : UINT32_MAX;
		if (latency_ns > shared->of[writer->number].slowest_ns)
			shared->of[writer->number].slowest_ns = latency_ns;
		if (end_ns >= shared->end_ns)
			break;
		if (count == ROOM)
			errx(1, "more commits than there is room for; a shorter time will do");
		shared->of[writer->number].ns[count++] = latency_ns;
	} while (end_ns < shared->end_ns);
	shared->of[writer->number].count = count;
	sqlite3_finalize(statement);
	if (sqlite3_close(db) != SQLITE_OK)
		errx(1, "close: %s", sqlite3_errmsg(db));
	return NULL;
}

static void sleep_until(uint64_t ns)
{
	struct timespec when = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

/* In a process of its own, like every other use of SQLite here: nothing of it survives a fork. */
static void make_database(void)
{
	sqlite3 *db = open_database();

	execute(db, "CREATE TABLE t0 (key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
	if (job.again) {
		sqlite3_stmt *statement = prepare(db);

		lengthen_log(statement);
		sqlite3_finalize(statement);
	}
	if (sqlite3_close(db) != SQLITE_OK)
		errx(1, "close: %s", sqlite3_errmsg(db));
}

static void wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		errx(1, "a process failed");
}

/* A child does not outlive its parent, which leaves as soon as one of them fails. */
static pid_t start(void)
{
	pid_t child = fork();

	if (child < 0 || (child == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL)))
		err(1, "fork");
	return child;
}

static void start_writer(struct writer *writer)
{
	if (!job.processes) {
		if (pthread_create(&writer->thread, NULL, insert_rows, writer))
			errx(1, "thread");
		return;
	}
	writer->process = start();
	if (writer->process == 0) {
		insert_rows(writer);
		exit(0);
	}
}

static void wait_for_writer(struct writer *writer)
{
	if (job.processes)
		wait_for(writer->process);
	else if (pthread_join(writer->thread, NULL))
		errx(1, "thread");
}

/* Lets all of them begin; the answer is what the device did in the measured time. */
static void measure(struct counters *before, struct counters *after)
{
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < (uint32_t)job.count) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			errx(1, "a process failed");
		usleep(1000);
	}
	shared->start_ns = now_ns() + (job.again ? 0 : job.ms / 2) * 1000000ull;
	shared->end_ns = shared->start_ns + job.ms * 1000000ull;
	__atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
	sleep_until(shared->start_ns);
	*before = read_counters(DATABASE);
	sleep_until(shared->end_ns);
	*after = read_counters(DATABASE);
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "engine", required_argument, NULL, 'e' },
		{ "writers", required_argument, NULL, 'w' },
		{ "ms", required_argument, NULL, 'm' },
		{ "processes", no_argument, &job.processes, 1 },
		{ "again", no_argument, &job.again, 1 },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (option == 'e')
			job.waldio = strcmp(optarg, "waldio") == 0;
		else if (option == 'w')
			job.count = atoi(optarg);
		else if (option == 'm')
			job.ms = atoi(optarg);
		else if (option)
			exit(2);
	if (job.count < 1 || job.count > MAX_WRITERS || job.ms < 1 || optind < argc)
		errx(2, "1 to %d writers, 1 ms or more, and nothing else", MAX_WRITERS);
}

int main(int argc, char **argv)
{
	struct latencies all = { 0 };
	struct counters before, after;
	struct writer writers[MAX_WRITERS];
	pid_t maker;

	read_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	maker = start();
	if (maker == 0) {
		make_database();
		return 0;
	}
	wait_for(maker);
	for (int i = 0; i < job.count; i++) {
		writers[i] = (struct writer){ .number = i };
		start_writer(&writers[i]);
	}
	measure(&before, &after);
	for (int i = 0; i < job.count; i++)
		wait_for_writer(&writers[i]);
	for (int i = 0; i < job.count; i++) {
		if (all.slowest_ns < shared->of[i].slowest_ns)
			all.slowest_ns = shared->of[i].slowest_ns;
		for (uint64_t n = 0; n < shared->of[i].count; n++)
			count_latency(&all, shared->of[i].ns[n]);
	}
	print_result(&all, shared->end_ns - shared->start_ns, before, after);
	return 0;
}
