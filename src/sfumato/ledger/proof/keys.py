"""Keys that sign checkpoints: Ed25519, one file each, for its owner's eyes only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from ... import checks
from ...errors import LedgerError

_LONGEST = 10_000  # bytes of a key file


class Key:
    """A signing key. Its text shows the public half only."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    @classmethod
    def make(cls, path: str | Path) -> Key:
        """A new key in a new file that only its owner can read. A file that exists is never overwritten."""
        checks.path(path, "path")
        private = Ed25519PrivateKey.generate()
        text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(file, text)
                os.fsync(file)
            finally:
                os.close(file)
        except FileExistsError:
            raise LedgerError("there is a file where the new key should go: a key is never overwritten") from None
        except (OSError, ValueError):
            raise LedgerError("the key cannot be written: give a folder that exists and can be written") from None
        return cls(private)

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """The key of a file. A file that others may read or write is refused: its key may be theirs too."""
        checks.path(path, "key")
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for, for ever
            try:
                mode, text = os.fstat(file).st_mode, os.read(file, _LONGEST)
            finally:
                os.close(file)
        except (OSError, ValueError):
            raise LedgerError(
                "the key cannot be read: give the path of a key file that this user owns", code="key-unread"
            ) from None
        if stat.S_IMODE(mode) & 0o077:
            raise LedgerError(
                "others may read the key file, so it proves nothing: make a new key, or, if nobody read it, give the "
                "file mode 0600"
            )
        try:
            private = load_pem_private_key(text, password=None)
        except (ValueError, TypeError):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise LedgerError("the file holds no Ed25519 key: give a file that Key.make wrote")
        return cls(private)

    def sign(self, text: bytes) -> str:
        return self._private.sign(text).hex()

    def __repr__(self) -> str:
        return f"<Key {self.public[:16]}...>"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is not pickled or copied: load it from its file")


def signed_by(public: str, signature: str, text: bytes) -> bool:
    """Did the owner of that public key sign the text?"""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
