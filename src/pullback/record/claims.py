"""Who checks what, where several children share the work: the first one that asks has it."""

from __future__ import annotations

import hashlib
import os


def claim(folder: str, what: object) -> bool | None:
    """Claim a rule or a module: True for the first that asks, and None where the folder is gone."""
    name = hashlib.sha256(repr(what).encode("utf-8", "backslashreplace")).hexdigest()[:32]
    try:
        os.close(os.open(os.path.join(folder, f"{name}.claim"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    except OSError:
        return None
    return True
