#!/bin/sh
# The sqlite3 shell: shell.sh WALDIO.SO DATABASE
{
    cat <<END
.load $1
.open file:$2?vfs=waldio
PRAGMA journal_mode = waldio;
CREATE TABLE notes(text);
INSERT INTO notes VALUES ('milk'), ('bread');
INSERT INTO notes VALUES ('salt');
SELECT printf('layout=%s commits=%d reason=%s', layout, commits, reason) FROM waldio_stat;
END
    cat # The shell stays as long as somebody may type.
} | sqlite3 -batch
