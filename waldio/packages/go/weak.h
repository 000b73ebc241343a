/* cgo links every package alone first, and SQLite is in another one, go-sqlite3. */
#define SQLITE_API __attribute__((weak))
