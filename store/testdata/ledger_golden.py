"""Writes ledger_golden.json beside it: entries and heads of the audit ledger, made without Sluice's code, from docs/SECURITY.md.

Run it with any Python 3; the test in ledger_entry_test.go compares.
"""
import hashlib, hmac, json, pathlib, struct

entries, prev = [], bytes(32)
for seq, (time, kind, principal, request, details) in enumerate([
    (1767225600000000, "ledger.begin", "", "", {}),
    (1767225600000001, "key.create", "key_A", "r-1", {"name": "laptop <a> & b", "role": "read_only"}),
    (-1, "copy.start", "login_Ü", "", {"statement": "COPY (SELECT 'é\n\u2028') TO LAKE 'x'", "n": 12345678901234567890}),
    (1767225600000002, "a", "b", "c", {"z": None, "a": [1, "2", True]}),
], 1):
    text = json.dumps(details, sort_keys=True, separators=(",", ":"), ensure_ascii=False).replace("\u2028", "\\u2028").encode()
    data = b"sluice/ledger/1\n" + prev + struct.pack(">qq", seq, time)
    for part in (kind.encode(), principal.encode(), request.encode(), text):
        data += struct.pack(">I", len(part)) + part
    digest = hashlib.sha256(data).digest()
    entries.append({"seq": seq, "time": time, "kind": kind, "principal": principal, "request_id": request,
                    "details": text.decode(), "prev": prev.hex(), "hash": digest.hex()})
    prev = digest

key, heads = "a key that is long enough, 32 bytes", []
for gen, at, next_ in [(1, 0, None), (2, 1, 2), (3, 2, None)]:
    hash_of = lambda seq: entries[seq - 1]["hash"] if seq else "00" * 32
    line = f"sluice-ledger-head-1 {gen:020d} {at:020d} {hash_of(at)} {next_ or 0:020d} {hash_of(next_)} "
    line += hmac.new(key.encode(), line.encode(), hashlib.sha256).hexdigest()
    slot = line.ljust(4095) + "\n"
    heads.append({"gen": gen, "at": at, "next": next_ or 0, "line": line, "slot_sha256": hashlib.sha256(slot.encode()).hexdigest()})

pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps({"key": key, "entries": entries, "heads": heads}, indent=1, ensure_ascii=False) + "\n")
