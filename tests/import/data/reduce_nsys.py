#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a small test file of an Nsight Systems export: reduce_nsys.py FROM.sqlite TO.sqlite MILLISECONDS

Keeps the first MILLISECONDS after the first API call, of the tables that have to do with waits, with their own schema.
Rows are copied as they are. Ranges are kept where a watched call is inside them. The environment of the machine, which
is in META_DATA_CAPTURE and TARGET_INFO_SYSTEM_ENV, is left out.
"""
import sqlite3
import sys

KEEP = ["StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
        "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "PROCESSES", "ThreadNames",
        "META_DATA_EXPORT", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "ENUM_CUDA_MEM_KIND", "ENUM_CUDA_MEMCPY_OPER",
        "ENUM_CUPTI_SYNC_TYPE", "ENUM_NSYS_EVENT_TYPE", "ENUM_NSYS_EVENT_CLASS"]


def main(source, target, milliseconds):
    db = sqlite3.connect(target)
    db.execute("ATTACH ? AS src", (source,))
    first = db.execute("SELECT min(start) FROM src.CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()[0]
    last = first + int(float(milliseconds) * 1e6)
    calls = ("SELECT globalPid_, correlationId FROM (SELECT globalTid >> 24 AS globalPid_, correlationId, start "
             "FROM src.CUPTI_ACTIVITY_KIND_RUNTIME) WHERE start <= %d" % last)
    for table in KEEP:
        schema = db.execute("SELECT sql FROM src.sqlite_schema WHERE type = 'table' AND name = ?", (table,)).fetchone()
        if not schema:
            continue
        db.execute(schema[0])
        where = "1"
        if table == "CUPTI_ACTIVITY_KIND_RUNTIME":
            where = "start <= %d" % last
        elif table.startswith("CUPTI_ACTIVITY"):
            where = "(globalPid >> 24, correlationId) IN (%s)" % calls
        elif table == "NVTX_EVENTS":
            where = ("start <= %d AND EXISTS (SELECT 1 FROM main.CUPTI_ACTIVITY_KIND_RUNTIME r JOIN src.StringIds s ON "
                     "s.id = r.nameId WHERE r.globalTid = NVTX_EVENTS.globalTid AND r.start >= NVTX_EVENTS.start AND "
                     "r.start < NVTX_EVENTS.end AND s.value GLOB '*Synchronize*')" % last)
        elif table == "META_DATA_CAPTURE":
            where = "name GLOB 'PROCESS_0:COMMAND' OR name GLOB 'PROCESS_0:ARGUMENT_*'"
        elif table == "TARGET_INFO_SYSTEM_ENV":
            where = "name IN ('Hostname', 'NvDriverVersion')"
        db.execute("INSERT INTO main.%s SELECT * FROM src.%s AS %s WHERE %s" % (table, table, table, where))
    used = " UNION ".join(["SELECT nameId FROM main.CUPTI_ACTIVITY_KIND_RUNTIME", "SELECT nameId FROM main.ThreadNames",
                           "SELECT textId FROM main.NVTX_EVENTS WHERE textId IS NOT NULL"])
    db.execute("DELETE FROM main.StringIds WHERE id NOT IN (%s)" % used)
    db.execute("DELETE FROM main.ThreadNames WHERE globalTid NOT IN (SELECT globalTid FROM main.CUPTI_ACTIVITY_KIND_RUNTIME)")
    db.commit()
    db.execute("DETACH src")
    db.execute("VACUUM")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
