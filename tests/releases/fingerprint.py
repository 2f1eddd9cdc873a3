"""Everything that PostgreSQL knows of the schema of a database, in comparable words.

The order of a table's columns is left out: no statement of ours goes by it. So are
partitions, which depend on the day.
"""

import hashlib
import re

import psycopg

Parts = dict[str, set[str]]  # {kind: descriptions}

OF_EXTENSION = "SELECT objid FROM pg_depend WHERE deptype = 'e'"
QUERIES = {
    "table": """
        SELECT concat_ws(' ', relname, relkind, relpersistence, reloptions::text)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'
            AND NOT relispartition
    """,
    "column": """
        SELECT concat_ws(' ', relname, attname, format_type(atttypid, atttypmod),
            attnotnull, attidentity, attgenerated, attstorage, attcompression,
            collname, pg_get_expr(adbin, adrelid))
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
        WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'
            AND attnum > 0 AND NOT attisdropped AND NOT relispartition
    """,
    "constraint": """
        SELECT concat_ws(' ', conrelid::regclass, conname, convalidated,
            pg_get_constraintdef(oid))
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
            AND conrelid NOT IN (SELECT oid FROM pg_class WHERE relispartition)
    """,
    "index": """
        SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid, indisready,
            indisreplident, indisclustered)
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace = 'public'::regnamespace AND NOT relispartition
    """,
    "trigger": """
        SELECT concat_ws(' ', pg_get_triggerdef(oid), tgenabled)
        FROM pg_trigger WHERE NOT tgisinternal
    """,
    "function": f"""
        SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prokind <> 'a'
            AND oid NOT IN ({OF_EXTENSION})
    """,
    "sequence": """
        SELECT concat_ws(' ', relname, format_type(seqtypid, NULL), seqstart,
            seqincrement, seqmin, seqmax, seqcache, seqcycle,
            refobjid::regclass, attname)
        FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid
        LEFT JOIN pg_depend ON objid = seqrelid AND deptype IN ('a', 'i')
        LEFT JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
    """,
    "type": f"""
        SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
            AND typrelid = 0 AND typelem = 0 AND oid NOT IN ({OF_EXTENSION})
    """,
    "extension": "SELECT extname FROM pg_extension",
}


# How PostgreSQL writes `IN (...)` of a varchar, until it reads that from a dump.
ARRAY = re.compile(r"\(ARRAY\[([^\]]*)\]\)::text\[\]")


def read_parts(url: str) -> Parts:
    with psycopg.connect(url) as database:
        return {
            kind: {as_from_a_dump(row[0]) for row in database.execute(query)}
            for kind, query in QUERIES.items()
        }


def as_from_a_dump(text: str) -> str:
    def cast_each(found: re.Match[str]) -> str:
        return f"ARRAY[{', '.join(f'({one})::text' for one in found[1].split(', '))}]"

    return ARRAY.sub(cast_each, text)


def fingerprint(parts: Parts) -> str:
    lines = sorted(f"{kind} {part}" for kind in parts for part in parts[kind])
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def differences(one: Parts, other: Parts) -> list[str]:
    """Return what only one of both has, a line each: `-` of the first, `+` of the other."""
    return [
        f"{sign} {kind} {part}"
        for kind in QUERIES
        for sign, parts in (
            ("-", one[kind] - other[kind]),
            ("+", other[kind] - one[kind]),
        )
        for part in sorted(parts)
    ]
