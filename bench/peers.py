"""The peer libraries we measure ourselves against, each in a virtual environment of its own.

Their pins contradict one another (and ours), so no single environment can hold them all. Everything a peer does
happens in a worker script run by the peer's own interpreter: JSON in on stdin, JSON out on stdout.

    python -m bench.peers
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"
WORKERS = Path(__file__).resolve().parent / "workers"

PEERS: dict[str, tuple[str, ...]] = {
    "opendp": ("opendp==0.16.0", "numpy==2.4.6"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
    "dp-accounting": ("dp-accounting==0.6.0", "numpy==2.4.6", "scipy==1.17.1"),
    "prv-accountant": ("prv-accountant==0.2.0", "numpy==2.4.6", "scipy==1.17.1"),
    "opacus": ("opacus==1.6.0", "torch==2.13.0"),
    "autodp": ("autodp==0.2.3.1", "numpy==2.4.6", "scipy==1.17.1"),
    "jax-privacy": ("jax-privacy==2.0.0", "jax==0.10.2", "dp-accounting==0.6.0", "numpy==2.4.6", "scipy==1.17.1"),
    "opendp-polars": ("opendp[polars]==0.16.0", "pyarrow==26.0.1"),
    "pipeline-dp": ("pipeline-dp==0.3.1", "pyarrow==26.0.1"),
    "smartnoise": ("smartnoise-sql==1.0.10", "pyarrow==26.0.1"),
    "tumult": ("tmlt.analytics==0.21.0", "pyspark==3.5.9", "pandas==1.5.3", "numpy==1.26.4"),  # and Java 17
    "tpchgen": ("tpchgen-cli==4.0.0",),  # no peer: it makes the tables of TPC-H
}

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "RAYON_NUM_THREADS",
        "POLARS_MAX_THREADS",
    ),
    "1",
)
"""CPU time only compares fairly when nobody spreads the work over threads."""


class PeerMissingError(Exception):
    """The peer's environment is not there, or was made for other pins."""

    def __init__(self, peer: str) -> None:
        super().__init__(f"{peer} is not installed; run: make bench-setup")


class PeerFailedError(Exception):
    """The peer's worker broke off; the message carries the last lines it wrote."""


def python(peer: str) -> Path:
    """The interpreter of the peer's environment, whether or not it has been made yet."""
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return HOME / peer / folder / name


def ready(peer: str) -> bool:
    """Whether the peer's environment was completed with the pins of today's table."""
    marker = _marker(peer)
    return python(peer).exists() and marker.exists() and marker.read_text() == _pins(peer)


def run(peer: str, script: str, payload: dict, threads: int = 1) -> dict:
    """What `bench/workers/<script>.py` answers to the payload when the peer's interpreter runs it."""
    if not ready(peer):
        raise PeerMissingError(peer)
    return _answer(peer, python(peer), script, payload, environment(threads))


def run_ours(script: str, payload: dict, threads: int = 1) -> dict:
    """The same for us, in a fresh process of the interpreter and the environment that we run in."""
    return _answer("sfumato", Path(sys.executable), script, payload, environment(threads, ours=True))


def _answer(who: str, interpreter: Path, script: str, payload: dict, environment: dict[str, str]) -> dict:
    worker = subprocess.run(
        [interpreter, WORKERS / f"{script}.py"],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if worker.returncode:
        raise PeerFailedError(f"{who}: {script} broke off\n" + "\n".join(worker.stderr.splitlines()[-5:]))
    return json.loads(worker.stdout)


def set_up(peer: str) -> None:
    """Make the peer's environment, unless it already stands with the same pins."""
    if ready(peer):
        print(f"{peer}: ready")
        return
    print(f"{peer}: installing {', '.join(PEERS[peer])}", flush=True)
    venv.create(HOME / peer, with_pip=True, clear=True)
    subprocess.run(
        [python(peer), "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check", *PEERS[peer]],
        env=environment(),
        check=True,
    )
    _marker(peer).write_text(_pins(peer))
    print(f"{peer}: done")


def _marker(peer: str) -> Path:
    return HOME / peer / ".ready"


def _pins(peer: str) -> str:
    """The marker's text: written last, so that a broken-off installation is never taken for a finished one."""
    return "\n".join((f"python {sys.version_info.major}.{sys.version_info.minor}", *PEERS[peer], ""))


def environment(threads: int = 1, ours: bool = False) -> dict[str, str]:
    """Our environment; for a peer without what would lead its interpreter into our own packages."""
    hidden = () if ours else ("PYTHONPATH", "PYTHONHOME")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | dict.fromkeys(ONE_THREAD, str(threads))


def main() -> int:
    failed = []
    for peer in PEERS:
        try:
            set_up(peer)
        except subprocess.CalledProcessError as broken:
            print(f"{peer}: installation failed (exit {broken.returncode})")
            failed.append(peer)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
