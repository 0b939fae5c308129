"""SQL of the saver: additions to LangGraph's tables, retention, rolling runs back, copies."""

from __future__ import annotations

KEY = "thread_id, checkpoint_ns, checkpoint_id"
WRITE = "task_id, task_path, idx, channel, type, blob"

SCHEMA = (
    "ALTER TABLE checkpoint_writes ADD COLUMN run_id TEXT",
    "CREATE INDEX circadian_checkpoint_runs ON checkpoints ((metadata ->> 'run_id'))",
    "CREATE INDEX circadian_write_runs ON checkpoint_writes (run_id) WHERE run_id IS NOT NULL",
)
"""Additions to LangGraph's tables: the run that made a write, and indexes by run."""

PUT_WRITES = (
    f"INSERT INTO checkpoint_writes ({KEY}, {WRITE}, run_id)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO "
)
REPLACE = (
    "UPDATE SET task_path = EXCLUDED.task_path, channel = EXCLUDED.channel, type = EXCLUDED.type,"
    " blob = EXCLUDED.blob, run_id = EXCLUDED.run_id"
)

OF_A_TASK = "position(':' IN checkpoint_ns) > 0"
"""The namespace of one task's subgraph (`awake:<task id>`); a stateful subgraph's has no colon."""

SUPERFLUOUS = f"""
thread_id = %(thread)s AND (
    (
        checkpoint_ns = '' AND checkpoint_id < %(roots_before)s
        AND checkpoint_id NOT IN (%(last_step)s, %(restore)s)
    ) OR (
        {OF_A_TASK} AND checkpoint_id < %(subgraphs_before)s
        AND NOT (checkpoint_id > %(run_before)s AND checkpoint_id < %(run_start)s)
    )
)
"""
"""What `memory.retention` gives up. Without `subgraphs_before` (NULL) all subgraphs stay."""

OF_RUNS = "metadata ->> 'run_id' = ANY(%(runs)s)"
WRITES_OF_RUNS = (
    f"run_id = ANY(%(runs)s) OR ({KEY}) IN (SELECT {KEY} FROM checkpoints WHERE {OF_RUNS})"
)

DELETE = """
WITH gone AS (
    DELETE FROM checkpoints WHERE {checkpoints}
    RETURNING thread_id, checkpoint_ns, checkpoint_id, checkpoint -> 'channel_versions' AS versions
), of_them AS (
    DELETE FROM checkpoint_writes WHERE {writes}
), freed AS (
    SELECT thread_id, checkpoint_ns, version.key AS channel, version.value AS version
    FROM gone CROSS JOIN LATERAL jsonb_each_text(gone.versions) AS version
    EXCEPT
    SELECT kept.thread_id, kept.checkpoint_ns, version.key, version.value
    FROM (SELECT DISTINCT thread_id, checkpoint_ns FROM gone) AS place
    JOIN checkpoints AS kept USING (thread_id, checkpoint_ns)
    CROSS JOIN LATERAL jsonb_each_text(kept.checkpoint -> 'channel_versions') AS version
    WHERE NOT EXISTS (
        SELECT FROM gone
        WHERE gone.thread_id = kept.thread_id AND gone.checkpoint_ns = kept.checkpoint_ns
            AND gone.checkpoint_id = kept.checkpoint_id
    )
)
DELETE FROM checkpoint_blobs AS blob USING freed
WHERE blob.thread_id = freed.thread_id AND blob.checkpoint_ns = freed.checkpoint_ns
    AND blob.channel = freed.channel AND blob.version = freed.version
"""
"""Checkpoints, their writes, and values that only they refer to, in one snapshot."""

COPY = (
    f"INSERT INTO checkpoints ({KEY}, parent_checkpoint_id, type, checkpoint, metadata)"
    " SELECT %(target)s, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,"
    " CASE WHEN metadata ? 'thread_id'"
    " THEN jsonb_set(metadata, '{thread_id}', to_jsonb(%(target)s::text)) ELSE metadata END"
    " - 'run_id' FROM checkpoints WHERE thread_id = %(source)s",
    "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
    " SELECT %(target)s, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs"
    " WHERE thread_id = %(source)s",
    f"INSERT INTO checkpoint_writes ({KEY}, {WRITE})"
    f" SELECT %(target)s, checkpoint_ns, checkpoint_id, {WRITE} FROM checkpoint_writes"
    " WHERE thread_id = %(source)s",
)

MISSING = """
SELECT wanted.channel FROM unnest(%(channels)s::text[], %(versions)s::text[])
    AS wanted (channel, version)
WHERE NOT EXISTS (
    SELECT FROM checkpoint_blobs AS blob
    WHERE blob.thread_id = %(thread)s AND blob.checkpoint_ns = ''
        AND blob.channel = wanted.channel AND blob.version = wanted.version
)
"""
"""Channels of a root checkpoint whose values are missing."""

ROOTS = """
SELECT checkpoint_id, metadata ->> 'source' AS source, metadata ->> 'run_id' AS run_id
FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC
"""
