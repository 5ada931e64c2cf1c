#!/usr/bin/env python3
"""Writes the seeds of fuzz/session_journal_fuzz.cc into fuzz/corpus/session_journal.

usage: make_session_corpus.py      records as docs/session_format.md has them; the fuzzer adds magic numbers and checksums
"""
import pathlib
import struct

PUT, EXTEND, TOUCH, PIN, DELETE, CLEAR_OWNER, CLEAR_ALL = range(1, 8)
LOG, DELETIONS = 0, 1                                # names: sessions-N.log, deleted-N.log
AS_LOG, AS_SNAPSHOT_BEFORE_3, AS_DELETIONS = 1, 27, 5  # what the fuzzer makes of the second byte


def record(kind, sequence, owner=b"", name=b"", tokens=(), previous=0, position=0, pinned=0):
    payload = struct.pack("<QQQQQI", previous, position, 5, 6, 7, pinned) + bytes(32)
    payload += struct.pack("<I", len(owner)) + owner + struct.pack("<I", len(name)) + name
    payload += struct.pack(f"<I{len(tokens)}I", len(tokens), *tokens)
    return bytes(4) + struct.pack("<IQIII", kind, sequence, len(payload), 0, 0) + payload


def file(kind, number, form, *records):
    body = b"".join(records)
    return struct.pack("<BBH", 3 * number + kind, form, len(body)) + body


SEEDS = {
    "log": file(LOG, 1, AS_LOG, record(PUT, 1, b"a", b"1", (1, 2, 3)),
                record(EXTEND, 2, b"a", b"1", (4, 5), previous=1, position=3), record(TOUCH, 3, b"a", b"1", previous=2),
                record(PIN, 4, b"a", b"1", previous=2, pinned=1), record(PUT, 5, b"b", b"1", (9,)),
                record(DELETE, 6, b"b", b"1")),
    "snapshot": file(LOG, 1, AS_LOG, record(PUT, 1, b"a", b"0", (7,)))
                + file(LOG, 2, AS_SNAPSHOT_BEFORE_3, record(PUT, 1, b"a", b"1", (1,)), record(PUT, 2, b"b", b"1", (2,)),
                       record(CLEAR_OWNER, 3, b"a"))
                + file(DELETIONS, 3, AS_DELETIONS, record(CLEAR_OWNER, 3, b"a"), record(DELETE, 4, b"c", b"1"))
                + file(LOG, 4, AS_LOG, record(CLEAR_ALL, 5), record(PUT, 6, b"d", b"1", (1, 2))),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus" / "session_journal"
    folder.mkdir(parents=True, exist_ok=True)
    for seed, contents in SEEDS.items():
        (folder / seed).write_bytes(contents)
