"""What a byte of an SQLite file is for: the header's fields, rows, or room that no row uses.

From the description of the format, https://www.sqlite.org/fileformat2.html. A flipped byte that `verify` does not see
must be one of `HARMLESS`: nothing that the ledger reads depends on it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing

HEADER = {
    0: "the format's name", 16: "page size", 18: "write version", 19: "read version", 20: "bytes kept free on pages",
    21: "largest share of a page for a row", 22: "least share of a page for a row", 23: "share of a leaf for a row",
    24: "change counter", 28: "number of pages", 32: "first free page", 36: "number of free pages",
    40: "schema counter", 44: "schema format", 48: "suggested cache size", 52: "largest root page",
    56: "text encoding", 60: "version of the schema", 64: "incremental vacuum", 68: "application", 72: "reserved",
    92: "change for which the version is valid", 96: "version of SQLite that wrote last",
}  # fmt: skip

HARMLESS = {
    "write version": "says how the log is written, and the log says so itself; opened to be written, it is set anew",
    "change counter": "tells other processes that their cache is old; every opening begins without one",
    "schema counter": "tells other processes to read the schema again; every opening reads it",
    "schema format": "of its four bytes the lowest says it, and is seen; the others are taken for 0",
    "suggested cache size": "is a wish; the cache has its own size",
    "text encoding": "of its four bytes two bits say it, and are seen",
    "reserved": "is for later versions of the format",
    "change for which the version is valid": "says only whether the number of pages is believed",
    "version of SQLite that wrote last": "is a note for people",
    "room between rows": "no row reaches there: rows are found by their pointers",
    "the mark of a row's own number": "the number is the row's key, and what stands in its place is not read",
    "the number of a definition": "the catalogue's rows are read all together, by their names",
    "a freed place on a page": "no row is there any more",
    "a page with scraps between its rows": "one to three bytes that are too few for a row, and counted on the page",
    "the end of a page that a row goes on from": "the row's length ends before it",
    "a free page": "no table has it",
}

_LEAF, _INNER = (10, 13), (2, 5)


def region(content: bytes, place: int) -> str:
    """In words: a field of the header, room that no row uses, or "rows"."""
    if place < 100:
        return HEADER[max(start for start in HEADER if start <= place)]
    size = int.from_bytes(content[16:18], "big") or 65536
    number, offset = divmod(place, 65536 if size == 1 else size)
    page = content[number * size : (number + 1) * size]
    if number in set(_free_pages(content, size)):
        return "a free page"
    begin = 100 if number == 0 else 0
    if page[begin] not in (*_LEAF, *_INNER) or not _is_tree(content, number, size):
        return "the end of a page that a row goes on from"
    head = 8 if page[begin] in _LEAF else 12
    cells = int.from_bytes(page[begin + 3 : begin + 5], "big")
    start = int.from_bytes(page[begin + 5 : begin + 7], "big") or 65536
    if begin + head + 2 * cells <= offset < start:
        return "room between rows"
    if any(first <= offset < first + length for first, length in _freed(page, begin)):
        return "a freed place on a page"
    if page[begin] == 13 and any(offset in each for each in _behind(page, begin, cells, 3)):
        return "the mark of a row's own number"
    catalogue = page[begin] == 13 and number + 1 in _below(content, size, [1])
    if catalogue and any(offset in each for each in _behind(page, begin, cells, 1)):
        return "the number of a definition"
    return "rows" if not page[begin + 7] else "a page with scraps between its rows"


def _free_pages(content: bytes, size: int) -> Iterator[int]:
    trunk = int.from_bytes(content[32:36], "big")
    while trunk:
        yield trunk - 1
        page = content[(trunk - 1) * size : trunk * size]
        count = int.from_bytes(page[4:8], "big")
        yield from (int.from_bytes(page[8 + 4 * n : 12 + 4 * n], "big") - 1 for n in range(count))
        trunk = int.from_bytes(page[:4], "big")


def _freed(page: bytes, begin: int) -> Iterator[tuple[int, int]]:
    """The chain of free blocks; its first four bytes are pointer and length, which the integrity check reads."""
    block = int.from_bytes(page[begin + 1 : begin + 3], "big")
    while block:
        length = int.from_bytes(page[block + 2 : block + 4], "big")
        yield block + 4, length - 4
        block = int.from_bytes(page[block : block + 2], "big")


def _behind(page: bytes, begin: int, cells: int, numbers: int) -> Iterator[range]:
    """In each row of a table, the number behind so many others: its length, its key, its header's length, the kind of
    its first column. (Numbers are as long as they need to be: all bytes but the last have the highest bit.)"""
    for n in range(cells):
        place = int.from_bytes(page[begin + 8 + 2 * n : begin + 10 + 2 * n], "big")
        for _ in range(numbers + 1):
            start = place
            while page[place] >= 0x80:
                place += 1
            place += 1
        yield range(start, place)


def _is_tree(content: bytes, number: int, size: int) -> bool:
    """Is it a page of a table or an index, not one that a long row goes on from?"""
    return number + 1 in _trees(content, size)


def _trees(content: bytes, size: int) -> set[int]:
    trees = _KNOWN.get(content)
    if trees is None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            with closing(sqlite3.connect(f"file:{file.name}?mode=ro&immutable=1", uri=True)) as connection:
                rows = connection.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0").fetchall()
        trees = _below(content, size, [1, *(root for (root,) in rows)])
        _KNOWN.clear()
        _KNOWN[content] = trees
    return trees


def _below(content: bytes, size: int, todo: list[int]) -> set[int]:
    """The pages of these trees."""
    pages = set()
    while todo:
        number = todo.pop()
        pages.add(number)
        todo += _children(content[(number - 1) * size : number * size], 100 if number == 1 else 0)
    return pages


_KNOWN: dict[bytes, set[int]] = {}


def _children(page: bytes, begin: int) -> Iterator[int]:
    if page[begin] not in _INNER:
        return
    yield int.from_bytes(page[begin + 8 : begin + 12], "big")
    for n in range(int.from_bytes(page[begin + 3 : begin + 5], "big")):
        cell = int.from_bytes(page[begin + 12 + 2 * n : begin + 14 + 2 * n], "big")
        yield int.from_bytes(page[cell : cell + 4], "big")
