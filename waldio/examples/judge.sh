# Makes programs of the READMEs of waldio's packages, and judges a program that writes three notes
# through waldio; for scripts that source this. The program prints "layout=... commits=... reason=...",
# and closes the database when its input ends.
# shellcheck shell=bash

python_with_extensions() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import sqlite3; sqlite3.Connection.enable_load_extension' 2>/dev/null &&
            echo "$python" && return
    done
    return 1
}

bytes() { # FILE OFFSET COUNT
    od -An -v -tx1 -j"$2" -N"$3" "$1" | tr -d ' \n'
}

# While the program has the database open, the files say whose log it is; when it has ended, any
# SQLite can read what it wrote.
judge() {
    local database=$1 line=$2
    case $line in
    layout=[PWT]\ commits=[1-9]*\ reason=) ;;
    *) echo "it said: ${line:-nothing}"; return 1 ;;
    esac
    [ "$(bytes "$database-wal" 4 4)" = 57414c31 ] || { echo "the log is not waldio's"; return 1; }
    # 56 where no commit is durable yet, as with synchronous=NORMAL.
    case $(bytes "$database" 19 1) in
    56 | 57) ;;
    *) echo "the database is not guarded"; return 1 ;;
    esac
}

judge_end() {
    local database=$1 rows
    [ "$(bytes "$database" 19 1)" = 02 ] || { echo "it did not end as a plain database"; return 1; }
    rows=$(sqlite3 -readonly "$database" 'PRAGMA integrity_check; SELECT count(*) FROM notes')
    [ "$rows" = $'ok\n3' ] || { echo "stock SQLite finds: $rows"; return 1; }
}

# DATABASE COMMAND…: runs it, with the database as its last argument, and prints the line or what was
# wrong.
run_judged() {
    local database=$1 line problem
    shift
    : >"$database.said"
    coproc program { exec "$@" "$database" 2>&1; }
    # shellcheck disable=SC2154 # coproc sets it
    local pid=$program_PID out=${program[0]} in=${program[1]}
    while IFS= read -r -t 60 -u "$out" line; do
        case $line in layout=*) break ;; esac
        printf '%s\n' "$line" >>"$database.said"
    done
    if ! problem=$(judge "$database" "${line:-$(tail -n 1 "$database.said")}"); then
        echo "$problem"
        exec {in}>&-
        return 1
    fi
    exec {in}>&-
    wait "$pid" || { echo "it ended with status $?"; return 1; }
    judge_end "$database" && echo "$line"
}

# LANGUAGE NUMBER FILE: the block of code of that number in a page.
lines_of() {
    local lines
    lines=$(awk -v begin="\`\`\`$1" -v number="$2" '
        $0 == begin { n++; inside = 1; next }
        /^```/ { inside = 0 }
        inside && n == number' "$3")
    [ -n "$lines" ] || {
        echo "$3 has no block $2 of $1" >&2
        return 1
    }
    printf '%s\n' "$lines"
}

# What a program does after the lines of a README, which open app.db.
# shellcheck disable=SC2034 # for those who source this
python_notes="
import sys
db.execute('CREATE TABLE notes(text)')
for note in ['milk', 'bread', 'salt']:
    with db:
        db.execute('INSERT INTO notes VALUES (?)', [note])
rows = list(db.execute('SELECT layout, commits, reason FROM waldio_stat'))
print('layout=%s commits=%s reason=%s' % (*rows[0][:2], rows[0][2] or ''), flush=True)
sys.stdin.read()
db.close()"

# qemu-user does not emulate statx() whole, and waldio takes that for a file without O_DIRECT: what it
# finds is overridden there.
# shellcheck disable=SC2034 # as above
node_notes="
{
let used = db;
if (process.env.EMULATED) {
  db.close();
  used = new (require('node:sqlite').DatabaseSync)('file:app.db?vfs=waldio&waldio=force');
}
used.exec('CREATE TABLE notes(text)');
for (const note of ['milk', 'bread', 'salt']) used.prepare('INSERT INTO notes VALUES (?)').run(note);
const stat = used.prepare('SELECT layout, commits, reason FROM waldio_stat').get();
console.log('layout=' + stat.layout + ' commits=' + stat.commits + ' reason=' + (stat.reason ?? ''));
require('node:fs').readFileSync(0);
used.close();
}"
