-- Which apps still use SQLite's rollback journals, and what others would save at most. A journal that
-- was deleted is of DELETE, any other of TRUNCATE or PERSIST. WAL writes no rollback journal, so it
-- saves its bytes and what its syncs made the filesystem log. waldio's log has its blocks beforehand,
-- so that what the syncs of databases made the filesystem log is saved as well.
WITH calls AS (
    SELECT app,
           sum(CASE WHEN file_type = 'SQLite journal' AND file_deleted = 1 THEN 1 ELSE 0 END)
               AS delete_syncs,
           sum(CASE WHEN file_type = 'SQLite journal' AND file_deleted = 0 THEN 1 ELSE 0 END)
               AS truncate_or_persist_syncs,
           sum(CASE WHEN file_type = 'SQLite journal' THEN journal_bytes ELSE 0 END)
               AS logged_for_journals_bytes,
           sum(CASE WHEN file_type = 'SQLite database' THEN journal_bytes ELSE 0 END)
               AS logged_for_databases_bytes
    FROM syncs
    GROUP BY app
), written AS (
    SELECT app, sum(bytes) AS written_bytes,
           sum(CASE WHEN layer = 'data' AND file_type = 'SQLite journal' THEN bytes ELSE 0 END)
               AS rollback_bytes
    FROM segments
    WHERE operation = 'write' AND by_tracer = 0
    GROUP BY app
)
SELECT calls.app, delete_syncs, truncate_or_persist_syncs, written_bytes, rollback_bytes,
       rollback_bytes + logged_for_journals_bytes AS wal_saves_bytes,
       rollback_bytes + logged_for_journals_bytes + logged_for_databases_bytes
           AS waldio_saves_bytes
FROM calls JOIN written ON calls.app = written.app
WHERE delete_syncs + truncate_or_persist_syncs > 0
ORDER BY waldio_saves_bytes DESC, calls.app
