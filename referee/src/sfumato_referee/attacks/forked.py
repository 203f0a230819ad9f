"""F5, streams that repeat: a forked, spawned or unpickled source of bits that goes on with its parent's key.

A process that forks copies the state of its random generator. Where nothing renews it, parent and children draw the
same noise, and the difference of two answers has none: it is the difference of the truths. (Ristenpart, Yilek, "When
good randomness goes bad", NDSS 2010, for virtual machines; the same holds for forks and for pickled workers.)

The attack draws from one source in 64 forked children, 64 spawned processes and 64 unpickled copies, and looks for any
two equal 128-bit blocks: by chance, one pair in 10^28 runs. It also reads the release path for generators that are
not the operating system's.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import sfumato
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.ledger.memory import MemoryLedger
from sfumato.noise import Bits, SecureBits, SeededBits
from sfumato.private import Private
from sfumato.schema import Schema, real
from sfumato.units import Unit

from .verdict import CouldNotRunError, Verdict

CHILDREN, SPAWNED, WORDS = 64, 64, 1000
_AT_ONCE = 4  # spawned interpreters: each imports the library
_PACKAGE = Path(sfumato.__file__).parent
_GENERATORS = ("random", "numpy.random", "np.random", "torch.manual_seed", "torch.rand", "torch.randn")


def attack(
    source: Bits | None = None, *, children: int = CHILDREN, spawned: int = SPAWNED, package: Path = _PACKAGE
) -> Verdict:
    source = SecureBits() if source is None else source
    parent = source.words(WORDS).tobytes()  # under way, so that a copied pool would show
    streams = {
        "forked": _forked(source, children),
        "spawned": _spawned(source, spawned),
        "unpickled": [_draw(pickle.loads(pickle.dumps(source))) for _ in range(children)],
    }
    after = source.words(WORDS).tobytes()
    figures: dict[str, float] = {
        f"equal 128-bit blocks, {way}, {len(parts)} streams": equal_blocks([parent, after, *parts])
        for way, parts in streams.items()
    }
    equal = int(sum(figures.values()))
    others = list(generators(package))
    figures["other generators in the release path"] = len(others)
    complaints = []
    if equal:
        complaints.append(f"{equal} blocks of 128 bits came up again: streams go on with their parent's key")
    if others:
        complaints.append(f"the release path uses {others[0]}")
    if _seeds_release():
        complaints.append("a curator releases with bits that come from a seed")
    text = "; ".join(complaints) or "No two streams share a block, and only the operating system's entropy is in reach"
    return Verdict("F5", bool(complaints), text + ".", figures)


def _seeds_release() -> bool:
    private = Private("one", {"x": [1.0]}, unit=Unit(), schema=Schema.of(x=real(0, 1)))
    try:
        Curator(private, MemoryLedger({"one": Budget(epsilon=1)}), bits=SeededBits(1))
    except SfumatoError:
        return False
    return True


def copied() -> Bits:
    """The planted bug: a good seed, and nothing that renews it in a child or a copy."""
    return SeededBits(int.from_bytes(os.urandom(15), "big"))


def equal_blocks(parts: list[bytes]) -> int:
    """How many 128-bit blocks are repeats of another."""
    blocks = np.frombuffer(b"".join(parts), dtype=np.dtype((np.void, 16)))
    return int(blocks.size - np.unique(blocks).size)


def _draw(source: Bits) -> bytes:
    return source.words(WORDS).tobytes()


def _forked(source: Bits, children: int) -> list[bytes]:
    if not hasattr(os, "fork"):
        raise CouldNotRunError("F5 needs a system that forks.")
    drawn = [in_child(lambda: _draw(source)) for _ in range(children)]
    if any(len(each) != 8 * WORDS for each in drawn):
        raise CouldNotRunError("a forked child drew too little.")
    return drawn


def in_child(work: Callable[[], bytes]) -> bytes:
    """What `work` gives in a fork of this process."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of other threads; the child only works
        pid = os.fork()
    if pid == 0:  # pragma: no cover (no coverage is written by a child that leaves like this)
        status = 1
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(work())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise CouldNotRunError(f"a forked child ended with status {status} after {len(output)} bytes.")
    return output


def _spawned(source: Bits, count: int) -> list[bytes]:
    """Fresh interpreters, a few at a time, that get the source by pickle, as workers do."""
    spawn = multiprocessing.get_context("spawn")
    drawn: list[bytes] = []
    while len(drawn) < count:
        pipes = [spawn.Pipe(duplex=False) for _ in range(min(_AT_ONCE, count - len(drawn)))]
        workers = [spawn.Process(target=_send, args=(there, source)) for _, there in pipes]
        try:
            for worker, (_, there) in zip(workers, pipes, strict=True):
                worker.start()
                there.close()
            drawn += [here.recv_bytes() for here, _ in pipes]
        except EOFError:
            raise CouldNotRunError("a spawned process ended before it drew.") from None
        finally:
            for worker, (here, _) in zip(workers, pipes, strict=True):
                if worker.pid is not None:
                    worker.join()
                here.close()
    return drawn


def _send(pipe: Connection, source: Bits) -> None:
    pipe.send_bytes(_draw(source))
    pipe.close()


def generators(package: Path) -> Iterator[str]:
    """Where code that may run in a release names a generator other than `noise.bits`. The audits run beside it, and
    what training takes from torch's generators, in one file, is public, or of float grade and named so."""
    for path in sorted(package.rglob("*.py")):
        if "audit" in path.relative_to(package).parts or path == package / "learn" / "chance.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            match node:
                case ast.Import():
                    names = [alias.name for alias in node.names]
                case ast.ImportFrom(module=str(module), level=0):
                    names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
                case ast.Attribute():
                    names = [ast.unparse(node)]
            if any(name in _GENERATORS for name in names):
                yield f"{path.relative_to(package)}:{getattr(node, 'lineno', 0)}"
